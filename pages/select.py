"""Select: choose how much to prune and how, see at once what that does, and keep it as a coreset."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import (
    charts,
    errors,
    gain_panel,
    knobs,
    out_of_date,
    saved_coresets,
    score_charts,
    score_images,
    score_views,
    search_panel,
)
from pages.parts import project as projects
from pages.parts.text import count, literal
from semiprune_core.coresets import (
    OPTIONS,
    CoresetRequest,
    build_coreset,
    score_knobs_of,
    select_view,
    setting_of,
)
from semiprune_core.coresets.label_error import ErrorEstimate
from semiprune_core.coresets.score_view import ScoreView
from semiprune_core.coresets.select_view import Preview
from semiprune_core.coresets.starting_values import knobs_at, searched, starting_knobs
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation.gain import gain_of
from semiprune_core.exporting import export_csv
from semiprune_core.methods import METHODS, needs_of, open_knobs, score_title
from semiprune_core.project.workspace import Project
from semiprune_core.results import CoresetRun, ScoreRun, latest_scores
from semiprune_core.results.evidence import EvidenceRun
from semiprune_core.results.score_source import has_own_evidence
from semiprune_core.results.search import BestValue
from semiprune_core.scan import latest_scan
from semiprune_core.selection import AIMS, SELECTORS, Defaults, has_aims
from semiprune_core.steps import BY_KEY

SEVERAL = 6  # coresets that are compared at once
FIRST = ("semi_aum_cutoff", "semi_dual_beta")
LAST = ("random",)
AIM_WORDS = {"accuracy": "Accuracy", "clean": "Clean"}
OPTION_WORDS = {
    "class_balanced": ("Balance the classes", "Equal shares for all classes, or all images of a class that has fewer."),
    "keep_human": ("Keep human labels", "Always keeps images with a human label."),
    "same_annotation_budget": (
        "Same annotation budget",
        "Images with a human label come first and count towards the budget. The method selects from the rest.",
    ),
    "drop_duplicates": ("Drop duplicates", "Keeps only one of several images with the same pixels."),
    "one_of_each": (
        "Keep one of each",
        "Of near-duplicates with the same label only one is kept. Needs a scan of the pool (Pool page).",
    ),
}


def controls(project: Project, seen: ScoreView, kept: dict[str, EvidenceRun]) -> CoresetRequest:
    """Everything a person may choose, as one request."""
    every = [*METHODS, *(name for name in SELECTORS if name not in METHODS)]
    names = sorted(
        (name for name in every if _possible(seen, kept, name)),
        key=lambda name: (
            name in LAST,
            name not in FIRST,
            name not in METHODS,
            has_own_evidence(name),
            every.index(name),
        ),
    )
    method = str(st.selectbox("Method", names, format_func=saved_coresets.title_of, key="select_method"))
    st.caption((METHODS if method in METHODS else SELECTORS).facts(method)["explain"])
    st.session_state.setdefault("select_ratio", 0.7)
    ratio = st.slider(
        "Pruning ratio", 0.0, 0.99, step=0.01, key="select_ratio", help="The share of the pool that is removed."
    )
    values: dict[str, Any] = {"method": method, "pruning_ratio": ratio}
    if has_aims(method):
        values["aim"] = st.segmented_control(
            "Aim",
            AIMS,
            default=AIMS[0],
            required=True,
            format_func=AIM_WORDS.get,
            key="select_aim",
            help="Hard images teach the most, but more of their pseudo-labels are wrong. *Clean* leaves them "
            "out, for a coreset whose labels nobody will check. In trials, networks trained on it did worse, "
            "with true labels and with pseudo-labels.",
        )
    best = searched(project, method, ratio, kept.get(method) or seen.scores)
    known = _starting(seen, kept.get(method), values, best)
    if known.selector or known.scores:
        own = st.toggle("Custom values", key="select_own", help=known.why)
        if not own:
            least = f" Each class keeps at least {known.class_share:.0%} of its share." if known.class_share else ""
            st.caption(f"{_in_words(method, known.selector)}{literal(known.why, 500)}{least}")
            values["given"] = {} if best is None else knobs_at(best, ratio)
    else:
        own = bool(open_knobs(method))
    if own:
        values["given"] = _knobs(seen, method, ratio, known.selector)
    with st.expander("Options", icon=":material/tune:"):
        for name, (words, help_text) in OPTION_WORDS.items():
            values[name] = st.checkbox(words, key=f"select_{name}", help=help_text)
        values["min_per_class"] = int(
            st.number_input("Minimum per class", 0, 10_000, 0, key="select_min_per_class", width=160)
        )
        values["class_share"] = _class_share(known.class_share, disabled=values["class_balanced"])
        values["seed"] = int(st.number_input("Seed", 0, 2**31 - 1, 0, key="select_seed", width=160))
    assert set(OPTIONS) <= {*values}
    return CoresetRequest(**values)


def _class_share(usual: float, *, disabled: bool) -> float:
    """The part of its share that each class keeps; where the default changes, with the method, the slider follows."""
    key = "select_class_share"
    if key not in st.session_state or st.session_state.get(f"{key}_usual") != usual:
        st.session_state[f"{key}_usual"] = usual
        st.session_state[key] = round(100 * usual)
    share = st.slider(
        "Least of each class",
        0,
        100,
        step=5,
        format="%d%%",
        key=key,
        disabled=disabled,
        help="Part of what a random coreset would hold of a class. On pretrained features an easy class would "
        "disappear without it. 0% turns it off.",
    )
    return 0.0 if disabled else share / 100


def _starting(seen: ScoreView, kept: EvidenceRun | None, values: dict[str, Any], best: BestValue | None) -> Defaults:
    basis = dataclasses.replace(seen.basis, aim=values.get("aim", AIMS[0]))
    return starting_knobs(values["method"], values["pruning_ratio"], kept.basis(basis) if kept else basis, best)


def _possible(seen: ScoreView, kept: dict[str, EvidenceRun], name: str) -> bool:
    """Own methods where their scores are there; a baseline once its evidence was made."""
    if has_own_evidence(name):
        return name in kept
    known = {*seen.names, "mean_prob"}
    return all(need in known for need in needs_of(name))


def _in_words(method: str, values: dict[str, Any]) -> str:
    titles = {name: knob.words for name, knob in open_knobs(method).items()}
    return "".join(f"{titles.get(name, name)} {value:g}. " for name, value in values.items())


def _knobs(seen: ScoreView, method: str, ratio: float, start: dict[str, Any]) -> dict[str, Any]:
    """The knobs that a method leaves open, then those of its scores; a baseline's scores are those of its evidence."""
    settings, n_epochs = seen.table.settings, seen.scores.n_epochs
    around = {**settings, "n_epochs": n_epochs, "pruning_ratio": ratio}
    found = knobs.draw(open_knobs(method), key="select", start=start, around=around, scores=seen.names)
    if not has_own_evidence(method):
        tuned = score_knobs_of(method)
        now = {name: settings[setting_of(name)] for name in tuned}
        found |= knobs.draw(tuned, key="select", start=now, around=around)
    return found


