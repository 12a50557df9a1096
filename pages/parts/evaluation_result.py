"""What an evaluation found: a sentence, the plot, the table, its cost, and files to take away."""

from __future__ import annotations

import hashlib

import pandas as pd
import streamlit as st

from pages.parts import errors, evaluation_charts, gain_panel
from pages.parts.text import count, duration, literal
from semiprune_core import jobs
from semiprune_core.evaluation import submit_evaluation
from semiprune_core.evaluation.files import html_table, latex_table, summary_csv, table_caption, trials_csv
from semiprune_core.evaluation.gain import gain_of
from semiprune_core.evaluation.not_relabeled import SUFFIX, can_have_twin, twin_of, twin_settings, with_twin
from semiprune_core.evaluation.paper import PaperNumbers, paper_numbers
from semiprune_core.evaluation.plot import CROWD, PlotStyle, svg_plot
from semiprune_core.evaluation.runs import TESTED_ON, TRUTHS, WARNINGS, Evaluation
from semiprune_core.evaluation.view import RANDOM, EvaluationView, percent
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results.search import OVER
from semiprune_core.trials import FINETUNE, PROBE, SCRATCH

LAST = {True: "; the last epoch counts", False: ""}
BANDS = {"sd": "standard deviation", "interval": "95% interval of the mean", "none": "none"}
PLOTS = {"accuracy": "Accuracy", "difference": "Points above Random"}
CONTENTS = {"accuracy": "Accuracy", "difference": "Points above Random", "minutes": "Minutes"}
STYLE = """<style>
.studio-evaluation { overflow-x: auto; }
.studio-evaluation table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: 0; }
.studio-evaluation th, .studio-evaluation td { padding: .38rem .7rem; text-align: right; white-space: nowrap;
  border: none; border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent); font-weight: 400; }
.studio-evaluation thead th { border-top: 2px solid currentColor; border-bottom: 1px solid currentColor; }
.studio-evaluation th:first-child { text-align: left; padding-left: .2rem; }
.studio-evaluation tbody tr:last-child > * { border-bottom: 2px solid currentColor; }
.studio-evaluation .full > * { border-top: 1px solid currentColor; }
.studio-evaluation .spread, .studio-evaluation .none { opacity: .6; }
.studio-evaluation .paper { display: block; font-size: .82em; opacity: .65; }
.studio-evaluation u { text-underline-offset: 3px; }
</style>"""


def show(project: Project, evaluation: Evaluation, *, key: str) -> None:
    """Everything about an evaluation's trials so far; nothing drawn twice while they come in."""
    trials = evaluation.trials()
    view = evaluation.view(trials)
    if view.is_empty:
        st.caption("No training has finished yet. Results appear here one by one.")
        return
    sentence(view, key=key)
    for warning in filter(None, map(evaluation.facts.get, WARNINGS)):
        st.warning(literal(warning, 1000), icon=":material/warning:")
    if view.caveat:
        st.info(literal(view.caveat, 400), icon=":material/info:")
    paper = None
    if evaluation.test == SCRATCH:  # the paper trains nets
        paper = paper_numbers(
            project,
            evaluation.titles,
            preset=evaluation.preset,
            truth=evaluation.truth,
            epochs=evaluation.epochs,
            same_annotation_budget=evaluation.same_annotation_budget,
        )
    twin = twin_of(project, evaluation)
    if twin is not None:
        view = with_twin(view, twin.view())
    name = file_name(evaluation.id if evaluation.artifact is not None else "evaluation-partial", view)
    look = plot(view, name, key=key)
    unrelabeled(project, evaluation, twin)
    table(view, paper, key=key)
    for note in view.notes[:5]:
        st.caption(f":material/info: {literal(note, 400)}")
    stands_on(project, evaluation, view)
    downloads(name, view, trials, paper, look=look, key=key)
    gain(project, view, key=key)


def unrelabeled(project: Project, evaluation: Evaluation, twin: Evaluation | None) -> None:
    """What happens if nobody relabels the coreset: dotted in the plot, or a button that finds it out."""
    if twin is not None:
        st.caption(
            "Dotted: the same coresets with the labels that the model gave them, as if nobody relabeled them "
            f"({literal(twin.id)})."
        )
        return
    if not can_have_twin(evaluation):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "These coresets were learned with true labels. What if nobody relabels them, and the model's labels stay?",
            width="stretch",
        )
        if st.button("Add that curve", key=f"twin_{evaluation.id}", icon=":material/add_chart:"):
            errors.attempt(lambda: start_twin(project, evaluation))


