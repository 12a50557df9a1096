"""From scores to a coreset: one request for the page and the command line; one function to build it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from semiprune_core.baselines.evidence import EvidenceRequest, evidence_at_hand, stored_evidence
from semiprune_core.checks import check_choice, check_range
from semiprune_core.coresets.starting_values import searched_knobs
from semiprune_core.dynamics.scoring import with_settings
from semiprune_core.errors import InvalidSettingError
from semiprune_core.knobs import Knob
from semiprune_core.methods import METHODS, every_knob, needs_of, open_knobs, select_coreset
from semiprune_core.progress import Collected, Progress
from semiprune_core.project.artifacts import open_artifact
from semiprune_core.project.pool import Pool
from semiprune_core.project.workspace import Project
from semiprune_core.records import Coreset, Evidence
from semiprune_core.results import (
    CoresetRun,
    PseudoRun,
    ScoreRun,
    check_same_pool,
    coreset_settings,
    latest_scores,
    made_from,
    write_coreset,
)
from semiprune_core.results.evidence import EvidenceRun, evidence_of
from semiprune_core.results.score_source import ScoreSource, has_own_evidence
from semiprune_core.scan import ScanRun, groups_of_pool, needed_scan
from semiprune_core.scan.run import KIND
from semiprune_core.scores import SCORES, score_knobs, score_settings_of
from semiprune_core.selection import AIMS, SELECTORS, Basis, default_knobs
from semiprune_core.settings import Settings, check_names
from semiprune_core.tracking import follow_artifact

RATIOS = (0.3, 0.5, 0.7, 0.8, 0.9)
"""The paper's pruning ratios."""
SAME_BUDGET_RATIOS = (0.4, 0.6, 0.7, 0.8)
"""The paper's where people's labels count: budgets of 60, 40, 30 and 20%."""
OPTIONS = (
    "class_balanced",
    "keep_human",
    "same_annotation_budget",
    "min_per_class",
    "class_share",
    "drop_duplicates",
    "one_of_each",
)
EPOCHS = "n_epochs"
"""What a request calls T of DUAL, the score setting ``dual_epochs``."""
SEARCHED = ("cutoff", "c_d", "n_epochs", "gamma")
"""Where a person set one of these, what a search found is left aside."""


@dataclass(frozen=True, kw_only=True)
class CoresetRequest(Settings):
    """Everything a person chooses on the way to a coreset. ``None`` means the default for this pool and ratio.

    ``aim`` is what the defaults are to serve: accuracy, or few wrong labels in the coreset (clean). ``given`` are the
    knobs that were set: those of the selector, and of its score T of DUAL (``n_epochs``), ``gamma`` and the like, whose
    change scores anew from the stored trajectory. In JSON they stand beside the other fields.
    """

    method: str = "semi_aum_cutoff"
    pruning_ratio: float = 0.7
    seed: int = 0
    class_balanced: bool = False
    keep_human: bool = False
    same_annotation_budget: bool = False
    min_per_class: int = 0
    class_share: float | None = None
    drop_duplicates: bool = False
    one_of_each: bool = False
    aim: str = "accuracy"
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", {name: value for name, value in self.given.items() if value is not None})
        super().__post_init__()

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        given = values.pop("given")
        return {**values, **given}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        own = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        return cls(**{"given": {name: value for name, value in values.items() if name not in own}, **own})

    def check(self) -> None:
        check_choice("aim", self.aim, AIMS)
        check_range("pruning_ratio", self.pruning_ratio, low=0, high=1, high_open=True)
        if self.method not in METHODS and self.method not in SELECTORS:
            METHODS[self.method]  # raises, with the known names
        check_names(self.given, settable_knobs())
        for name, knob in {**open_knobs(self.method), **tuned_knobs()}.items():
            if name in self.given:
                knob.check(self.given[name], name)

    @property
    def selector(self) -> str:
        return METHODS[self.method].selector if self.method in METHODS else self.method

    @property
    def score_changes(self) -> dict[str, Any]:
        """What it asks of the score settings."""
        return {setting_of(name): self.given[name] for name in tuned_knobs() if name in self.given}

    def knobs(self, basis: Basis) -> dict[str, Any]:
        """The selector's knobs: those given, and the defaults for such a pool, ratio and run."""
        basis = dataclasses.replace(basis, aim=self.aim)
        return {**default_knobs(self.method, self.pruning_ratio, basis).selector, **self.given_knobs}

    def options(self, basis: Basis) -> dict[str, Any]:
        """The options by name; the part of its share that each class keeps is the default for such a run."""
        values = {name: getattr(self, name) for name in OPTIONS}
        if self.class_share is None:
            usual = default_knobs(self.method, self.pruning_ratio, basis).class_share
            values["class_share"] = 0.0 if self.class_balanced else usual
        return values

    @property
    def given_knobs(self) -> dict[str, Any]:
        """The selector's knobs that were set."""
        return {name: value for name, value in self.given.items() if name not in tuned_knobs()}


