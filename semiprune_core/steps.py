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


def _is_labeled(project: Project) -> bool:
    """Whether the drawn subset is complete; asks the label store only where there is one."""
    if not has_store(project):
        return False
    return progress(open_store(project)).complete


def _can_be_learned_from(project: Project) -> bool:
    """Whether images of two classes are labeled; asks the label store only where there is one."""
    if not has_store(project):
        return False
    return n_labeled_classes(open_store(project)) >= 2


def _is_trusted(project: Project) -> bool:
    """Looking at pseudo-labels leaves nothing behind; whoever went on to score with them has looked."""
    return project.latest("scores") is not None


@dataclass(frozen=True)
class Step:
    """One step; its page is the file ``<key>.py`` among the pages.

    ``needs`` is the step before it in need. It is done when there is an artifact of the kind ``makes``, or as ``done``
    says; ``enough`` lets others build on it before that: training may begin while people go on labeling.
    """

    key: str
    title: str
    purpose: str
    icon: str
    needs: str | None
    makes: str | None = None
    done: Callable[[Project], bool] | None = None
    enough: Callable[[Project], bool] | None = None


STEPS: tuple[Step, ...] = (
    Step("pool", "Pool", "Import the images and see what is in them.", "photo_library", None, "pool"),
    Step(
        "label",
        "Label",
        "Draw a random share of the pool and label it.",
        "label",
        "pool",
        done=_is_labeled,
        enough=_can_be_learned_from,
    ),
    Step("train", "Train", "Learn from the labels and the unlabeled rest.", "model_training", "label", "pseudo"),
    Step(
        "pseudo",
        "Pseudo-labels",
        "See how far the model's labels can be trusted.",
        "fact_check",
        "train",
        done=_is_trusted,
    ),
    Step("map", "Map", "See the pool as a map of look-alikes.", "scatter_plot", "pool", "map"),
    Step(
        "scores", "Scores", "Train once more and score every image by how hard it is.", "bar_chart", "train", "scores"
    ),
    Step("select", "Select", "Choose how much to prune, and how.", "filter_alt", "scores", "coreset"),
    Step(
        "evaluate",
        "Evaluate",
        "Compare coresets with random selection and other methods.",
        "balance",
        "scores",
        "evaluation",
    ),
    Step("export", "Export", "Export the coreset together with its proof.", "output", "select", done=has_exports),
)
BY_KEY = {step.key: step for step in STEPS}


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
    if step.done is not None:
        return step.done(project)
    return step.makes is not None and project.latest(step.makes) is not None


def standing(project: Project) -> list[Standing]:
    """Where ``project`` stands, step by step."""
    done = {step.key: is_done(project, step) for step in STEPS}
    enough = {step.key: done[step.key] or (step.enough is not None and step.enough(project)) for step in STEPS}
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
