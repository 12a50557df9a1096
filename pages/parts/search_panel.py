"""The search on the Select page: start it, watch it, take its values."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.parts import errors, job_panel, search_charts
from pages.parts.charts import QUIET
from pages.parts.text import count, duration, literal
from semiprune_core import search
from semiprune_core.baselines.evidence import evidence_at_hand
from semiprune_core.coresets.starting_values import searches_of
from semiprune_core.errors import SemiPruneError
from semiprune_core.jobs import Job, JobStatus, list_jobs
from semiprune_core.methods import METHODS, needs_of
from semiprune_core.project.workspace import Project
from semiprune_core.results import ScoreRun
from semiprune_core.results.score_source import ScoreSource, has_own_evidence
from semiprune_core.results.search import BestValue, SearchRun, SearchSettings
from semiprune_core.selection.defaults import PAPER_RATIOS
from semiprune_core.trials import FINETUNE, PROBE, SCRATCH, TESTS, usual_test

EVERY = 1.5
CHEAP, FULL = "Cheap", "Full"
KNOBS = {"cutoff": "Cutoff", "c_d": "c_D"}
LONGER = "More seeds, the full schedule or a larger pool"
MORE = {PROBE: "More seeds or a larger pool", FINETUNE: LONGER, SCRATCH: LONGER}
VERDICTS = {
    "better": ":green[beats Random]",
    "unclear": ":gray[may be chance]",
    "worse": ":orange[Random is better]",
    "unknown": ":gray[one seed: no verdict]",
}


def draw(project: Project, scores: ScoreRun) -> None:
    """The whole section; open while a search is under way."""
    job = next(iter(list_jobs(project, search.KIND)), None)
    status = job.status() if job is not None else None
    is_active = status is not None and not status.is_over
    with st.expander("Search for the best values", icon=":material/manage_search:", expanded=is_active):
        st.caption(
            "Tries cutoffs, or values of T and c_D, on this pool: learns from coresets of 90% of the "
            "pseudo-labeled images, tests on the other 10%, and compares with Random. The best values become "
            "the defaults above. ELFS and other methods whose labels are clusters can be searched once they "
            "have been evaluated."
        )
        if job is not None and is_active:
            _watch(job)
        else:
            if job is not None and status is not None and status.is_resumable:
                _interrupted(job, status)
            _form(project, scores)
        _results(project, scores)


def _at_hand(project: Project, scores: ScoreRun) -> dict[str, ScoreSource]:
    """The methods that can be searched, with what they choose by: these scores, or evidence that was made."""
    available, stored = {*scores.names, "mean_prob"}, evidence_at_hand(project)
    own = [name for name in search.searchable_methods() if not has_own_evidence(name)]
    by_method: dict[str, ScoreSource] = {name: scores for name in own if available.issuperset(needs_of(name))}
    return by_method | {name: stored[name] for name in search.searchable_methods() if name in stored}


# --- starting ------------------------------------------------------------------------------------------------------


@st.fragment
@errors.shown()
def _form(project: Project, scores: ScoreRun) -> None:
    """A change of the form runs this alone."""
    at_hand = _at_hand(project, scores)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = str(st.selectbox("Method", list(at_hand), format_func=METHODS.title, key="search_method", width=240))
        ratios = st.multiselect(
            "Pruning ratios",
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
            list(PAPER_RATIOS),
            key="search_ratios",
            width=420,
        )
        usual = usual_test(project)
        test = usual
        if usual == PROBE:
            test = st.segmented_control(
                "Test",
                list(TESTS),
                format_func=TESTS.__getitem__,
                default=usual,
                required=True,
                key="search_test",
                help="A probe fits a linear head to the features of a coreset in a fraction of a second. Otherwise a "
                "network is trained on its images, beginning with an encoder's weights or from scratch.",
            )
        seeds = st.number_input(
            "Seeds",
            1,
            20,
            search.PROBE_SEEDS if test == PROBE else 2,
            key="search_seeds" if test != PROBE else "search_seeds_probe",
            width=110,
            help="Draws and trainings per value. One alone cannot tell a lead from chance.",
        )
        length = CHEAP
        if test != PROBE:
            on_cpu = project.artifact(scores.trajectory_ids[0]).manifest["device"] == "cpu"
            length = st.segmented_control(
                "Schedule",
                [CHEAP, FULL],
                default=CHEAP if on_cpu else FULL,
                required=True,
                key="search_length",
                help="Cheap trains for half the epochs: enough to compare values, too few to reach their full "
                "accuracy.",
            )
        start = st.selectbox(
            "Start from",
            [None, *search.starts()],
            format_func=lambda name: name or "Full grid",
            key="search_start",
            width=220,
            help="Tries only the paper's values for a data set and their neighbours: fewer trials.",
        )
    try:
        settings = search.search_settings(
            project,
            source=at_hand[method],
            method=method,
            ratios=tuple(sorted(ratios)),
            seeds=tuple(range(int(seeds))),
            cheap=length == CHEAP,
            start=start,
            test=str(test),
        )
        plan = search.plan_search(project, settings, at_hand[method])
    except SemiPruneError as error:
        errors.show(error)
        return
    time = f" Takes about {duration(plan.seconds)} on this machine." if plan.seconds is not None else ""
    st.caption(f"{count(plan.n_trials, 'trial')}, {literal(settings.in_words)}.{time}")
    if st.button("Start search", icon=":material/play_arrow:", key="search_begin"):
        with errors.shown():
            with st.spinner("Starting"):
                search.submit_search(project, settings)
            st.rerun()


# --- watching ------------------------------------------------------------------------------------------------------


@st.fragment(run_every=EVERY)
@errors.shown()
def _watch(job: Job) -> None:
    status = job.status()
    if status.is_over:
        st.rerun()
    settings = SearchSettings.from_json(job.settings)
    with st.container(border=True):
        job_panel.head(job, status, note=settings.in_words)
        job_panel.progress(status, _sentence(status))
        _picture(search.partial_search(job), settings, key=job.id)


def _sentence(status: JobStatus) -> str:
    if status.stop_requested:
        return "Stopping after this batch; finished trials are kept"
    facts = status.facts
    if not status.total or "trials_total" not in facts:
        return "Starting: loading the images"
    parts = [f"{facts['trials_done']:,} of {facts['trials_total']:,} trials", str(facts["trial"])]
    if status.seconds_left is not None:
        parts.append(f"{duration(status.seconds_left)} left")
    return " · ".join(parts)


def _interrupted(job: Job, status: JobStatus) -> None:
    """A search that did not end: why, what it found so far, and the way on."""
    with st.container(border=True):
        st.markdown(f"**{literal(job.title)}**")
        table = search.partial_search(job)
        total = status.facts.get("trials_total")
        job_panel.outcome(status, what="The search", stopped="Stopped. Resume continues with the next trial.")
        st.caption(f"{count(len(table), 'finished trial')}{f' of {total:,}' if total else ''} saved.")
        _picture(table, SearchSettings.from_json(job.settings), key=job.id)
        job_panel.buttons(job, status)


# --- results -------------------------------------------------------------------------------------------------------


def _picture(table: pd.DataFrame, settings: SearchSettings, *, key: str) -> None:
    """What is known so far: T, the curves, the trials."""
    tried = search.epochs_tried(table)
    if tried:
        epochs_text = ", ".join(f"T {n_epochs}: {accuracy:.1%}" for n_epochs, accuracy in tried.items())
        st.caption(f"T at ratio {search.EPOCHS_RATIO:g}: {epochs_text}.")
    curves = search.curves(table)
    if curves:
        figure = search_charts.accuracy_over_values(curves, knob=KNOBS[settings.knob], tested_by=TESTS[settings.test])
        st.plotly_chart(figure, key=f"curves_{key}", config=QUIET)
        st.caption("Dashed: Random at the same ratio. The band is its standard deviation over seeds.")
    if len(table):
        with st.popover(f"All {count(len(table), 'trial')}", icon=":material/table:"):
            shown = table.assign(method=table["method"].map(METHODS.title))
            st.dataframe(
                shown[["method", "pruning_ratio", "value", "n_epochs", "seed", "n_train", "accuracy"]],
                hide_index=True,
                column_config={"accuracy": st.column_config.NumberColumn(format="percent")},
            )


def _results(project: Project, scores: ScoreRun) -> None:
    """The newest result of each method that holds for what it chooses by now."""
    listed = project.artifacts(search.KIND)
    for method, source in _at_hand(project, scores).items():
        for newest in searches_of(project, source, method, listed)[:1]:
            _result(newest)


def _result(run: SearchRun) -> None:
    settings, facts = run.settings, run.artifact.facts
    st.markdown(f"**{METHODS.title(settings.method)}** :gray[{run.artifact.id}]")
    st.caption(
        f"{count(facts['n_trials'], 'trial')} of {literal(settings.in_words)}, {duration(60 * facts['minutes'])}, "
        f"compared on {count(facts['n_compared'], 'held-out pseudo-label')}."
    )
    if not any(best.verdict == "better" for best in run.best):
        st.info(
            "Nothing beats Random beyond chance at any of these ratios, so the starting values stay. "
            f"{MORE[settings.test]} may tell values apart.",
            icon=":material/balance:",
        )
    for best in run.best:
        _best(run, best)
    _picture(run.trials(), settings, key=run.artifact.id)


def _best(run: SearchRun, best: BestValue) -> None:
    key = f"use_{run.artifact.id}_{best.pruning_ratio:g}"
    ratio, value, numbers, verdict, use = st.columns([1, 2, 5, 2.2, 1], vertical_alignment="center")
    ratio.markdown(f"Ratio **{best.pruning_ratio:g}**")
    value.markdown(f"**{literal(best.value_words)}**")
    half = "" if best.difference_half is None else f" ± {100 * best.difference_half:.1f}"
    numbers.markdown(
        f"{best.mean:.1%} ± {100 * best.spread:.1f} "
        f":gray[Random {best.random_mean:.1%} ± {100 * best.random_spread:.1f}, "
        f"difference {100 * best.difference:+.1f}{half} points]",
        help="Accuracies with their standard deviation over the seeds; the difference with half its 95% interval, "
        f"which allows for having picked the best of all values. {search.OVER_SEARCH}",
    )
    verdict.markdown(VERDICTS[best.verdict], help=best.sentence)
    used = use.button(
        "Use",
        key=key,
        icon=":material/north_east:",
        on_click=_use,
        args=(run.settings.method, best.pruning_ratio),
        help="Use this method, ratio and value above.",
    )
    if used:
        st.rerun()


def _use(method: str, ratio: float) -> None:
    """The controls above take a searched value by themselves where nobody sets the knobs."""
    st.session_state["select_method"] = method
    st.session_state["select_ratio"] = ratio
    st.session_state["select_own"] = False
