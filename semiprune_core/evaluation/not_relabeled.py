"""What happens when nobody relabels the coreset: an evaluation beside its twin that learned from pseudo-labels."""

from __future__ import annotations

import dataclasses

from semiprune_core.evaluation.plot import TWIN
from semiprune_core.evaluation.runs import Evaluation, finished
from semiprune_core.evaluation.settings import EvaluationSettings
from semiprune_core.evaluation.view import EvaluationView
from semiprune_core.project.workspace import Project
from semiprune_core.trials import FULL

SUFFIX = TWIN
WORDS = "not relabeled"


def can_have_twin(evaluation: Evaluation) -> bool:
    """Whether it learned from true labels and is over, so that pseudo-labels would say something new."""
    return evaluation.artifact is not None and evaluation.truth in ("reference", "human")


def twin_of(project: Project, evaluation: Evaluation) -> Evaluation | None:
    """The newest evaluation that differs in nothing but that it learned from pseudo-labels."""
    if not can_have_twin(evaluation):
        return None
    candidates = (other for other in finished(project) if other.truth == "pseudo" and _alike(other, evaluation))
    return next(candidates, None)


def _alike(first: Evaluation, second: Evaluation) -> bool:
    def stands_on(evaluation: Evaluation) -> tuple[object, ...]:
        assert evaluation.artifact is not None
        inputs, facts = evaluation.artifact.inputs, evaluation.facts
        on = (inputs.get("pool"), inputs.get("scores"), facts.get("test"), facts.get("n_test"))
        return (evaluation.test, evaluation.preset, evaluation.epochs, evaluation.same_annotation_budget, *on)

    return stands_on(first) == stands_on(second)


def twin_settings(evaluation: Evaluation) -> EvaluationSettings:
    """The settings of its twin: the same coresets and seeds, learned from pseudo-labels."""
    methods = tuple(method for method in evaluation.methods if method != FULL)
    return EvaluationSettings.from_json({**evaluation.asked, "methods": methods, "truth": "pseudo"})


def with_twin(view: EvaluationView, twin: EvaluationView) -> EvaluationView:
    """The view with a curve more for each method that the twin has, never ranked with the others."""
    methods = [method for method in twin.methods if method in view.methods]
    cells = {
        (method + SUFFIX, ratio): dataclasses.replace(cell, method=method + SUFFIX, difference=None, share_of_full=None)
        for (method, ratio), cell in twin.cells.items()
        if method in methods
    }
    names = [method + SUFFIX for method in methods]
    titles = {method + SUFFIX: f"{view.title(method)}, {WORDS}" for method in methods}
    return dataclasses.replace(
        view,
        cells={**view.cells, **cells},
        methods=(*view.methods, *names),
        titles={**view.titles, **titles},
        unranked=view.unranked | set(names),
    )