def numbers(found: Preview) -> None:
    n, kept = found.coreset.n_pool, found.budget
    with st.container(horizontal=True, gap="medium"):
        st.metric("Kept", f"{kept:,}", f"of {n:,}", delta_color="off", delta_arrow="off")
        st.metric(
            "Human labels",
            f"{found.n_human / kept:.1%}" if kept else "–",
            f"{found.n_human:,} of {found.n_human_before:,}",
            delta_color="off",
            delta_arrow="off",
            help="The share of the coreset that a person labeled.",
        )
        _estimate(found.error)
        if found.wrong_after is not None and found.wrong_before is not None:
            st.metric(
                "Wrong labels (reference)",
                f"{found.wrong_after.value:.1%}",
                f"{found.wrong_before.value:.1%} in the pool",
                delta_color="off",
                delta_arrow="off",
                help="Counted against the reference labels, which the learner never sees.",
            )
    if found.has_more_wrong_labels:
        st.caption(
            ":material/info: Hard images teach the most, but more of their labels are wrong than in the pool. "
            "Have people label this coreset before relying on its labels."
        )
    if found.error.value is None or found.error.is_vague:
        st.caption(f":material/help: {literal(_unknown(found.error), 400)}")


def _unknown(error: ErrorEstimate) -> str:
    """Why little or nothing is known of the error, and what would make it known."""
    if error.value is None:
        return f"Pseudo-label error: not known. {error.words}"
    return (
        f"Pseudo-label error: {error.n} held-out labels say little about these images. About {3 * error.n:,} more "
        "would halve the interval; or have people label the coreset."
    )


def _estimate(error: ErrorEstimate) -> None:
    guess = "" if error.value is None else f"best guess {error.value:.0%}, "
    st.metric(
        "Pseudo-label error, estimated",
        "–" if error.value is None else error.interval,  # few labels leave a wide one: it comes first
        f"{guess}n = {error.n}",
        delta_color="off",
        delta_arrow="off",
        help=error.words,
    )


def gain_here(project: Project, request: CoresetRequest, found: Preview) -> None:
    """What the coreset of the slider saves, against labeling and training on everything."""
    gain = gain_of(
        project,
        method="" if request.given else request.method,  # custom values were evaluated nowhere
        pruning_ratio=request.pruning_ratio,
        n_kept=found.budget,
        n_kept_labeled=found.n_human,
        n_labeled=found.n_human_before,
    )
    gain_panel.draw(project, gain, key="select_gain")