def start_twin(project: Project, evaluation: Evaluation) -> None:
    submit_evaluation(project, twin_settings(evaluation))
    jobs.supervise(project.workspace)


def gain(project: Project, view: EvaluationView, *, key: str) -> None:
    """What the coreset that is talked about saves, for the newest one that was built with its method and ratio."""
    ratio = st.session_state.get(f"{key}_ratio") or view.usual_ratio()
    method = st.session_state.get(f"{key}_method") or (view.leader(ratio) if ratio is not None else None)
    built = next((run for run in reversed(project.artifacts("coreset")) if _is_of(run, method, ratio)), None)
    cell = view.cell(method, ratio) if method is not None and ratio is not None else None
    pseudo = project.latest("pseudo")
    if cell is None or method is None or ratio is None or pseudo is None:
        return
    n_labeled = int(pseudo.facts["n_human"])
    n_pool = len(project.pool())
    measured = gain_of(
        project,
        method=method,
        pruning_ratio=ratio,
        n_kept=cell.n_train,
        n_kept_labeled=built.facts["n_human"] if built is not None else round(n_labeled * cell.n_train / n_pool),
        n_labeled=n_labeled,
    )
    gain_panel.draw(project, measured, key=f"{key}_gain")


def _is_of(coreset: Artifact, method: str | None, ratio: float | None) -> bool:
    return (coreset.settings["method"], coreset.settings["pruning_ratio"]) == (method, ratio)


def sentence(view: EvaluationView, *, key: str) -> None:
    """The answer first; another ratio or method is one click away."""
    ratio = view.usual_ratio()
    if ratio is None:
        st.markdown(f"#### {literal(view.sentence(), 400)}")
        return
    words = st.container()
    answered = [candidate for candidate in view.ratios if view.leader(candidate) is not None]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        asked = ratio
        if len(answered) > 1:
            asked = st.segmented_control(
                view.axis, answered, default=ratio, format_func=percent, required=True, key=f"{key}_ratio"
            )
            asked = asked if asked in answered else ratio
        here = [method for method in view.methods if view.cell(method, asked) is not None and method != RANDOM]
        method = None
        if len(here) > 1:
            best = view.leader(asked)
            method = st.selectbox(
                "Method",
                [None, *here],
                format_func=lambda name: f"Best: {view.title(str(best))}" if name is None else view.title(name),
                key=f"{key}_method",
                width=280,
            )
            method = method if method in here else None
    words.markdown(f"#### {literal(view.sentence(asked, method), 400)}")
    rivals = [name for name in here if name not in view.unranked]
    notes = [view.rivals_sentence(asked, method)]
    if method is None and len(rivals) > 2:
        notes.append(
            f"The best of {len(rivals)} methods by mean accuracy. Picking the best of several makes its lead "
            f"look slightly larger than it is."
        )
    if any(notes):
        words.caption(literal(" ".join(filter(None, notes)), 1000))


def plot(view: EvaluationView, name: str, *, first: str = "accuracy", key: str) -> PlotStyle:
    """The chart, and what it shows; ``first`` until something else is chosen."""
    several = any(cell.n > 1 for cell in view.cells.values())
    compared = any(cell.difference is not None for cell in view.cells.values())
    content, band = "accuracy", "none"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if compared:
            content = st.segmented_control(
                "Plot",
                list(PLOTS),
                default=first,
                format_func=PLOTS.__getitem__,
                required=True,
                key=f"{key}_content",
            )
        if several and content == "accuracy":
            band = st.segmented_control(
                "Band",
                list(BANDS),
                default="sd",
                format_func=BANDS.__getitem__,
                required=True,
                help=OVER,
                key=f"{key}_band",
            )
    look = PlotStyle(str(content), "interval" if several and content == "difference" else str(band))
    st.plotly_chart(
        evaluation_charts.line_plot(view, look),
        key=f"{key}_plot",
        config=evaluation_charts.config(name),
        alt=view.sentence(),
    )
    notes = []
    if look == PlotStyle("difference", "interval"):
        notes.append("Bars are the 95% intervals of the paired differences.")
    if len([method for method in view.methods if view.row(method)]) > CROWD:
        notes.append("Click a name in the legend to show or hide its line.")
    if notes:
        st.caption(" ".join(notes))
    return look