def tuned_knobs() -> dict[str, Knob]:
    """The score settings that a request may change, under the names that it has for them."""
    return {EPOCHS if name == "dual_epochs" else name: knob for name, knob in score_knobs().items() if knob.tune}


def score_knobs_of(method: str) -> dict[str, Knob]:
    """Those of :func:`tuned_knobs` that the scores behind a method have."""
    mine = {setting for score in needs_of(method) if score in SCORES for setting in score_settings_of(score)}
    return {name: knob for name, knob in tuned_knobs().items() if setting_of(name) in mine}


def setting_of(name: str) -> str:
    """The score setting behind a name of :func:`tuned_knobs`."""
    return "dual_epochs" if name == EPOCHS else name


def settable_knobs() -> dict[str, Knob]:
    """Everything that may be ``given`` to some method, by name."""
    return {**every_knob(), **tuned_knobs()}


def with_searched(project: Project, request: CoresetRequest, source: ScoreSource | None = None) -> CoresetRequest:
    """The request with the knobs that a search found for its ratio and what is chosen by, where a person set none."""
    if any(name in request.given for name in SEARCHED):
        return request
    best = searched_knobs(project, request.method, request.pruning_ratio, source)
    return request if best is None else request.replace(**best)


def basis_of(scores: ScoreRun, own: EvidenceRun | None = None) -> Basis:
    """What starting values depend on with these scores, or for a baseline that looks at evidence of its own instead."""
    return scores.basis() if own is None else own.basis(scores.basis())


def choose_coreset(evidence: Evidence, request: CoresetRequest, basis: Basis) -> Coreset:
    """The coreset that ``request`` asks for; knobs that it leaves open follow from ``basis``."""
    return select_coreset(
        evidence,
        request.method,
        pruning_ratio=request.pruning_ratio,
        seed=request.seed,
        basis=basis,
        **request.options(basis),
        **request.knobs(basis),
    )