def picture(project: Project, seen: ScoreView, found: Preview, request: CoresetRequest) -> None:
    numbers(found)
    st.plotly_chart(
        score_charts.kept_and_dropped(found, title=score_title(found.score)),
        key="select_histogram",
        config=charts.QUIET,
    )
    gain_here(project, request, found)
    st.markdown("**Class balance**")
    st.plotly_chart(
        score_charts.class_balance(seen.labels.class_names, found.class_before, found.class_after),
        key="select_classes",
        config=charts.QUIET,
    )
    empty = [
        seen.labels.class_names[i]
        for i in range(len(found.class_after))
        if found.class_before[i] and not found.class_after[i]
    ]
    if empty:
        names = ", ".join(literal(name, 40) for name in empty[:5])
        st.warning(f"{count(len(empty), 'class', 'classes')} would vanish: {names}.", icon=":material/warning:")
    st.markdown("**At the border**")
    for number, border in enumerate(found.borders):
        st.caption(f":material/{'check' if border.kept else 'close'}: {border.title}")
        score_images.row(
            project, seen, list(border.positions), key=f"border_{number}", score=found.score, values=found.values
        )


@st.fragment
@errors.shown()
def choose(project: Project, seen: ScoreView) -> None:
    """Controls and picture: a slider move runs this alone."""
    kept = score_views.stored_evidence(project)
    left, right = st.columns([1, 3], gap="large")
    with left:
        request = controls(project, seen, kept)
    own = kept.get(request.method)
    with right:
        try:
            near = latest_scan(project) if request.one_of_each else None
            found = select_view.preview(seen, request, stored=own, found=near)
        except SemiPruneError as error:
            errors.show(error)
            return
        picture(project, seen, found, request)
    with left:
        if st.button("Build coreset", type="primary", icon=":material/done_all:", width="stretch"):
            with errors.shown():
                run = build_coreset(project, request, scores=seen.scores, own=own)
                export_csv(project, run)
                saved_coresets.remember(run, request)
                st.rerun()
        if not saved_coresets.confirm(project, request):
            st.caption(f"Keeps {count(found.budget, 'image')} and writes the CSV files.")


def side_by_side(project: Project, seen: ScoreView, runs: list[CoresetRun]) -> None:
    """Overlap, what changed, and the images coresets agree and disagree about."""
    mine = {run.artifact.id: run for run in runs if run.artifact.facts["n_pool"] == seen.n_images}
    if len(mine) < 2:
        st.caption("Build a second coreset to compare.")
        return
    names = list(mine)
    chosen = st.multiselect("Compare", names, names[-3:], max_selections=SEVERAL, key="select_compare")
    if len(chosen) < 2:
        st.caption("Choose two or more.")
        return
    coresets = [mine[name].coreset() for name in chosen]
    found = select_view.compare(coresets)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown("**Overlap** :gray[(shared images over all images of the two)]")
        st.dataframe(pd.DataFrame(found.jaccard, chosen, chosen).style.format("{:.0%}"), width="stretch")
    with right:
        change = select_view.changed(coresets[0], coresets[-1], seen.labels.labels, len(seen.labels.class_names))
        st.markdown(f"**From {chosen[0]} to {chosen[-1]}**")
        st.markdown(f"{count(len(change.added), 'image')} added, {count(len(change.removed), 'image')} removed.")
        moved = sorted(zip(change.classes.tolist(), seen.labels.class_names, strict=True))
        said = [f"{literal(name, 40)} {n:+,}" for n, name in (*moved[:2], *moved[:-3:-1]) if n]
        if said:
            st.caption("Largest shifts: " + ", ".join(dict.fromkeys(said)))
    for title, n, positions in (
        ("Kept by all", found.n_always, found.always),
        ("Contested", found.n_contested, found.contested),
    ):
        st.markdown(f"**{title}** :gray[{count(n, 'image')}]")
        if positions:
            score_images.row(project, seen, list(positions), key=f"compare_{title}")
    st.caption(f"{count(found.n_never, 'image')} are kept by none of them.")


def main() -> None:
    project = projects.require("select")
    projects.title(BY_KEY["select"].title, BY_KEY["select"].purpose)
    scores: ScoreRun = latest_scores(project)
    stale = score_views.warn_if_out_of_date(project, scores, what="The scores")
    out_of_date.notice(project, project.pool(), key="select", button_only=stale)
    seen = score_views.view(project, scores)
    choose(project, seen)
    search_panel.draw(project, seen.scores)
    runs = [CoresetRun(artifact) for artifact in project.artifacts("coreset")]
    if runs:
        saved_coresets.table(project, runs)
        st.subheader("Side by side", anchor=False)
        side_by_side(project, seen, runs)


main()
