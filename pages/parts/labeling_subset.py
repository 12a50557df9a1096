"""Drawing the images to label: how many, which, what they would hold."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.parts import charts, errors
from pages.parts.text import count, literal
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore
from semiprune_core.labeling.classes import find_class
from semiprune_core.labeling.drawing import (
    DRAW_METHODS,
    FEW_LABELS,
    FINAL_TEST,
    Drawing,
    Preview,
    has_test_labels,
    preview,
)
from semiprune_core.labeling.progress_report import LabelProgress
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.trust.similarity import can_draw_by_likeness, current_model, draw_evidence

DEFAULT_PERCENT = 10.0
UNIFORM = "uniform"
FURTHER = 20
"""Images drawn at once for classes without labels."""
SHOWN = 12
WAYS = {
    UNIFORM: "Uniformly at random, as in the paper",
    "coverage": "Spread across similar images (not in the paper)",
    "uncertainty": "Where the model is least confident (not in the paper)",
}


def draw_form(project: Project, pool: Pool, store: LabelStore, annotator: str) -> bool:
    """The form of the first drawing, or of a larger one; True when something was drawn just now."""
    drawings = store.drawings.all()
    earlier = max((drawing for drawing in drawings if drawing.uniform), key=len, default=None)
    with st.container(border=True):
        left, right = st.columns([3, 2], gap="large")
        with left:
            fraction, number = _how_many(pool, earlier)
            seed, method, overlap = _how(earlier, has_model=current_model(project, pool) is not None)
            final_test = _final_test(project, earlier, method)
        try:
            expected = _preview(pool, store, fraction, number, seed, method, earlier)
        except SemiPruneError as error:
            errors.show(error)
            return False
        with right:
            _show_preview(expected, method)
        new = expected.n_images - (len(earlier) if earlier is not None and earlier.seed == seed else 0)
        new = expected.n_images if method != UNIFORM else new
        if final_test and new > 0:
            right.caption(f"{round(final_test * new):,} of these labels will be kept for the final test.")
        words = f"Draw {count(new, 'more image' if earlier else 'image')}" if new else "Nothing more to draw"
        if not st.button(words, type="primary", icon=":material/casino:", disabled=new <= 0, key="draw"):
            return False
    try:
        with st.spinner("Drawing"):
            store.drawings.draw(
                pool_hash=pool.hash,
                ids=pool.ids,
                duplicate_of=pool.duplicate_of,
                fraction=fraction,
                count=number,
                seed=seed,
                method=method,
                overlap=overlap,
                final_test=final_test,
                annotator=annotator,
                **draw_evidence(project, pool, method),
            )
    except SemiPruneError as error:
        errors.show(error)
        return False
    return True


def draw_for_classes(project: Project, pool: Pool, store: LabelStore, annotator: str, standing: LabelProgress) -> bool:
    """Offer to draw where images of classes with no or few labels may be; True when something was drawn just now."""
    missing = [name for name, n in standing.per_class.items() if not n]
    thin = [name for name in standing.thin_classes if name not in missing]
    labeled = any(standing.per_class.values())
    if not (missing or thin) or not labeled or not can_draw_by_likeness(project, pool):
        return False
    with st.container(border=True):
        if missing:
            names = ", ".join(missing[:SHOWN]) + (" and more" if len(missing) > SHOWN else "")
            have = "class has" if len(missing) == 1 else "classes have"
            st.markdown(f"**{len(missing):,} {have} no label yet:** {literal(names, 600)}")
            words = f"Draw {FURTHER} images that are most unlike the labeled ones"
            if st.button(words, key="draw_unlike", icon=":material/travel_explore:"):
                return _draw_further(project, pool, store, annotator, "unlike")
        if thin:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                chosen = st.selectbox("Few labels", thin, key="draw_near_class", width=240)
                words = f"Draw {FURTHER} images like its own"
                if st.button(words, key="draw_near", icon=":material/near_me:"):
                    return _draw_further(project, pool, store, annotator, "near", near=str(chosen))
        st.caption("These labels train the model, but do not measure it: they are not a random sample.")
    return False


def _draw_further(
    project: Project, pool: Pool, store: LabelStore, annotator: str, method: str, *, near: str | None = None
) -> bool:
    try:
        with st.spinner("Drawing"):
            store.drawings.draw(
                pool_hash=pool.hash,
                ids=pool.ids,
                duplicate_of=pool.duplicate_of,
                count=min(FURTHER, len(pool)),
                method=method,
                annotator=annotator,
                **draw_evidence(
                    project,
                    pool,
                    method,
                    count=FURTHER,
                    near=None if near is None else find_class(store, near).class_id,
                ),
            )
    except SemiPruneError as error:
        errors.show(error)
        return False
    return True


def _how_many(pool: Pool, earlier: Drawing | None) -> tuple[float | None, int | None]:
    by = st.segmented_control(
        "How many to label", ["Share", "Count"], default="Share", required=True, key="draw_by", width="content"
    )
    if by == "Share":
        start = DEFAULT_PERCENT
        if earlier is not None:
            start = min(100.0, float(round(100 * len(earlier) / earlier.n_groups + 5)))
        percent = st.number_input(
            "Percent of the pool", 0.01, 100.0, start, 1.0, key="draw_percent", width=200, format="%g"
        )
        return percent / 100, None
    start_count = min(len(pool), len(earlier) + 100 if earlier is not None else max(1, len(pool) // 10))
    return None, int(st.number_input("Images", 1, len(pool), start_count, 10, key="draw_count", width=200))


def _how(earlier: Drawing | None, *, has_model: bool) -> tuple[int, str, float]:
    with st.expander("Seed, overlap and sampling method", icon=":material/tune:"):
        seed = int(
            st.number_input(
                "Seed",
                0,
                2**31 - 1,
                earlier.seed if earlier is not None else 0,
                help="The same seed draws the same images. A larger share keeps the earlier ones.",
                key="draw_seed",
                width=200,
            )
        )
        if earlier is not None and seed != earlier.seed:
            st.warning("A new seed starts a second drawing. The earlier one stays open and comes first.")
        overlap = st.slider(
            "Share labeled by two people, to measure agreement (%)",
            0,
            50,
            round(100 * earlier.overlap) if earlier is not None else 0,
            key="draw_overlap",
        )
        ways = [name for name in WAYS if has_model or name != "uncertainty"]
        method = st.radio("Which images", ways, format_func=WAYS.get, key="draw_method")
        if not has_model:
            st.caption(f"{DRAW_METHODS.title('uncertainty')}: available once a model has been trained on this pool.")
    if method != UNIFORM:
        st.warning(
            "This departs from the paper's uniform sample. Labels drawn this way can train a model, but not "
            "give unbiased estimates. The two kinds are kept apart.",
            icon=":material/warning:",
        )
    return seed, str(method), overlap / 100


def _final_test(project: Project, earlier: Drawing | None, method: str) -> float:
    """The share of the new labels to keep for a final test, offered where the project came without test images."""
    if method != UNIFORM or has_test_labels(project):
        return 0.0
    keep = st.checkbox(
        f"Keep {FINAL_TEST:.0%} of the labels for a final test",
        value=earlier is not None and earlier.final_test > 0,
        help="They are labeled like the others, but no training, scoring or search is given them: only Evaluate tests "
        "on them. This pool came without test images; without a final test, Evaluate has to test on images that took "
        "part in learning.",
        key="draw_final_test",
    )
    return FINAL_TEST if keep else 0.0


def _preview(
    pool: Pool,
    store: LabelStore,
    fraction: float | None,
    number: int | None,
    seed: int,
    method: str,
    earlier: Drawing | None,
) -> Preview:
    names = pool.class_names or store.classes.names()
    return preview(
        pool.ids,
        pool.duplicate_of,
        fraction=fraction,
        count=number,
        seed=seed,
        reference_labels=pool.reference_labels if pool.class_names else None,
        class_names=names,
        earlier=earlier.ids if earlier is not None and earlier.seed == seed and method == UNIFORM else None,
    )


def _show_preview(expected: Preview, method: str) -> None:
    st.metric("Images to label", f"{expected.n_images:,}", help=f"Out of {expected.n_groups:,} distinct images.")
    if method != UNIFORM:
        return
    if expected.per_class is not None:
        fewest = min(expected.per_class, key=expected.per_class.__getitem__)
        st.caption(
            f"By the reference labels: {count(len(expected.per_class), 'class', 'classes')}; {literal(fewest)} "
            f"has the fewest images ({expected.per_class[fewest]:,})."
        )
        if expected.per_class[fewest] < FEW_LABELS:
            st.warning(f"Some classes would get fewer than {FEW_LABELS} labels. Draw more.")
        with st.expander("Images per class"):
            if len(expected.per_class) <= 30:
                st.plotly_chart(charts.class_bars(expected.per_class), key="draw_classes", config=charts.QUIET)
            else:
                st.dataframe(pd.DataFrame(expected.per_class.items(), columns=["Class", "Images"]), hide_index=True)
        return
    st.caption(
        f"A class with {expected.rarest_share:.2%} of the pool would get about {expected.rarest_expected:.1f} "
        f"images, with a {expected.chance_of_few:.0%} chance of fewer than {FEW_LABELS}."
    )


def drawings_table(store: LabelStore) -> None:
    rows = [
        {
            "Drawing": drawing.drawing_id,
            "Images": len(drawing),
            "Share": f"{len(drawing) / drawing.n_groups:.1%}",
            "How": WAYS.get(
                drawing.method, DRAW_METHODS.title(drawing.method) if drawing.method in DRAW_METHODS else drawing.method
            ),
            "Seed": drawing.seed,
            "Overlap": f"{drawing.overlap:.0%}",
            "Final test": int(drawing.final_mask.sum()),
            "Extends": "" if drawing.extends is None else str(drawing.extends),
            "Unbiased estimates": "yes" if drawing.uniform else "no",
        }
        for drawing in store.drawings.all()
    ]
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True)