def own_evidence(
    project: Project,
    request: CoresetRequest,
    progress: Progress | None = None,
    *,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> EvidenceRun:
    """The evidence of a baseline: the newest at hand, or made with ``settings`` where they (or T, gamma) are given.

    What is made here can be stopped, and goes on the next time from the folder ``work`` of the project.
    """
    asked = {**(settings or {}), **request.score_changes}
    if not asked and (newest := evidence_at_hand(project).get(request.method)):
        return newest
    wanted = EvidenceRequest(
        project, progress or Collected(), device=device, settings=asked, folder=project.folder / "work"
    )
    made = stored_evidence(request.method, wanted)
    assert made is not None
    return made


def evidence_behind(project: Project, run: CoresetRun) -> Evidence:
    """What a saved coreset was chosen by, from the artifacts it names."""
    pseudo, pool = PseudoRun(made_from(project, run.artifact, "pseudo")), project.pool()
    if "evidence" in run.artifact.inputs:
        evidence = EvidenceRun(made_from(project, run.artifact, "evidence")).evidence(pool, pseudo.labels())
    else:
        evidence = evidence_of(ScoreRun(made_from(project, run.artifact, "scores")).table(), pseudo, pool)
    if KIND in run.artifact.inputs:
        return with_alike(evidence, pool, ScanRun(made_from(project, run.artifact, KIND)))
    return evidence


def with_alike(evidence: Evidence, pool: Pool, scan: ScanRun) -> Evidence:
    """The evidence with the near-duplicates that a scan found."""
    return dataclasses.replace(evidence, alike=groups_of_pool(pool, scan))


def build_coreset(
    project: Project,
    request: CoresetRequest,
    *,
    scores: ScoreRun | None = None,
    own: EvidenceRun | None = None,
    progress: Progress | None = None,
) -> CoresetRun:
    """Choose and save a coreset; the same request on the same scores is found again instead of saved twice.

    Knobs that were not given are those a search found, where there was one, else the defaults. A baseline's coreset is
    chosen by its own evidence: ``own``, else the newest that is at hand, else made now. The project's labels and
    scores stand beside it in its files all the same.
    """
    scores = scores or latest_scores(project)
    if own is None and has_own_evidence(request.method):
        own = own_evidence(project, request, progress)
    request = with_searched(project, request, own or scores)
    changes = request.score_changes if own is None else {}
    scores = with_settings(project, scores, progress=progress, **changes)
    pseudo, pool = PseudoRun(made_from(project, scores.artifact, "pseudo")), project.pool()
    check_same_pool(scores.artifact, pool)
    inputs = {"pool": pool.hash, "pseudo": pseudo.artifact.hash, "scores": scores.artifact.hash}
    if own is not None:
        inputs["evidence"] = own.artifact.hash
        evidence = own.evidence(pool, pseudo.labels())
    else:
        evidence = evidence_of(scores.table(), pseudo, pool)
    if request.one_of_each:
        scan = needed_scan(project)
        inputs[KIND] = scan.artifact.hash
        evidence = with_alike(evidence, pool, scan)
    coreset = choose_coreset(evidence, request, basis_of(scores, own))
    settings = coreset_settings(coreset)
    for saved in reversed(project.artifacts("coreset")):
        same = saved.inputs == inputs and saved.settings == settings and saved.manifest["seed"] == coreset.seed
        if same and np.array_equal(CoresetRun(saved).coreset().indices, coreset.indices):  # older versions drew others
            return CoresetRun(saved)
    with project.draft("coreset", settings=settings, inputs=inputs, seed=coreset.seed) as draft:
        write_coreset(draft, coreset)
        human = pseudo.labels().human_mask
        draft.facts["n_human"] = int(human[coreset.indices].sum())
        draft.facts["aim"] = request.aim
    built = CoresetRun(open_artifact(draft.folder))
    follow_artifact(project, built.artifact, f"Coreset: {request.method}, {request.pruning_ratio:.0%} pruned")
    return built


def build_coresets(
    project: Project,
    request: CoresetRequest,
    ratios: Sequence[float],
    *,
    nested: bool = False,
    scores: ScoreRun | None = None,
    own: EvidenceRun | None = None,
    progress: Progress | None = None,
) -> list[CoresetRun]:
    """One coreset for each ratio, the largest first, otherwise as ``request`` says.

    Knobs that were not given are those of each ratio (searched or default); ``nested`` holds those of the smallest
    ratio for all, so that with a selector that allows it every coreset is part of the next larger one.
    """
    wanted = sorted(set(ratios))
    if not wanted:
        raise InvalidSettingError("Give at least one pruning ratio, such as 0.3,0.5,0.7.")
    if own is None and has_own_evidence(request.method):
        own = own_evidence(project, request, progress)
    requests = [request.replace(pruning_ratio=ratio) for ratio in wanted]
    if nested:
        if not SELECTORS.facts(request.selector)["nested"]:
            raise InvalidSettingError(
                f"The selector '{request.selector}' chooses anew for each ratio, its coresets are never nested. "
                f"Leave nesting out, or use one of {', '.join(nesting_selectors())}."
            )
        scores = scores or latest_scores(project)
        held = with_searched(project, requests[0], own or scores).knobs(basis_of(scores, own))
        held = {name: value for name, value in held.items() if name in open_knobs(request.method)}
        requests = [at_ratio.replace(**held) for at_ratio in requests]
    return [build_coreset(project, at_ratio, scores=scores, own=own, progress=progress) for at_ratio in requests]


def more_ratios(
    project: Project, run: CoresetRun, ratios: Sequence[float], *, nested: bool = False
) -> list[CoresetRun]:
    """Coresets like ``run`` at other ratios: its method, seed, options and scores, the knobs by default."""
    settings = run.artifact.settings
    request = CoresetRequest(
        method=settings["method"],
        seed=run.artifact.manifest["seed"],
        aim=run.aim,
        **kept_options(run),
    )
    scores = ScoreRun(made_from(project, run.artifact, "scores"))
    has_own = "evidence" in run.artifact.inputs
    own = EvidenceRun(made_from(project, run.artifact, "evidence")) if has_own else None
    return build_coresets(project, request, ratios, nested=nested, scores=scores, own=own)


def kept_options(run: CoresetRun) -> dict[str, Any]:
    """The options that a saved coreset was chosen with, as fields of a ``CoresetRequest``."""
    return {"class_share": 0.0, **run.artifact.settings["options"]}  # older ones kept no share of a class


def nesting_selectors() -> list[str]:
    return [name for name in SELECTORS if SELECTORS.facts(name)["nested"]]


def nesting(runs: Sequence[CoresetRun]) -> str:
    """Whether each coreset is part of the next larger one, in a sentence; found out, not assumed."""
    coresets = sorted((run.coreset() for run in runs), key=lambda coreset: len(coreset.indices))
    if len(coresets) < 2:
        return "One coreset."
    selector = str(coresets[0].settings["selector"])
    promised = SELECTORS.facts(selector)["nested"]
    for small, large in itertools.pairwise(coresets):
        outside = len(small.indices) - int(large.mask[small.indices].sum())
        if outside:
            why = (
                "they were not chosen with the same knobs and options; hold the knobs to nest them"
                if promised
                else f"the selector {selector} chooses anew for each ratio"
            )
            return (
                f"Not nested: {outside:,} of the {len(small.indices):,} images kept at {small.pruning_ratio:g} are not "
                f"kept at {large.pruning_ratio:g} ({why})."
            )
    nested = "Nested: every coreset is part of the next larger one"
    return f"{nested}." if promised else f"{nested} (by chance: the selector {selector} chooses anew for each ratio)."
