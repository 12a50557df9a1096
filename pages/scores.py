"""Scores: train once more on the pseudo-labeled pool, and see how hard every image was."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from pages.parts import (
    charts,
    components,
    errors,
    find_panel,
    job_panel,
    knobs,
    out_of_date,
    score_charts,
    score_images,
    score_views,
)
from pages.parts import project as projects
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.coresets import score_view
from semiprune_core.coresets.score_view import Groups, ScoreView
from semiprune_core.dynamics import SCORING_STARTS, DynamicsSettings, start_of, submit_dynamics
from semiprune_core.dynamics.pace import seconds_expected
from semiprune_core.dynamics.scoring import new_scores, with_new_scores, with_settings
from semiprune_core.errors import SemiPruneError
from semiprune_core.jobs import Job
from semiprune_core.learning.presets import SUPERVISED_PRESETS
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.results import ScoreRun, TrajectoryRun, latest_pseudo
from semiprune_core.results.pseudo import FINETUNED, FROZEN, SCRATCH
from semiprune_core.scores import SCORES, ScoreSettings, score_knobs
from semiprune_core.steps import BY_KEY

PER_PAGE = 48
SPLITS = {"none": "nothing", "class": "class", "source": "source of the label", "right": "right or wrong"}


def watch(project: Project) -> bool:
    """Runs under way with their curves, and the last one if it did not end well; whether one is under way."""
    found = jobs.list_jobs(project, "dynamics")
    live = [job for job in found if not job.status().is_over]
    for job in live:
        job_panel.show(job)
        live_curve(job)
    if found and not live:
        job_panel.ended(found[0], what="The dynamics run")
    return bool(live)


@st.fragment(run_every=2.0)
@errors.shown()
def live_curve(job: Job) -> None:
    epochs = [line for line in job.progress() if line.get("train_accuracy") is not None and "epoch" in line]
    if epochs:
        st.plotly_chart(score_charts.training_curve(epochs), key=f"live_{job.id}", config=charts.QUIET)


WHAT_IT_DOES = {
    FROZEN: "Trains a linear head on the pretrained features of all images, with human labels where there are any, and "
    "records after each epoch how confident it is about every image. The scores follow by themselves.",
    FINETUNED: "Trains a network that begins with a pretrained encoder's weights on all images, with human labels "
    "where there are any, and records after each epoch how confident it is about every image. The scores follow by "
    "themselves.",
    SCRATCH: "Trains a new network on all images, with human labels where there are any, and records after each "
    "epoch how confident it is about every image. The scores follow by themselves.",
}


def start(project: Project, *, words: str, primary: bool) -> None:
    """The form that queues a dynamics run."""
    usual = start_of(latest_pseudo(project))
    begin = st.segmented_control(
        "Start",
        list(SCORING_STARTS),
        format_func=SCORING_STARTS.__getitem__,
        default=usual,
        required=True,
        key="dynamics_start",
        help=f"The pseudo-labels were learned this way: {SCORING_STARTS[usual].lower()}.",
    )
    with st.form("dynamics", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        preset = "quick"
        if begin == SCRATCH:
            preset = st.selectbox(
                "Preset",
                list(SUPERVISED_PRESETS),
                format_func=SUPERVISED_PRESETS.title,
                key="dynamics_preset",
                width=220,
            )
        n_seeds = st.number_input(
            "Runs",
            1,
            10,
            1,
            key="dynamics_seeds",
            width=110,
            help="Scores are averaged over the runs; more runs are steadier.",
        )
        seed = st.number_input("Seed", 0, 2**31 - 1, 0, key="dynamics_seed", width=120)
        given = st.form_submit_button(
            words, type="primary" if primary else "secondary", icon=":material/model_training:"
        )
    seeds = tuple(range(int(seed), int(seed) + int(n_seeds)))
    st.caption(f"{WHAT_IT_DOES[str(begin)]} {how_long(project, str(begin), str(preset), seeds)}")
    if given:
        submit_dynamics(project, start=str(begin), preset=str(preset), seeds=seeds)
        st.rerun()


def how_long(project: Project, begin: str, preset: str, seeds: tuple[int, ...]) -> str:
    if begin == FROZEN:
        return "Takes seconds once the features are there."
    seconds = seconds_expected(project, DynamicsSettings(pseudo="", preset=preset, seeds=seeds, start=begin))
    if seconds is None:
        return "Runs in the background; how long it takes is shown as soon as it runs."
    return f"Runs in the background and takes about {duration(seconds)}, by the last training on this machine."


def facts(seen: ScoreView) -> None:
    artifact = seen.scores.artifact
    last = seen.runs[0].artifact.facts.get("last") or {}
    with st.container(horizontal=True, gap="medium"):
        st.metric("Images", f"{seen.n_images:,}")
        st.metric("Start", SCORING_STARTS.get(seen.runs[0].start, seen.runs[0].start), help=made_with(seen.runs[0]))
        st.metric("Epochs", f"{seen.scores.n_epochs:,}")
        st.metric("Runs", len(seen.runs), help="Dynamics runs with different seeds; scores are their mean.")
        if last.get("train_accuracy") is not None:
            st.metric("Agreement with labels", f"{last['train_accuracy']:.1%}", help="In the last training epoch.")
        tested = seen.runs[0].artifact.facts.get("test_accuracy")
        if tested:
            st.metric("Test accuracy", f"{tested['value']:.1%}", help=f"On {tested['n']:,} test images.")
        stability = artifact.facts.get("stability")
        if stability:
            st.metric(
                "Stability of AUM",
                f"{stability['aum']:.2f}",
                help="Rank correlation between runs with different seeds.",
            )


def made_with(run: TrajectoryRun) -> str:
    if run.start == FROZEN:
        return f"A linear head on {literal(str(run.artifact.settings['encoder']))} features."
    if run.start == FINETUNED:
        return f"A network that began with the weights of {literal(str(run.artifact.settings['encoder']))}."
    return "A network of its own, trained from scratch."


def describe(name: str) -> None:
    said = SCORES.facts(name)
    direction = "Higher is easier." if said["higher_is"] == "easier" else "Higher is harder."
    st.caption(f"**{SCORES.title(name)}**: {said['explain']} {direction}")


def split_control(seen: ScoreView) -> Groups:
    ways = [way for way in SPLITS if way != "right" or seen.right is not None]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        split = st.segmented_control(
            "Split by",
            ways,
            format_func=SPLITS.__getitem__,
            default=ways[-1] if "right" in ways else "none",
            required=True,
            key="scores_split",
        )
        chosen = None
        names = seen.labels.class_names
        if split == "class" and len(names) > score_view.MAX_COLOURS:
            chosen = st.selectbox(
                "Class", range(len(names)), format_func=names.__getitem__, key="scores_class", width=220
            )
    return score_view.group_images(seen, str(split), chosen)


def histograms(seen: ScoreView) -> tuple[IntArray | None, str, str]:
    """All histograms, two in a row; the positions behind what was picked last, by which score, and in words."""
    groups = split_control(seen)
    picked: tuple[IntArray | None, str, str] = (None, seen.names[0], "")
    for number, name in enumerate(seen.names):
        if number % 2 == 0:  # a row of its own for each pair, so that a narrow screen keeps the order
            columns = st.columns(2, gap="medium")
        with columns[number % 2]:
            describe(name)
            edges, counts = score_view.histogram(seen, name, groups)
            event = st.plotly_chart(
                score_charts.score_histogram(edges, counts, groups, title=SCORES.title(name)),
                key=f"hist_{name}_{groups.kind}",
                on_select="rerun",
                selection_mode=("points", "box"),
                config=score_charts.PICKING,
            )
            positions = behind_bars(seen, name, groups, event)
            if positions is not None:
                picked = (positions, name, SCORES.title(name))
    return picked


def behind_bars(seen: ScoreView, name: str, groups: Groups, event: Any) -> IntArray | None:
    """The images behind a picked bar or a dragged range; None where nothing is picked."""
    chosen = (event or {}).get("selection") or {}
    if chosen.get("box"):
        low, high = sorted(chosen["box"][0]["x"])
        return score_view.in_range(seen, name, groups, low, high)
    bars = [tuple(int(value) for value in point["customdata"]) for point in chosen.get("points", ())]
    return score_view.in_bins(seen, name, groups, bars) if bars else None


def the_plane(seen: ScoreView) -> tuple[IntArray | None, str, str]:
    """The plane of mean and deviation, and the images behind what was picked on it."""
    if not {"mean_prob", "variability"} <= set(seen.names):
        return None, seen.names[0], ""
    score = st.selectbox(
        "Colour", seen.names, index=seen.names.index("dual"), format_func=SCORES.title, key="plane_score", width=220
    )
    points = score_view.plane(seen, str(score))
    event: Any = st.plotly_chart(
        score_charts.plane(points, title=SCORES.title(str(score))),
        key="plane",
        on_select="rerun",
        selection_mode=("points", "box"),
        config=score_charts.PICKING,
    )
    what = "cells" if points.is_density else "images"
    st.caption(f"Each point is one of the {what}. Click one, or drag a box, to see the images behind it.")
    chosen = (event or {}).get("selection") or {}
    if chosen.get("box"):
        (x0, x1), (y0, y1) = sorted(chosen["box"][0]["x"]), sorted(chosen["box"][0]["y"])
        return score_view.on_plane(seen, str(score), box=(x0, x1, y0, y1)), str(score), "the plane"
    ids = [int(point["customdata"]) for point in chosen.get("points", ())]
    return (score_view.on_plane(seen, str(score), ids=ids) if ids else None), str(score), "the plane"


def behind(project: Project, seen: ScoreView, picked: tuple[IntArray | None, str, str], *, key: str) -> None:
    """The gallery behind a pick; before any, the two ends of the score."""
    positions, score, words = picked
    gallery = f"{key}_gallery"
    if find_panel.is_asked(gallery):
        positions = np.arange(seen.n_images) if positions is None else positions
        words = words or "the pool"
    some: IntArray = np.arange(0) if positions is None else positions
    ordered, is_found = find_panel.order(project, some, key=gallery, pool=seen.pool)
    if positions is None:
        order = score_view.by_score(seen, score, seen.table[score] == seen.table[score])
        for title, ends in (
            (f"Lowest {SCORES.title(score)}", order[:12]),
            (f"Highest {SCORES.title(score)}", order[::-1][:12]),
        ):
            st.markdown(f"**{title}**")
            score_images.row(project, seen, ends.tolist(), key=f"{key}_{title}", score=score, find=gallery)
        return
    if not len(positions):
        st.info("No images there. Pick another area.", icon=":material/search_off:")
        return
    pages = -(-len(positions) // PER_PAGE)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        first = "most alike" if is_found else f"lowest {SCORES.title(score)}"
        st.markdown(f"**{count(len(positions), 'image')} picked on {literal(words)}**, {first} first")
        page = st.pagination(pages, key=f"{key}_page_{pages}") if pages > 1 else 1
    shown = ordered[(page - 1) * PER_PAGE : page * PER_PAGE].tolist()
    opened = components.gallery(score_images.items(project, seen, shown, score=score), key=gallery, cell=100)
    if opened:
        score_images.open_story(project, seen, opened, gallery)


def history(seen: ScoreView) -> None:
    for run in seen.runs:
        st.markdown(f"**{run.artifact.id}**, seed {run.artifact.manifest['seed']}")
        st.plotly_chart(score_charts.training_curve(run.history()), key=f"curve_{run.artifact.id}", config=charts.QUIET)


def offer_new_scores(project: Project, scores: ScoreRun) -> None:
    """Scores that were added since the table was made, with the button that computes them."""
    missing = new_scores(project, scores)
    if not missing:
        return
    st.info(
        f"New since these scores were made: {', '.join(map(SCORES.title, missing))}.", icon=":material/new_releases:"
    )
    if st.button("Compute new scores", key="scores_compute_new"):
        with st.spinner("Scoring the stored trajectory"):
            with_new_scores(project, scores)
        st.rerun()


def settings(project: Project, seen: ScoreView) -> None:
    """What the scores know, and scoring anew with other values."""
    st.caption("Another value scores the stored trajectory anew; nothing is trained. Former scores are kept.")
    now = seen.table.settings
    around = {**now, "n_epochs": seen.scores.n_epochs}
    with st.form("score_settings", border=False):
        chosen = knobs.draw(score_knobs(), key="score_setting", start=now, around=around)
        given = st.form_submit_button("Score anew", icon=":material/refresh:")
    if given:
        with st.spinner("Scoring the stored trajectory"):
            with_settings(project, seen.scores, **changed(now, chosen, seen.scores.n_epochs))
        st.rerun()


def changed(now: ScoreSettings, chosen: dict[str, Any], n_epochs: int) -> dict[str, Any]:
    """What differs; all epochs stay all epochs where the control stands at the run's length."""
    return {
        name: value
        for name, value in chosen.items()
        if value != now[name] and not (now[name] is None and value == n_epochs)
    }


def main() -> None:
    project = projects.require("scores")
    projects.title(BY_KEY["scores"].title, BY_KEY["scores"].purpose)
    is_live = watch(project)
    latest = project.latest("scores")
    if latest is None:
        if not is_live:
            start(project, words="Train and score every image", primary=True)
        return
    scores = ScoreRun(latest)
    stale = score_views.warn_if_out_of_date(project, scores, what="These scores")
    out_of_date.notice(project, project.pool(), key="scores", button_only=stale)
    try:
        seen = score_views.view(project, scores)
    except SemiPruneError as error:
        errors.show(error)
        start(project, words="Score again", primary=True)
        return
    offer_new_scores(project, scores)
    facts(seen)
    tabs = st.tabs(["Histograms", "Plane", "Training", "Settings", "Run again"])
    with tabs[0]:
        behind(project, seen, histograms(seen), key="hist")
    with tabs[1]:
        behind(project, seen, the_plane(seen), key="plane")
    with tabs[2]:
        history(seen)
    with tabs[3]:
        settings(project, seen)
    with tabs[4]:
        if is_live:
            st.info("A run is in progress.", icon=":material/hourglass_empty:")
        else:
            start(project, words="Run again", primary=stale)


main()
