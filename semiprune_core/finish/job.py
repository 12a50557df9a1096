"""The job kind ``finish``: learn, score, search, select, map, report, one after the other.

Every stage is a job of its own, as if a person had started it on its page, so that its page shows it and it resumes
from its own checkpoint; it runs inside this process where its device is free, which spares loading torch five times.
What is there already and up to date is taken as it is. The map looks at features alone and is drawn beside the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from semiprune_core import jobs
from semiprune_core.coresets import CoresetRequest, build_coresets
from semiprune_core.dynamics import submit_dynamics
from semiprune_core.errors import JobError, MissingStepError
from semiprune_core.exporting import export_coreset
from semiprune_core.finish.submit import STAGES, FinishSettings, goes_on_with_features
from semiprune_core.jobs import JOB_KINDS, Job, JobContext, JobStatus
from semiprune_core.jobs.leading import Lead
from semiprune_core.maps.embedding_map import MapSettings
from semiprune_core.methods import METHODS
from semiprune_core.progress import InnerProgress, Stopped
from semiprune_core.project.artifacts import Artifact
from semiprune_core.refresh.freshness import out_of_date
from semiprune_core.report import write_report
from semiprune_core.results import PseudoRun, ScoreRun, latest_features
from semiprune_core.results.search import SearchRun, searchable_methods
from semiprune_core.search import submit_search
from semiprune_core.training import FROZEN, start_training

MAP_DEVICE = "map"
"""Not the device that computes: a map takes one core, and the stages leave one."""


@JOB_KINDS.register("finish", title="Finish", device="finish")
def run(context: JobContext) -> dict[str, Any]:
    return Finish(context).run()


@dataclass(frozen=True)
class Hurried(InnerProgress):
    """Also stops a training beyond features that nobody wants to wait for."""

    job: Job

    def should_stop(self) -> bool:
        return self.whole.should_stop() or goes_on_with_features(self.job)


class Finish:
    """One pass over the stages."""

    def __init__(self, context: JobContext) -> None:
        self.context, self.project = context, context.project
        self.settings = FinishSettings.from_json(context.settings)
        self.lead = Lead(context, tuple(STAGES))

    def run(self) -> dict[str, Any]:
        works: dict[str, Callable[[dict[str, Any]], None]] = {
            "learn": self._learn,
            "score": self._score,
            "search": self._search,
            "select": self._select,
            "map": self._map,
            "report": self._report,
        }
        self._begin_map()
        for stage, work in works.items():
            record = self.lead.begin(stage)
            if not record.get("done"):
                self.lead.tell(0.0)
                started = time.monotonic()
                work(record)
                record.update(done=True, seconds=round(time.monotonic() - started, 2))
                self.lead.write()
        self.lead.tell(1.0)
        records = {stage: self.lead.record[stage] for stage in STAGES}
        return {
            "artifacts": {stage: record.get("artifacts", []) for stage, record in records.items()},
            "report": records["report"]["file"],
            "seconds": {stage: record["seconds"] for stage, record in records.items()},
            "notes": [note for record in records.values() for note in record.get("notes", ())],
        }

    # --- the stages

    def _learn(self, record: dict[str, Any]) -> None:
        made = self._up_to_date("pseudo")
        if made is None:
            settings = self.settings.train_settings()
            try:
                made = self._by_job(
                    "learn", lambda: start_training(self.project, settings, device=self.settings.device)
                )
            except Stopped:
                made = self._on_features(record["job"])
        record["artifacts"] = [made.id]

    def _on_features(self, job_id: str) -> Artifact:
        """What the run had learned on features when a person chose not to wait for the rest."""
        if not goes_on_with_features(self.context.job):
            raise Stopped
        made = [artifact for artifact in self.project.artifacts("pseudo") if jobs.job_behind(artifact) == job_id]
        if not made:
            raise Stopped
        self.lead.note("A net from scratch was not waited for; the pseudo-labels are those on pretrained features.")
        return made[-1]

    def _score(self, record: dict[str, Any]) -> None:
        """The scores of a training on the pseudo-labels, which begins where theirs began."""
        made = self._up_to_date("scores")
        if made is None or made.inputs.get("pseudo") != self._pseudo.artifact.hash:
            seeds = (self.settings.seed,)
            made = self._by_job(
                "score", lambda: submit_dynamics(self.project, seeds=seeds, device=self.settings.device), key="scores"
            )
        record["artifacts"] = [made.id]

    def _search(self, record: dict[str, Any]) -> None:
        if self._pseudo.start != FROZEN:
            self.lead.note(
                "No search: it would train a net for every candidate, as this pool is not learned on pretrained "
                "features. The coresets use the starting values; search on the Select page."
            )
            return
        record.setdefault("artifacts", [])
        for number, method in enumerate(self.settings.methods):
            if method not in searchable_methods():
                continue
            made = self._searched(method)
            if made is None:
                submit = self._search_for(method)
                share = (number / len(self.settings.methods), 1 / len(self.settings.methods))
                made = self._by_job("search", submit, name=method, share=share)
            record["artifacts"].append(made.id)

    def _search_for(self, method: str) -> Callable[[], Job]:
        return lambda: submit_search(
            self.project,
            method=method,
            source=self._scores,
            ratios=self.settings.ratios,
            seeds=self.settings.search_seeds,
            device=self.settings.device,
        )

    def _searched(self, method: str) -> Artifact | None:
        """What a search on these scores found already, for all the ratios."""
        for artifact in reversed(self.project.artifacts("search")):
            settings = SearchRun(artifact).settings
            is_same = settings.method == method and settings.scores == self._scores.artifact.id
            if is_same and {*self.settings.ratios} <= {*settings.ratios}:
                return artifact
        return None

    def _select(self, record: dict[str, Any]) -> None:
        record["artifacts"] = []
        for number, method in enumerate(self.settings.methods):
            self.lead.tell(number / len(self.settings.methods), method=METHODS.title(method))
            request = CoresetRequest(method=method, seed=self.settings.seed)
            made = build_coresets(self.project, request, self.settings.ratios, scores=self._scores)
            for run in made:
                self.context.check_stop()
                export_coreset(self.project, run, "csv")  # the same coreset gives the same files
            record["artifacts"] += [run.artifact.id for run in made]

    def _begin_map(self) -> None:
        """Have the map drawn from now on, where there is something to look at and none was drawn before."""
        record = self.lead.record.setdefault("map", {})
        if record.get("job") or record.get("done") or self._up_to_date("map") is not None:
            return
        try:
            latest_features(self.project)
        except MissingStepError:
            return  # that of the learned model, later
        self._submit_map(
            record, MapSettings(features="originals", method=self.settings.map_method, seed=self.settings.seed)
        )

    def _submit_map(self, record: dict[str, Any], settings: MapSettings) -> None:
        record["job"] = jobs.submit(self.project, "map", settings.to_json(), device=MAP_DEVICE).id
        self.lead.write()
        jobs.supervise(self.project.workspace)

    def _map(self, record: dict[str, Any]) -> None:
        made = None if record.get("job") else self._up_to_date("map")
        if made is None:
            if not record.get("job"):
                self._submit_map(record, MapSettings(method=self.settings.map_method, seed=self.settings.seed))
            made = self._followed(self._taken_up(record["job"]))
        record["artifacts"] = [made.id]

    def _report(self, record: dict[str, Any]) -> None:
        record["file"] = write_report(self.project, self.context).name

    # --- artifacts and jobs

    @property
    def _pseudo(self) -> PseudoRun:
        return PseudoRun(self.project.artifact(self.lead.record["learn"]["artifacts"][0]))

    @property
    def _scores(self) -> ScoreRun:
        return ScoreRun(self.project.artifact(self.lead.record["score"]["artifacts"][0]))

    def _up_to_date(self, kind: str) -> Artifact | None:
        stale = {result.artifact.kind for result in out_of_date(self.project)}
        return None if kind in stale else self.project.latest(kind)

    def _by_job(
        self,
        stage: str,
        submit: Callable[[], Job],
        *,
        name: str = "job",
        key: str = "artifact",
        share: tuple[float, float] = (0.0, 1.0),
    ) -> Artifact:
        """The artifact of the stage's job: a new one, or the one that an earlier attempt began.

        ``share`` is where in the stage it begins, and how much of it it is.
        """
        record = self.lead.record[stage]
        if name in record:
            job = self._taken_up(record[name])
        else:
            job = submit()
            record[name] = job.id
            self.lead.write()
        return self._followed(job, key=key, share=share)

    def _taken_up(self, job_id: str) -> Job:
        """A job that an earlier attempt began, back in the queue where it did not end well."""
        job = jobs.find_job(self.project.workspace, job_id)
        if job.status().is_resumable:
            job.resume()
        return job

    def _followed(self, job: Job, *, key: str = "artifact", share: tuple[float, float] = (0.0, 1.0)) -> Artifact:
        def tell(status: JobStatus) -> None:
            facts = {"job": job.id, "state": status.state, "plan": status.facts.get("plan")}
            self.lead.tell(share[0] + share[1] * status.fraction, **facts)

        try:
            is_learning = self.lead.step == "learn"
            progress = Hurried(self.context, self.context.job) if is_learning else self.context
            jobs.follow_here(job, progress, tell=tell)
        except JobError as error:
            raise JobError(f"{job.title} failed: {error}", code=error.code) from error
        return self.project.artifact(str((job.result() or {})[key]))
