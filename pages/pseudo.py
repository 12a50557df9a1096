"""Pseudo-labels: how good they are and how sure that is, where they go wrong, and mending them on the spot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.parts import (
    annotator_name,
    charts,
    components,
    errors,
    image_list,
    labeling_elements,
    out_of_date,
    pseudo_charts,
    report_cache,
    views,
)
from pages.parts import project as projects
from pages.parts.text import count, literal
from semiprune_core import jobs, training, trust
from semiprune_core.errors import SemiPruneError
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.learning.quality import Share
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun
from semiprune_core.results.pseudo import FROZEN
from semiprune_core.server import review_queue
from semiprune_core.steps import BY_KEY
from semiprune_core.trust import quality_report, review
from semiprune_core.trust.quality_report import Report

VIEWS = {
    "quality": ":material/verified: Quality",
    "classes": ":material/bar_chart: Classes",
    "confusion": ":material/grid_on: Confusion",
    "review": ":material/rate_review: Review",
    "compare": ":material/compare_arrows: Compare runs",
}
LIGHTS = {
    "green": (st.success, ":material/check_circle:"),
    "amber": (st.warning, ":material/warning:"),
    "red": (st.error, ":material/dangerous:"),
}
MARKS = {
    "green": ":green[:material/check_circle:]",
    "amber": ":orange[:material/warning:]",
    "red": ":red[:material/dangerous:]",
    "grey": ":gray[:material/help:]",
}
MOST_CELLS = 30  # up to so many classes the confusion matrix is drawn; beyond, the most frequent confusions are listed


def run_title(run: PseudoRun) -> str:
    """A run in a few words: algorithm, labels, seed."""
    settings, facts = run.artifact.settings, run.artifact.facts
    name = "features" if run.start == FROZEN else str(settings.get("algorithm", "run"))
    return f"{run.artifact.id} · {name} · {facts['n_human']:,} labels · seed {run.artifact.manifest['seed']}"


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def interval(share: Share) -> str:
    return f"{percent(share.low)} to {percent(share.high)}"


def trust_check(report: Report, stability: trust.Stability, *, brief: bool = False) -> None:
    """The verdict with its reasons; ``brief``: one line, the reasons behind it."""
    judged = trust.judge(report, stability)
    say, icon = LIGHTS[judged.level]
    lines = [f"{MARKS[reason.level]} {reason.word}: {literal(reason.sentence, 400)}" for reason in judged.reasons]
    if brief:
        with st.expander(f"{judged.level.capitalize()}: {literal(judged.verdict, 400)}", icon=icon):
            st.markdown("  \n".join(lines))
        return
    say(f"**{literal(judged.verdict, 400)}**\n\n" + "  \n".join(lines), icon=icon)


def numbers(report: Report) -> None:
    with st.container(horizontal=True, gap="medium"):
        if report.held_out is not None:
            share = report.held_out.accuracy
            st.metric(
                "Held-out accuracy",
                percent(share.value),
                delta=f"{interval(share)}, n = {share.n}",
                delta_color="off",
                delta_arrow="off",
                help=f"Measured on {report.held_out.measured_on} The range is the 95% Wilson interval.",
            )
        reference = report.reference
        if reference is not None:
            note = f"Against the reference labels of {reference.n:,} images that no person labeled."
            st.metric("Reference accuracy", percent(reference.accuracy), help=note)
            st.metric(
                "Balanced accuracy",
                percent(reference.balanced_accuracy),
                help="The mean of the accuracies of all classes.",
            )
            st.metric("NMI", percent(reference.nmi), help="Normalised mutual information with the reference classes.")
            st.metric("ARI", percent(reference.ari), help="Adjusted Rand index against the reference classes.")
    if report.held_out is not None:
        st.caption(literal(f"Measured on {report.held_out.measured_on}", 400))
    else:
        st.info(
            "This run held out no labels, so only reference labels could measure it. Train again with some held out.",
            icon=":material/info:",
        )


def quality(report: Report) -> None:
    held_out = report.held_out
    left, right = st.columns(2)
    with left:
        st.markdown("**How confident the model is**")
        model = ~report.run.labels().human_mask
        st.plotly_chart(
            pseudo_charts.confidences(np.asarray(report.run.confidence())[model]),
            key="pseudo_histogram",
            config=charts.QUIET,
        )
    with right:
        st.markdown("**Is it right as often as it claims?**")
        if held_out is not None:
            st.plotly_chart(pseudo_charts.reliability(held_out.bins), key="pseudo_reliability", config=charts.QUIET)
        else:
            st.caption("This needs held-out labels.")
    if held_out is None:
        return
    st.caption(f"Expected calibration error {percent(held_out.ece)}. Larger dots stand for more held-out labels.")
    st.markdown("**Class by class**")
    st.plotly_chart(
        pseudo_charts.accuracy_per_class(report.class_names, held_out.per_class, held_out.accuracy),
        key="pseudo_per_class",
        config=charts.QUIET,
    )
    more = quality_report.labels_to_halve(held_out.accuracy)
    st.markdown(f"Halving the overall interval takes about **{more:,} more held-out labels**.")
    st.dataframe(
        pd.DataFrame([_class_row(*pair) for pair in zip(report.class_names, held_out.per_class)]), hide_index=True
    )
    st.caption("The last column counts further held-out labels of that class. Fewer than five measure nothing.")


def _class_row(name: str, share: Share | None) -> dict[str, str]:
    if share is None:
        return {"Class": name, "Accuracy": "not measured", "Range": "", "Right": "", "To halve the range": ""}
    return {
        "Class": name,
        "Accuracy": percent(share.value),
        "Range": interval(share),
        "Right": f"{share.right} of {share.n}",
        "To halve the range": f"{quality_report.labels_to_halve(share):,}",
    }


def whole(value: float | None) -> str:
    """A count for a table; what is not known is a dash."""
    return "–" if value is None else f"{value:,.0f}"


def classes(report: Report) -> None:
    odd = [row for row in report.classes if row.verdict]
    for row in odd[:8]:
        words = "got no images" if row.verdict == "none" else f"got {row.verdict} images"
        st.warning(
            f"**{literal(row.name)}** {words}: {row.n_pseudo:,}"
            + (f", {row.low:,.0f} to {row.high:,.0f} expected." if row.low is not None else "."),
            icon=":material/warning:",
        )
    if not odd:
        st.caption("Every class got about as many images as the random human labels suggest.")
    st.plotly_chart(pseudo_charts.distribution(report.classes), key="pseudo_distribution", config=charts.QUIET)
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "Class": row.name,
                    "Pseudo-labels": row.n_pseudo,
                    "Human labels": row.n_human,
                    "Expected": whole(row.expected),
                    "Low": whole(row.low),
                    "High": whole(row.high),
                    "Reference": whole(row.n_reference),
                    "Remark": row.verdict or "",
                }
                for row in report.classes
            ]
        ),
        hide_index=True,
    )


def confusion(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, subset: str | None) -> None:
    found = report_cache.confusion_of(project, pool, store, run, subset)
    if found is None:
        st.info(
            "A confusion matrix needs labels that the model never saw, and this run has none. Train again with some "
            "held out.",
            icon=":material/info:",
        )
        return
    st.caption(literal(f"Counted on {found.measured_on}", 400))
    names, table = found.names, found.counts
    if len(names) <= MOST_CELLS:
        chosen = components.confusion_matrix(
            names, table.tolist(), key="pseudo_matrix", chosen=st.session_state.get("pseudo_cell")
        )
        st.session_state["pseudo_cell"] = chosen
        st.caption(
            "Blue is right, orange is wrong; stronger colours are larger shares of the row. Click a cell "
            "to see its images."
        )
    else:
        chosen = frequent_confusions(names, table)
    if chosen is None:
        return
    positions = found.cell(*chosen)
    true_name, model_name = names[chosen[0]], names[chosen[1]]
    st.markdown(
        f"**{literal(true_name)}**, labeled **{literal(model_name)}** by the model: {count(len(positions), 'image')}"
    )
    image_list.show(project, pool, positions, key="pseudo_confused", given="Least confident first")


def frequent_confusions(names: tuple[str, ...], table: np.ndarray) -> tuple[int, int] | None:
    """Too many classes for a matrix: the most frequent confusions as a list to choose from."""
    wrong = table.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:50]
    pairs = [(int(flat) // len(names), int(flat) % len(names)) for flat in order if wrong.flat[flat]]
    rows = pd.DataFrame(
        [{"True class": names[a], "Model says": names[b], "Images": int(table[a, b])} for a, b in pairs]
    )
    st.caption(f"{len(names)} classes are too many for a matrix. Choose one of the 50 most frequent confusions.")
    event = st.dataframe(rows, hide_index=True, on_select="rerun", selection_mode="single-row", key="pseudo_pairs")
    return pairs[event.selection.rows[0]] if event.selection.rows else None


def reviewing(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, others: list[PseudoRun]) -> None:
    """Doubtful images first: one by one with the model's answer as the suggestion, or as a gallery."""
    signals = review_queue.cached_signals(project, run, others)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        way = st.segmented_control(
            "View", ["One by one", "Gallery"], default="One by one", required=True, key="review_one_by_one"
        )
        titles = {"all": "All signals", **{name: review.SIGNALS[name] for name in signals}}
        signal = st.selectbox("Order by", list(titles), format_func=titles.get, key="review_signal", width=220)
    st.caption(
        "Enter accepts the model's answer, a class key corrects it. Either way it becomes a human label. "
        "Because you saw the model's answer, it never counts towards held-out accuracy."
    )
    newest = run.artifact.id == project.artifacts("pseudo")[-1].id
    annotator = annotator_name.current()
    if way == "One by one" and newest:
        if annotator is not None:
            queue = "doubt" if signal == "all" else f"doubt_{signal}"
            labeling_elements.deck(project, store, annotator=annotator, queue=queue)
            return
        st.caption("To answer one by one, enter your name below. The images are here to be seen.")
    if not newest:
        st.caption("Only the newest run can be reviewed one by one. This is an older run.")
    settled = review.settled(pool, run, store)
    ordered = review.doubt(signals, use=None if signal == "all" else (str(signal),), leave_out=settled)
    image_list.show(project, pool, ordered.order, key="review", given="Most doubtful first")


