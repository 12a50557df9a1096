"""The form of a new evaluation: which study, which methods, how often, for how long, and the start."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, evaluation_study
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.coresets import RATIOS, SAME_BUDGET_RATIOS
from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation import EvaluationData, EvaluationSettings, matching_test, submit_evaluation
from semiprune_core.evaluation.data import COARSE, resolution_words, smallest_difference
from semiprune_core.evaluation.runs import (
    MethodChoice,
    available_data,
    data_sentence,
    expected_minutes,
    method_choices,
    planned,
    why_no_data,
)
from semiprune_core.evaluation.studies import AXES, LABEL_BUDGET, POOL_SIZE
from semiprune_core.evaluation.view import FULL, RANDOM, percent
from semiprune_core.learning.presets import FINETUNED_NET, SUPERVISED_PRESETS, supervised_preset
from semiprune_core.project.workspace import Project
from semiprune_core.trials import PROBE, SCRATCH, TESTS

COMPARE, SAME_BUDGET = "compare", "same_annotation_budget"
STUDIES = {
    COMPARE: "Compare methods",
    **{kind: axis.title for kind, axis in AXES.items()},
    SAME_BUDGET: "Same annotation budget",
}
ABOUT = {
    COMPARE: "Trains on the coreset of each method at each ratio several times, and tests every network. Shows "
    "whether a method beats random selection, and by how much.",
    LABEL_BUDGET.kind: "Repeats everything with 1, 2, 5, 10 and 20% of the pool labeled: semi-supervised training, "
    "dynamics run, coresets, tests. Shows how many labels a coreset needs to beat random selection.",
    POOL_SIZE.kind: "Repeats everything on larger and larger parts of the pool, a tenth of each labeled: "
    "semi-supervised training, dynamics run, coresets, tests. Shows whether the lead over random selection "
    "grows with the pool.",
    SAME_BUDGET: "Every method gets the same total number of labeled images: the images labeled first belong to "
    "its coreset and count towards the total. Shows whether the first labels were well spent.",
}
MORE_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
USUAL = (RANDOM, "semi_aum_cutoff", "semi_dual_beta")
LONG_MINUTES = 8 * 60
TIME_OF_PROBES = "An estimate for one core. Some methods take extra time to prepare."


def draw(project: Project, *, idle: bool) -> None:
    """Everything needed to start; ``idle`` where no evaluation is under way."""
    study = st.segmented_control(
        "Study", list(STUDIES), default=COMPARE, format_func=STUDIES.__getitem__, required=True, key="evaluate_study"
    )
    st.caption(ABOUT[str(study)])
    data_by_truth = available_data(project)
    if not data_by_truth:
        st.warning(literal(why_no_data(project), 600), icon=":material/label_off:")
        return
    if study in AXES:
        evaluation_study.form(project, AXES[str(study)], data_by_truth, idle=idle)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        settings = choices(project, str(study), tuple(data_by_truth))
    with right:
        if settings is not None:
            start_panel(project, settings, data_by_truth[str(settings.truth)], idle=idle)


def choices(project: Project, study: str, truths: tuple[str, ...]) -> EvaluationSettings | None:
    """What a person chooses; None where it cannot be run."""
    choices_by_name = {choice.name: choice for choice in method_choices(project)}
    usable = [name for name, choice in choices_by_name.items() if choice.problem is None]
    methods = st.pills(
        "Methods",
        usable,
        selection_mode="multi",
        default=[name for name in USUAL if name in usable],
        format_func=lambda name: choices_by_name[name].title,
        key="evaluate_methods",
        wrap=True,
    )
    with st.expander("About the methods", icon=":material/help:"):
        for choice in choices_by_name.values():
            explain(choice)
    usual = SAME_BUDGET_RATIOS if study == SAME_BUDGET else RATIOS
    ratios = st.pills(
        "Pruning ratios",
        MORE_RATIOS,
        selection_mode="multi",
        default=list(usual),
        format_func=percent,
        key=f"evaluate_ratios_{study}",
        wrap=True,
    )
    test = st.segmented_control(
        "Test",
        list(TESTS),
        format_func=TESTS.__getitem__,
        default=matching_test(project),
        required=True,
        key="evaluate_test",
        help="A probe fits a linear head to the pretrained features of each coreset, in a fraction of a second. "
        "Fine-tuned: a network begins with a pretrained encoder's weights. From scratch: the paper's test. Choose what "
        "comes next to how you will train on the coreset.",
    )
    is_probe = test == PROBE
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_seeds = st.number_input(
            "Seeds",
            1,
            20,
            5 if is_probe else 3,
            key="evaluate_seeds_probe" if is_probe else "evaluate_seeds",
            width=110,
            help="Each training is repeated with different seeds. An interval needs at least two; five are better.",
        )
        preset, epochs = ("quick", None) if is_probe else schedule(str(test))
        truth = truths[0]
        if len(truths) > 1:
            truth = st.selectbox(
                "Train with", truths, format_func=lambda truth: f"{truth} labels", key="evaluate_truth", width=200
            )
    whole = st.toggle(
        "Also train on all images",
        value=True,
        key="evaluate_full",
        help="The accuracy to compare with. Without it, results cannot be given as a share of full accuracy.",
    )
    if not methods or not ratios:
        st.info("Choose at least one method and one pruning ratio.", icon=":material/checklist:")
        return None
    try:
        return EvaluationSettings(
            methods=(*((FULL,) if whole else ()), *(name for name in choices_by_name if name in methods)),
            ratios=tuple(sorted(float(ratio) for ratio in ratios)),
            seeds=tuple(range(int(n_seeds))),
            preset=str(preset),
            epochs=epochs,
            truth=str(truth),
            same_annotation_budget=study == SAME_BUDGET,
            study=study,
            test=str(test),
        )
    except SemiPruneError as error:
        errors.show(error)
        return None


def schedule(test: str) -> tuple[str, int | None]:
    """How nets are trained: the preset, and the epochs where they differ from it."""
    preset, usual = "quick", FINETUNED_NET.epochs
    if test == SCRATCH:
        preset = str(
            st.selectbox(
                "Preset",
                list(SUPERVISED_PRESETS),
                format_func=SUPERVISED_PRESETS.title,
                key="evaluate_preset",
                width=200,
            )
        )
        usual = supervised_preset(preset).epochs
    epochs = st.number_input(
        "Epochs",
        1,
        10_000,
        usual,
        key=f"evaluate_epochs_{preset if test == SCRATCH else test}",
        width=120,
        help="Passes over the whole pool. Short presets make up to five times as many passes over small "
        "coresets. The last epoch counts, not the best: choosing the best would need the test labels.",
    )
    return preset, None if int(epochs) == usual else int(epochs)


def explain(choice: MethodChoice) -> None:
    needs = "" if choice.looks_at == "Nothing" else f" Uses: {literal(choice.looks_at)}."
    about = f" {literal(choice.about, 300)}" if needs and choice.about else ""
    st.markdown(f"**{literal(choice.title)}** {literal(choice.explain, 400)} :gray[{needs}{about}]")
    if choice.problem:
        st.caption(f":material/block: {literal(choice.problem, 300)}")


def start_panel(project: Project, settings: EvaluationSettings, data: EvaluationData, *, idle: bool) -> None:
    """What it stands on, how many trainings, how long; and the button."""
    with st.container(border=True):
        st.markdown("**What it will do**")
        st.markdown(data_sentence(data, settings.test))
        if settings.truth == "pseudo":
            st.warning(
                "Networks are trained on pseudo-labels, so the numbers show how well a coreset teaches the "
                "model's own answers. That may flatter methods that select by them. Reference labels, or a "
                "human label for every image, would say more.",
                icon=":material/warning:",
            )
        if RANDOM not in settings.methods:
            st.info("Add Random to see whether a method beats chance.", icon=":material/casino:")
        if len(settings.seeds) == 1:
            st.info("One seed gives no interval: a lead may be chance.", icon=":material/looks_one:")
        told = resolution_words(data.n_test, len(settings.seeds))
        if smallest_difference(data.n_test, len(settings.seeds)) > COARSE:
            st.warning(f"{told} More test images help most, then seeds.", icon=":material/straighten:")
        else:
            st.caption(told)
        n, minutes = len(planned(settings)), expected_minutes(project, settings, len(data.chosen_from))
        with st.container(horizontal=True, gap="medium"):
            st.metric("Probes" if settings.test == PROBE else "Trainings", f"{n:,}")
            if settings.test != PROBE:
                st.metric("Epochs each", settings.supervised().epochs_at(ratio for _, ratio, _ in planned(settings)))
            st.metric("Takes about", duration(60 * minutes) if minutes is not None else "unknown")
        st.caption(TIME_OF_PROBES if settings.test == PROBE else time_words(minutes))
        if minutes is not None and minutes > LONG_MINUTES:
            st.warning(
                "This will take long. Fewer ratios, methods, seeds or epochs shorten it. Short trainings come "
                "first, and finished ones are kept when you stop.",
                icon=":material/schedule:",
            )
        if st.button(
            f"Start {count(n, 'probe' if settings.test == PROBE else 'training')}",
            type="primary",
            icon=":material/play_arrow:",
            key="evaluate_start",
            disabled=not idle,
            width="stretch",
        ):
            start(project, settings)
        if not idle:
            st.caption("Another evaluation is running. Stop it, or wait until it ends.")


def time_words(minutes: float | None) -> str:
    if minutes is None:
        return (
            "No run with this preset has been timed on this pool yet. Short trainings come first, so the time "
            "left is known after a few. Methods that need more than scores take extra time to prepare."
        )
    return "Based on earlier runs with this preset on this pool. Some methods take extra time to prepare."


def start(project: Project, settings: EvaluationSettings) -> None:
    with errors.shown():
        with st.spinner("Checking what this machine can train with"):
            submit_evaluation(project, settings)
        jobs.supervise(project.workspace)
        st.rerun()
