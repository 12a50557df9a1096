"""The dynamics run: what it is given, and how it is queued. The training itself is in ``dynamics.job``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from semiprune_core import jobs
from semiprune_core.checks import check_choice, check_range
from semiprune_core.errors import InvalidSettingError, MissingStepError
from semiprune_core.labeling import open_store
from semiprune_core.learning import machine
from semiprune_core.learning.head_run import HeadSettings
from semiprune_core.learning.presets import FINETUNED_NET, supervised_preset
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.project.artifacts import Artifact
from semiprune_core.project.workspace import Project
from semiprune_core.results import PseudoRun, TrajectoryRun, latest_pseudo
from semiprune_core.results.features import FeatureRun, feature_runs, latest_features
from semiprune_core.results.pseudo import FINETUNED, FROZEN, SCRATCH
from semiprune_core.settings import Settings
from semiprune_core.training import STARTS, labels_are
from semiprune_core.training.settings import FINETUNED_ENCODER, PACKAGED_ENCODER

FEWEST_EPOCHS = 2
"""A deviation over the epochs needs two of them."""
SCORING_STARTS = {name: STARTS[name] for name in (FROZEN, FINETUNED, SCRATCH)}
"""Where a dynamics run may begin, and its name for people."""


@dataclass(frozen=True, kw_only=True)
class DynamicsSettings(Settings):
    """One supervised run per seed on the pseudo-labels of the artifact ``pseudo``.

    From scratch a net is trained as ``preset`` says, fine-tuned it begins with the weights of ``encoder``. On
    pretrained features (``start`` is "frozen") a linear head is trained on those of ``encoder``. ``training`` is what
    differs from the preset, or from :class:`HeadSettings`.
    """

    pseudo: str
    preset: str = "quick"
    training: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    start: str = SCRATCH
    encoder: str = PACKAGED_ENCODER

    def check(self) -> None:
        check_choice("start", self.start, tuple(SCORING_STARTS))
        check_range("epochs", self.head().epochs if self.is_frozen else self.supervised().epochs, low=FEWEST_EPOCHS)
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidSettingError(f"seeds must list one or more numbers, each once; got {list(self.seeds)}.")

    @property
    def is_frozen(self) -> bool:
        return self.start == FROZEN

    def supervised(self) -> SupervisedSettings:
        """How a net is trained."""
        base = FINETUNED_NET if self.start == FINETUNED else supervised_preset(self.preset)
        return base.replace(**self.training)

    def head(self) -> HeadSettings:
        """How a head is trained on features."""
        return HeadSettings.from_json(self.training)

    def made_with(self) -> dict[str, Any]:
        """What the artifact says of it, beside its inputs and its seed."""
        if self.is_frozen:
            return {"start": self.start, "encoder": self.encoder, "training": self.head().to_json()}
        if self.start == FINETUNED:
            return {"start": self.start, "encoder": self.encoder, "training": self.supervised().to_json()}
        return {"preset": self.preset, "training": self.supervised().to_json()}


def start_of(pseudo: PseudoRun) -> str:
    """Where a dynamics run on these pseudo-labels begins unless asked otherwise: where they began themselves."""
    return pseudo.start if pseudo.start in SCORING_STARTS else SCRATCH


def encoder_of(pseudo: PseudoRun, start: str) -> str:
    """Whose features or weights a run sees that begins so: those of the pseudo-labels, else the usual ones.

    A net begins with the weights of one encoder, also where features come from several.
    """
    if start == FINETUNED:
        return (pseudo.encoder or FINETUNED_ENCODER).split("+")[0]
    return pseudo.encoder or PACKAGED_ENCODER


def features_of(project: Project, pseudo: PseudoRun, encoder: str) -> FeatureRun | None:
    """The features that the pseudo-labels were learned on, or the newest of ``encoder``; None: there are none yet."""
    learned_on = pseudo.artifact.facts.get("features")
    for run in feature_runs(project, encoder):
        if run.artifact.hash == learned_on and run.is_current(project):
            return run
    try:
        return latest_features(project, encoder)
    except MissingStepError:
        return None


def submit_dynamics(
    project: Project,
    *,
    start: str | None = None,
    encoder: str | None = None,
    preset: str = "quick",
    seeds: tuple[int, ...] = (0,),
    device: str = "auto",
    nproc: int = 1,
    immediate: bool = False,
    **training: Any,
) -> jobs.Job:
    """Queue a dynamics run on the latest pseudo-labels; the job pins them and the pool by content hash.

    It begins where the pseudo-labels did (``start_of``), unless ``start`` says otherwise. ``training`` is what differs
    from the preset, or from the settings of a head on features, which one process trains.
    """
    pseudo = latest_pseudo(project)
    start = start or start_of(pseudo)
    settings = DynamicsSettings(
        pseudo=pseudo.artifact.id,
        preset=preset,
        training=training,
        seeds=seeds,
        start=start,
        encoder=encoder or encoder_of(pseudo, start),
    )
    pins = {"pseudo": pseudo.artifact.hash, "pool": project.pool().hash}
    if settings.is_frozen:
        nproc = 1
        features = features_of(project, pseudo, settings.encoder)
        if features is not None:
            pins["features"] = features.artifact.hash
    return jobs.submit(
        project,
        "dynamics",
        settings.to_json(),
        device=machine.devices_for(device, nproc),
        pins=pins,
        nproc=nproc,
        immediate=immediate,
    )


def usual_training(project: Project) -> tuple[str, dict[str, Any]]:
    """Preset and settings with which nets are trained from scratch here: those of the newest such run, else quick."""
    for artifact in reversed(project.artifacts("trajectory")):
        if TrajectoryRun(artifact).start == SCRATCH and artifact.settings.get("training"):
            return str(artifact.settings.get("preset", "quick")), dict(artifact.settings["training"])
    return "quick", {}


def pinned_pseudo(project: Project, settings: DynamicsSettings) -> PseudoRun:
    return PseudoRun(project.artifact(settings.pseudo))


def why_out_of_date(project: Project, artifact: Artifact) -> list[str]:
    """Reasons, in words, why ``artifact`` was made from something that has changed since; empty: it is up to date."""
    reasons = []
    if artifact.inputs.get("pool", "") != project.pool().hash:
        reasons.append("the pool has changed")
    pseudo = project.latest("pseudo")
    if pseudo is not None and artifact.inputs.get("pseudo") not in (None, pseudo.hash):
        reasons.append("there are newer pseudo-labels")
    elif pseudo is not None and not labels_are(project, pseudo.inputs.get("labels"), open_store(project).snapshot()):
        reasons.append("people have changed labels since the pseudo-labels were made (train again first)")
    scores = project.latest("scores")
    if artifact.kind == "coreset" and scores is not None and "scores" in artifact.inputs:
        current = {past.hash for past in project.artifacts("scores") if past.inputs == scores.inputs}
        if artifact.inputs["scores"] not in current and not reasons:
            reasons.append("there are newer scores")
    return reasons