def another_seed(project: Project, store: LabelStore, run: PseudoRun) -> None:
    """One button to learn what the seed does, where the labels are still those of the run."""
    live = [job for job in jobs.list_jobs(project, training.KIND) if not job.status().is_over]
    if live:
        st.caption(f"{literal(live[0].title)} is running. Its progress is on the Train page.")
        return
    if not training.labels_are(project, run.artifact.inputs.get("labels"), store.snapshot()):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        asked = st.button("Train with another seed", key="pseudo_twin", icon=":material/casino:")
        st.caption("Repeats this run with a new seed to show how much the pseudo-labels depend on chance.")
    if not asked:
        return
    try:
        settings = training.Run(None, run.artifact).settings
    except (SemiPruneError, KeyError):
        st.error("This run's settings were not recorded. Start a new one on the Train page.", icon=":material/error:")
        return
    errors.attempt(lambda: training.start_training(project, settings.replace(seed=settings.seed + 1)))


def comparing(project: Project, pool: Pool, store: LabelStore, run: PseudoRun, others: list[PseudoRun]) -> None:
    if not trust.seed_twins(run, others):
        another_seed(project, store, run)
    if not others:
        st.info(
            "There is only one run. Train with another algorithm, budget or seed to compare.", icon=":material/info:"
        )
        return
    second = st.selectbox("Compare with", others, format_func=run_title, key="pseudo_second")
    result = quality_report.compare(pool, run, second, uniform=store.uniform_labels())
    reports = [report_cache.report_of(project, pool, store, compared, None) for compared in (run, second)]
    st.metric("Agreement", percent(result.agreement))
    rows = {}
    for report, title in zip(reports, ("This run", "The other"), strict=True):
        held_out, reference = report.held_out, report.reference
        rows[title] = {
            "Run": run_title(report.run),
            "Held-out accuracy": "unknown"
            if held_out is None
            else f"{percent(held_out.accuracy.value)} ({interval(held_out.accuracy)})",
            "Calibration error": "unknown" if held_out is None else percent(held_out.ece),
            **(
                {}
                if reference is None
                else {
                    "Reference accuracy": percent(reference.accuracy),
                    "Balanced accuracy": percent(reference.balanced_accuracy),
                    "NMI": percent(reference.nmi),
                    "ARI": percent(reference.ari),
                }
            ),
        }
    st.dataframe(pd.DataFrame(rows))
    if result.n_common:
        st.caption(
            f"On {count(result.n_common, 'held-out label')} that neither run saw, only this run was right "
            f"{result.only_first} times, only the other {result.only_second} times."
        )
    with st.expander("Class by class"):
        st.dataframe(pd.DataFrame(result.counts, columns=["Class", "This run", "The other"]), hide_index=True)
    st.markdown(f"**Where they differ**: {count(len(result.differ), 'image')}")
    image_list.show(project, pool, result.differ, key="pseudo_differ", given="Most confident disagreements first")


