"""The slides of the presentation: one sentence each, and something large to look at or to touch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts import (
    charts,
    components,
    errors,
    evaluation_charts,
    first_sight,
    gain_panel,
    labeling_elements,
    score_charts,
    score_images,
    score_views,
    urls,
)
from pages.parts.text import count, interval, literal
from semiprune_core import training
from semiprune_core.coresets import CoresetRequest, select_view
from semiprune_core.evaluation.gain import gain_of
from semiprune_core.evaluation.plot import ACCURACY
from semiprune_core.evaluation.runs import finished
from semiprune_core.exporting import list_exports
from semiprune_core.labeling import open_store
from semiprune_core.maps.embedding_map import inside, maps_of
from semiprune_core.maps.map_view import columns_of
from semiprune_core.methods import score_title
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Project
from semiprune_core.results import latest_pseudo, latest_scores

FRAMES, EVERY = 24, 0.5
"""The replay of a training: so many pictures, one each so many seconds."""
REPLAY = "story_replay"
WIDE = 96
METHOD = "semi_aum_cutoff"


@dataclass(frozen=True)
class Slide:
    """``seconds`` is how long it takes to tell; ``page`` is where everything about it is. ``needs`` is the artifact
    without which it is left out; ``arrows`` says whether arrow keys may turn it."""

    title: str
    sentence: str
    draw: Callable[[Project], None]
    seconds: int
    page: str
    needs: str | None = None
    arrows: bool = True


def slides_of(project: Project) -> list[Slide]:
    """Those that this project can show."""
    return [slide for slide in SLIDES if slide.needs is None or project.latest(slide.needs) is not None]


def the_pool(project: Project) -> None:
    pool = project.pool()
    ids = pool.ids[:: max(1, len(pool) // WIDE)][:WIDE]
    items = [components.Item(id=show_id(number), src=urls.picture(project.name, show_id(number))) for number in ids]
    st.markdown(f"### {count(len(pool), 'image')}")
    components.gallery(items, key="story_pool", cell=76)


def the_idea(project: Project) -> None:
    first_sight.draw()


def the_deck(project: Project) -> None:
    labeling_elements.deck(project, open_store(project), annotator="practice", queue="practice")


def the_curve(project: Project) -> None:
    """The recorded training, played again."""
    st.session_state.setdefault(REPLAY, 1)
    if st.session_state[REPLAY] < FRAMES:
        st.fragment(errors.shown()(_replay), run_every=EVERY)(project)
    else:
        _replay(project)
        if st.button("Play again", icon=":material/replay:", key="story_again"):
            st.session_state[REPLAY] = 1
            st.rerun()


def _replay(project: Project) -> None:
    artifact = project.latest("pseudo")
    run = next(run for run in training.list_runs(project) if run.artifact is not None and run.artifact == artifact)
    curves = training.run_curves(run)
    frame = st.session_state[REPLAY]
    steps = [point[0] for points in curves.checks.values() for point in points] or [0]
    reached = max(steps) * frame / FRAMES
    checks = {name: [point for point in points if point[0] <= reached] for name, points in curves.checks.items()}
    figure = charts.accuracy_curve(dataclasses.replace(curves, checks=checks))
    figure.update_layout(height=420)
    figure.update_xaxes(range=[0, max(steps)])
    st.plotly_chart(figure, key="story_curve", config=charts.QUIET)
    st.caption(f"As it was recorded, step {reached:,.0f} of {max(steps):,}. The band is the 95% interval.")
    if frame < FRAMES:
        st.session_state[REPLAY] = frame + 1
        if frame + 1 == FRAMES:
            st.rerun()


def the_trust(project: Project) -> None:
    run = latest_pseudo(project)
    quality = run.quality()
    if quality:
        share = quality["accuracy"]
        st.markdown(f"# {share['value']:.1%}")
        st.markdown(f"#### {interval(share['low'], share['high'], share['n'])}")
    confident, doubtful = np.argsort(-run.confidence())[: WIDE // 6], np.argsort(run.confidence())[: WIDE // 6]
    seen = score_views.view(project, latest_scores(project))
    for words, positions in (("Surest", confident), ("Most doubtful", doubtful)):
        st.markdown(f"**{words}**")
        score_images.row(project, seen, positions.tolist(), key=f"story_{words}")


@st.fragment
@errors.shown()
def the_map(project: Project) -> None:
    """Draw around an island: its images stand below."""
    point_map, pool = maps_of(project)[0], project.pool()
    columns = columns_of(project, pool)
    column = columns["pseudo"]
    base = f"{urls.base()}/projects/{project.name}"
    artifact = point_map.artifact
    url = f"{base}/maps/{artifact.id}/points?h={artifact.hash[:16]}"
    coloured = {**column.legend(), "marked": [], "url": f"{base}/columns/{column.key}?v={columns.version}"}
    data = {
        "panels": [{"key": artifact.id, "url": url, "title": point_map.title, "note": ""}],
        "colour": coloured,
        "filters": [],
        "version": columns.version,
        "base": base,
        "height": 460,
        "highlight": [],
    }
    line, _ = components.point_map(data, key="story_map")
    if line:
        positions = inside(point_map.points(), line["corners"], None)
        st.markdown(f"**{count(len(positions), 'image')} selected**")
        ids = [show_id(number) for number in pool.ids[positions[:WIDE]]]
        components.gallery(
            [components.Item(id=image_id, src=urls.picture(project.name, image_id)) for image_id in ids],
            key="story_lasso",
            cell=64,
        )


def the_scores(project: Project) -> None:
    seen = score_views.view(project, latest_scores(project))
    order = np.argsort(seen.table["aum"])
    for words, positions in (
        ("Learned at once", order[::-1]),
        ("Half-way", order[len(order) // 2 :]),
        ("Hardly learned", order),
    ):
        st.markdown(f"**{words}**")
        score_images.row(project, seen, positions[: WIDE // 6].tolist(), key=f"story_{words}", score="aum")


@st.fragment
@errors.shown()
def the_slider(project: Project) -> None:
    seen = score_views.view(project, latest_scores(project))
    ratio = st.slider("Pruning ratio", 0.1, 0.9, 0.5, 0.1, key="story_ratio")
    request = CoresetRequest(method=METHOD, pruning_ratio=ratio)
    found = select_view.preview(seen, request)
    gain = gain_of(
        project,
        method=METHOD,
        pruning_ratio=ratio,
        n_kept=found.budget,
        n_kept_labeled=found.n_human,
        n_labeled=found.n_human_before,
    )
    figure = score_charts.kept_and_dropped(found, title=score_title(found.score))
    st.plotly_chart(figure, key="story_kept", config=charts.QUIET)
    gain_panel.bars(gain)


def the_proof(project: Project) -> None:
    shown = finished(project)[0]
    view = shown.view()
    st.markdown(f"### {literal(view.sentence(), 400)}")
    figure = evaluation_charts.line_plot(view, ACCURACY)
    st.plotly_chart(figure, key="story_proof", config=charts.QUIET, alt=view.sentence())


def the_export(project: Project) -> None:
    exports = [export for export in list_exports(project) if "kept" in export.files]
    if not exports:
        st.caption("Nothing was exported yet; Export writes the files.")
        return
    path = exports[0].files["kept"]
    st.dataframe(pd.read_csv(path, nrows=8), hide_index=True)
    st.link_button("Coreset CSV", urls.export(project.name, path.name), icon=":material/download:", type="primary")
    st.caption("Beside it lies a manifest: semiprune verify computes the selection again and checks every file.")


SLIDES = (
    Slide(
        "The pool", "This is what a team has: thousands of images, and nobody has labeled them.", the_pool, 45, "pool"
    ),
    Slide("The idea", "Some images teach a model more than others, so label and train on those.", the_idea, 60, "pool"),
    Slide(
        "Label a tenth",
        "A random tenth is labeled by people, one key per image; try it with 1 to 9 and 0.",
        the_deck,
        90,
        "label",
        "pool",
        arrows=False,
    ),
    Slide(
        "The rest is learned",
        "From those labels and all the unlabeled images a model learns to label the rest.",
        the_curve,
        60,
        "train",
        "pseudo",
    ),
    Slide(
        "Can it be trusted?",
        "Labels that the model never saw measure it, with an interval that says how sure that is.",
        the_trust,
        60,
        "pseudo",
        "scores",
    ),
    Slide(
        "A map of the pool",
        "Images that look alike lie close together; draw around an island to see its images.",
        the_map,
        60,
        "map",
        "map",
        arrows=False,
    ),
    Slide(
        "How hard is each image?",
        "A second training watches when each image is learned: at once, late, or hardly at all.",
        the_scores,
        60,
        "scores",
        "scores",
    ),
    Slide(
        "How much to keep?",
        "Move the slider: what is kept, what it costs, and what it saves.",
        the_slider,
        75,
        "select",
        "scores",
        arrows=False,
    ),
    Slide(
        "Does it beat chance?",
        "Trained on coresets and on random images of equal number, several times, tested on others.",
        the_proof,
        60,
        "evaluate",
        "evaluation",
    ),
    Slide(
        "Take it home",
        "The coreset leaves as a CSV or in the format of your tools, with a proof that can be checked.",
        the_export,
        30,
        "export",
        "coreset",
    ),
)