def table(view: EvaluationView, paper: PaperNumbers | None, *, key: str) -> None:
    """As in the paper: best bold, second underlined."""
    contents = list(CONTENTS) if RANDOM in view.methods else [name for name in CONTENTS if name != "difference"]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        content = st.segmented_control(
            "Table", contents, default="accuracy", format_func=CONTENTS.__getitem__, required=True, key=f"{key}_table"
        )
        beside = False
        if paper is not None and content == "accuracy":
            beside = st.toggle(f"Compare with the paper's {paper.title}", value=True, key=f"{key}_paper")
    numbers = paper.by_cell if paper is not None and beside else {}
    st.html(STYLE + html_table(view, content=str(content), paper=numbers))
    if content == "accuracy":
        marked = " Best in bold, second underlined." if any(view.marks(ratio) for ratio in view.ratios) else ""
        st.caption(table_caption(view) + marked)
        full_labels = [m for m in view.methods if m in view.unranked and not m.endswith(SUFFIX)]
        if full_labels:
            names = ", ".join(literal(view.title(method)) for method in full_labels)
            st.caption(f"{names}: uses the labels of all images to select, so it is not ranked with the others.")
        if paper is not None and beside:
            full = f" Full data there: {paper.full:.1f}." if paper.full is not None else ""
            st.caption(f"Below each number: {literal(paper.note, 400)}{full}")
    elif content == "difference":
        st.caption(
            "Percentage points, paired by seed, ± half the 95% interval (Student). Bold: the interval excludes zero. "
            f"{OVER}"
        )
    else:
        st.caption("Per training, mean over seeds, without the time a method takes to prepare.")


def stands_on(project: Project, evaluation: Evaluation, view: EvaluationView) -> None:
    """What the numbers were measured with, and what that cost."""
    facts = evaluation.facts
    sentences = []
    if facts:
        sentences.append(
            f"Trained with {TRUTHS.get(facts['truth'], facts['truth'])}, tested on {facts['n_test']:,} images "
            f"({TESTED_ON.get(facts['test'], facts['test'])}){LAST[evaluation.test != PROBE]}."
        )
    sentences += filter(None, [facts.get("copies_words")])
    if evaluation.test == SCRATCH:
        schedule = f": {evaluation.schedule}" if evaluation.schedule else ""
        sentences.append(f"From scratch, preset {literal(evaluation.preset)}{schedule}.")
    elif evaluation.test == FINETUNE:
        sentences.append(f"Fine-tuned: {evaluation.schedule}.")
    else:
        sentences.append("Probe on features: a linear head on what a pretrained encoder sees, the same for every seed.")
    sentences.append(f"{count(view.n_trials, 'training')} in {duration(60 * view.minutes)}.")
    costly = {name: value for name, value in evaluation.minutes_before(project).items() if value >= 0.05}
    if costly:
        names = ", ".join(f"{literal(view.title(name))} {value:.1f} min" for name, value in costly.items())
        sentences.append(f"Time to prepare: {names}.")
    if evaluation.same_annotation_budget:
        sentences.append(
            "Same annotation budget: for methods that used human labels, these images are in every coreset and "
            "count towards it."
        )
    st.caption(" ".join(sentences))


def file_name(whose: str, view: EvaluationView) -> str:
    """Its id and what is in it, so that no two files of different content share a name."""
    return f"{whose}-{hashlib.sha256(summary_csv(view).encode()).hexdigest()[:8]}"


def downloads(
    name: str,
    view: EvaluationView,
    trials: pd.DataFrame,
    paper: PaperNumbers | None,
    *,
    look: PlotStyle,
    key: str,
) -> None:
    beside = paper.by_cell if paper is not None and st.session_state.get(f"{key}_paper") else None
    files = {
        "Trials CSV": (f"{name}-trials.csv", "text/csv", trials_csv(trials, view.tested_by)),
        "Means CSV": (f"{name}-means.csv", "text/csv", summary_csv(view)),
        "LaTeX": (f"{name}.tex", "text/x-tex", latex_table(view, paper=beside)),
        "SVG": (f"{name}.svg", "image/svg+xml", svg_plot(view, look)),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for words, (file, mime, data) in files.items():
            st.download_button(
                words,
                data.encode(),
                file_name=file,
                mime=mime,
                icon=":material/download:",
                key=f"{key}_{words}",
                on_click="ignore",
            )
        st.caption("For a PNG, use the camera above the plot.", width="content")