def main() -> None:
    project = projects.require("pseudo")
    annotator_name.recall()
    projects.title(BY_KEY["pseudo"].title, BY_KEY["pseudo"].purpose)
    store, whole = open_store(project), project.pool()
    runs = [PseudoRun(artifact) for artifact in reversed(project.artifacts("pseudo"))]
    subsets = quality_report.tagged_subsets(whole)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = runs[0]
        if len(runs) > 1:
            run = st.selectbox("Run", runs, format_func=run_title, key="pseudo_run", width=380)
        subset = None
        if subsets:
            chosen = st.selectbox("Images", ["All images", *subsets], key="pseudo_subset", width=240)
            subset = None if chosen == "All images" else chosen
    pool = quality_report.pool_of_run(whole, run)
    others = [other for other in runs if other.artifact.id != run.artifact.id]
    out_of_date.notice(project, whole, key="pseudo")
    view = views.choose(VIEWS, key="pseudo_view")
    report = report_cache.report_of(project, pool, store, run, subset)
    if view != "review":  # there the pictures come first
        numbers(report)
        trust_check(report, trust.stability_of(project, run, others), brief=view != "quality")
    if view == "quality":
        quality(report)
    elif view == "classes":
        classes(report)
    elif view == "confusion":
        confusion(project, pool, store, run, subset)
    elif view == "review":
        reviewing(project, pool, store, run, others)
    else:
        comparing(project, pool, store, run, others)


main()
