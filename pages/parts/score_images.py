"""Images with their scores: rows of them, and one image's story in a dialog."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import annotator_name, charts, components, errors, find_panel, score_charts, urls
from pages.parts.text import literal
from semiprune_core.coresets.score_view import ScoreView, image_story, neighbours
from semiprune_core.labeling.events import MAX_ANNOTATOR
from semiprune_core.labeling.review import correct_label
from semiprune_core.methods import score_title
from semiprune_core.project.pool import read_id, show_id
from semiprune_core.project.workspace import Project
from semiprune_core.records import FloatArray
from semiprune_core.scores import SCORES

SHORT = {
    "mean_prob": "mean",
    "variability": "deviation",
    "dynamic_uncertainty": "uncertainty",
    "forgetting": "forgotten",
    "entropy": "entropy",
}


def items(
    project: Project,
    seen: ScoreView,
    positions: Sequence[int],
    *,
    score: str | None = None,
    values: FloatArray | None = None,
    badge: str = "",
) -> list[components.Item]:
    """Pictures with their label and, where asked, a score: the view's own, or ``values`` (N,)."""
    labels = seen.labels
    pictures = []
    for position in positions:
        image_id = show_id(seen.pool.ids[position])
        wrong = seen.right is not None and seen.right[position] == 0
        source = "human label" if labels.human_mask[position] else "pseudo-label"
        note = source
        if score is not None:
            value = (seen.table[score] if values is None else values)[position]
            note = f"{SHORT.get(score) or score_title(score)} {value:.3f}"
        pictures.append(
            components.Item(
                id=image_id,
                src=urls.picture(project.name, image_id),
                title=labels.class_names[int(labels.labels[position])],
                note=note,
                badge=badge or ("wrong" if wrong else ""),
            )
        )
    return pictures


def row(
    project: Project,
    seen: ScoreView,
    positions: Sequence[int],
    *,
    key: str,
    score: str | None = None,
    values: FloatArray | None = None,
    find: str | None = None,
) -> None:
    """One row of images; a click opens the image's story. ``find`` is the key of the gallery that finds images."""
    shown = items(project, seen, positions, score=score, values=values)
    opened = components.gallery(shown, key=key, cell=88, one_row=True)
    if opened:
        open_story(project, seen, opened, find)


def open_story(project: Project, seen: ScoreView, image_id: str, find: str | None = None) -> None:
    st.session_state["story_at"] = image_id
    _story(project, seen, find)


@st.dialog("Image", width="large")
@errors.shown()
def _story(project: Project, seen: ScoreView, find: str | None) -> None:
    image_id = st.session_state["story_at"]
    position = int(seen.pool.positions([read_id(image_id)])[0])
    story = image_story(seen, position)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        components.picture(
            urls.picture(project.name, image_id, "original"),
            key=f"story_{image_id}",
            alt=story.label,
            fallback=urls.picture(project.name, image_id),
        )
        source = "human label" if story.is_human else f"pseudo-label, {story.confidence:.0%} confident"
        st.markdown(f"**{literal(story.label)}** :gray[{literal(source)}]")
        if story.reference is not None and story.reference != story.label:
            st.markdown(f":orange[Reference label: {literal(story.reference)}]")
        st.caption(f"{literal(seen.pool.path(position), 80)}  \n`{image_id}`")
        find_panel.offer(project, image_id, find)
    with right:
        st.plotly_chart(score_charts.trajectory(story), key="story_trajectory", config=charts.QUIET)
        st.caption(
            f"Windows of {story.window} epochs: mean {story.window_mean.min():.2f} to {story.window_mean.max():.2f}, "
            f"deviation {story.window_deviation.min():.2f} to {story.window_deviation.max():.2f}."
        )
        st.dataframe(
            [
                {"Score": SCORES.title(name), "Value": value, "Harder than": story.harder_than[name]}
                for name, value in story.scores.items()
            ],
            hide_index=True,
            height=38 + 35 * len(story.scores),
            column_config={
                "Value": st.column_config.NumberColumn(format="%.3f"),
                "Harder than": st.column_config.ProgressColumn(
                    format="percent",
                    min_value=0.0,
                    max_value=1.0,
                    help="The share of the pool that is easier by this score.",
                ),
            },
        )
    near, likeness = neighbours(seen.pseudo.features(), position)
    st.markdown("**Most similar images**")
    shown = items(project, seen, near.tolist())
    opened = components.gallery(shown, key="story_neighbours", cell=80, one_row=True)
    if opened and opened != image_id:
        st.session_state["story_at"] = opened
        st.rerun(scope="fragment")
    _correct(project, seen, image_id, story.label)


def _correct(project: Project, seen: ScoreView, image_id: str, label: str) -> None:
    """A control to correct the label; the correction counts as a review."""
    names = seen.labels.class_names
    with st.form(f"correct_{image_id}", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox("Correct the label", names, index=names.index(label), width=240)
        name = annotator_name.current() or ""
        if annotator_name.is_typed():
            name = st.text_input("Your name", name, max_chars=MAX_ANNOTATOR, width=180)
        submitted = st.form_submit_button("Save", icon=":material/check:")
    if not submitted:
        return
    with errors.shown():
        annotator_name.save(name)
        correct_label(project, read_id(image_id), str(chosen), annotator=name.strip())
        st.success(
            "Saved as a reviewed label. Pseudo-labels and scores are out of date until you train again.",
            icon=":material/check:",
        )
