"""The line every project walks: nine steps, what each one needs, and where a project stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from semiprune_core.exporting import has_exports
from semiprune_core.labeling import has_store, open_store
from semiprune_core.labeling.progress_report import n_labeled_classes, progress
from semiprune_core.project.workspace import Project

State = Literal["done", "next", "waiting"]


@dataclass(frozen=True)
class Step:
    """One step. ``makes`` is the artifact kind that proves it was done, ``needs`` the step before it in need."""

    key: str
    title: str
    purpose: str
    makes: str | None
    needs: str | None


STEPS: tuple[Step, ...] = (
    Step("pool", "Pool", "Import the images and see what is in them.", "pool", None),
    Step("label", "Label", "Draw a random share of the pool and label it.", None, "pool"),
    Step("train", "Train", "Learn from the labels and the unlabeled rest.", "pseudo", "label"),
    Step("pseudo", "Pseudo-labels", "See how far the model's labels can be trusted.", None, "train"),
    Step("map", "Map", "See the pool as a map of look-alikes.", "map", "pool"),
    Step("scores", "Scores", "Train once more and score every image by how hard it is.", "scores", "train"),
    Step("select", "Select", "Choose how much to prune, and how.", "coreset", "scores"),
    Step("evaluate", "Evaluate", "Compare coresets with random selection and other methods.", "evaluation", "scores"),
    Step("export", "Export", "Export the coreset together with its proof.", None, "select"),
)
BY_KEY = {step.key: step for step in STEPS}


def _is_labeled(project: Project) -> bool:
    """Whether the drawn subset is complete; asks the label store only where there is one."""
    if not has_store(project):
        return False
    return progress(open_store(project)).complete


def _is_exported(project: Project) -> bool:
    return has_exports(project)


def _is_trusted(project: Project) -> bool:
    """Looking at pseudo-labels leaves nothing behind; whoever went on to score with them has looked."""
    return project.latest("scores") is not None


DONE_WHEN: dict[str, Callable[[Project], bool]] = {
    "label": _is_labeled,
    "pseudo": _is_trusted,
    "export": _is_exported,
}
"""Steps whose end is not simply an artifact register here how to tell."""


def _can_be_learned_from(project: Project) -> bool:
    """Whether images of two classes are labeled; asks the label store only where there is one."""
    if not has_store(project):
        return False
    return n_labeled_classes(open_store(project)) >= 2


ENOUGH_WHEN: dict[str, Callable[[Project], bool]] = {"label": _can_be_learned_from}
"""Steps that others may build on before they are complete: training may begin while people go on labeling."""


@dataclass(frozen=True)
class Standing:
    """Where a project stands at one step: done, next (can be done now), or waiting (for which step)."""

    step: Step
    state: State
    missing: Step | None = None

    @property
    def sentence(self) -> str:
        if self.state == "done":
            return f"{self.step.title} is done."
        if self.missing is None:
            return self.step.purpose
        return f"{self.step.title} needs the step {self.missing.title} first: {self.missing.purpose}"


def is_done(project: Project, step: Step) -> bool:
    if step.key in DONE_WHEN:
        return DONE_WHEN[step.key](project)
    return step.makes is not None and project.latest(step.makes) is not None


def standing(project: Project) -> list[Standing]:
    """Where ``project`` stands, step by step."""
    done = {step.key: is_done(project, step) for step in STEPS}
    enough = {key: is_done or (key in ENOUGH_WHEN and ENOUGH_WHEN[key](project)) for key, is_done in done.items()}
    places = []
    for step in STEPS:
        if done[step.key]:
            places.append(Standing(step, "done"))
        elif missing := first_missing(step, enough):
            places.append(Standing(step, "waiting", missing))
        else:
            places.append(Standing(step, "next"))
    return places


def first_missing(step: Step, enough: dict[str, bool]) -> Step | None:
    """The earliest step that ``step`` still waits for; what lies before a step that is done does not matter."""
    missing = None
    while step.needs is not None and not enough[step.needs]:
        step = missing = BY_KEY[step.needs]
    return missing


def next_step(project: Project) -> Step:
    """What to do next: the first step that can be done now."""
    return next((place.step for place in standing(project) if place.state == "next"), STEPS[-1])
