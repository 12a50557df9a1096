"""The job kind ``refresh``: make what is out of date again, one step after the other (see ``refresh.submit``).

It only leads: the long steps are jobs of their own that it starts, watches, and stops when it is stopped. Which job
and which artifact belong to a step is written down in ``steps.json`` before it goes on, so that after a stop, a crash
or a failure it takes up the same jobs, and what is made is not made again. It holds no device that computes.
"""

from __future__ import annotations

from typing import Any

from semiprune_core import jobs
from semiprune_core.coresets import build_coreset
from semiprune_core.dynamics import DynamicsSettings, start_of, submit_dynamics
from semiprune_core.dynamics.scoring import score_runs, with_settings
from semiprune_core.errors import JobError, MissingStepError, SemiPruneError
from semiprune_core.jobs import JOB_KINDS, Job, JobContext
from semiprune_core.jobs.leading import Lead
from semiprune_core.labeling import open_store
from semiprune_core.project.artifacts import Artifact
from semiprune_core.refresh import submit as refresh
from semiprune_core.refresh.freshness import WORDS
from semiprune_core.results import CoresetRun, PseudoRun, TrajectoryRun, latest_pseudo, latest_scores, made_from
from semiprune_core.scores import ScoreSettings
from semiprune_core.training import TrainSettings, labels_are, start_training

LOOK_SECONDS = 0.5


@JOB_KINDS.register("refresh", title="Bring up to date", device="refresh")
def run(context: JobContext) -> dict[str, Any]:
    return Refresh(context).run()


class Refresh:
    """One pass over the steps."""

    def __init__(self, context: JobContext) -> None:
        self.context, self.project = context, context.project
        self.settings = refresh.RefreshSettings.from_json(context.settings)
        self.lead = Lead(context, self.settings.steps)

    def run(self) -> dict[str, Any]:
        for step in self.settings.steps:
            record = self.lead.begin(step)
            if "artifact" not in record:
                self.lead.tell(0.0)
                if step in refresh.JOB_KIND:
                    record["artifact"] = self._by_job(step)
                else:
                    record["artifact"] = self._score() if step == "scores" else self._rebuild(record)
                self.lead.write()
            self.context.log.info("%s: %s", WORDS[step], record["artifact"])
        self.lead.tell(1.0)
        return {"artifacts": {step: self.lead.record[step]["artifact"] for step in self.settings.steps}}

    def _before(self, step: str) -> Artifact:
        return self.project.artifact(self.settings.before[step])

    # --- steps that are jobs of their own

    def _by_job(self, step: str) -> str:
        """The artifact of the step's job, which is started, taken up again, or was done already."""
        job = self._known_job(step)
        if job is None:
            job = self._adopted(step) or self._submit(step)
            self.lead.record[step]["job"] = job.id
            self.lead.write()
        elif job.status().is_resumable:
            job.resume()
        self.lead.tell(0.0, job=job.id)
        self._watch(job)
        return _artifact_of(job)

    def _known_job(self, step: str) -> Job | None:
        """The job this step had begun, unless it has become useless since."""
        wanted = self.lead.record[step].get("job")
        job = next((past for past in jobs.list_jobs(self.project, refresh.JOB_KIND[step]) if past.id == wanted), None)
        if job is None or job.status().state == jobs.DONE:
            return job
        return job if self._still_right(job) else None

    def _adopted(self, step: str) -> Job | None:
        """A job that does the same already: somebody started it, or this one was killed before it wrote that down."""
        asked = refresh.again(self.project, step, self._before(step)).settings
        for job in jobs.list_jobs(self.project, refresh.JOB_KIND[step]):
            same = _without_input(job.settings) == _without_input(asked)
            if not job.status().is_over and same and self._still_right(job):
                return job
        return None

    def _still_right(self, job: Job) -> bool:
        """Whether what the job was started on still counts. Labels given since our own run began wait for the next."""
        now = {"pool": self.project.pool().hash}
        pseudo = self.project.latest("pseudo")
        if pseudo is not None:
            now["pseudo"] = pseudo.hash
        is_ours = job.id == self.lead.record.get("pseudo", {}).get("job")
        same_labels = (
            is_ours
            or "labels" not in job.pins
            or labels_are(self.project, job.pins["labels"], open_store(self.project).snapshot())
        )
        return same_labels and all(now.get(name, value) == value for name, value in job.pins.items())

    def _submit(self, step: str) -> Job:
        made = refresh.again(self.project, step, self._before(step))
        if step == "pseudo":
            return start_training(
                self.project, TrainSettings.from_job(made.settings), device=made.device, nproc=made.nproc
            )
        if step == "trajectory":
            return self._record_again(DynamicsSettings.from_json(made.settings), made)
        return jobs.submit(self.project, "map", made.settings)

    def _record_again(self, asked: DynamicsSettings, made: refresh.Again) -> Job:
        """The dynamics run as it was asked for, but where the pseudo-labels begin elsewhere now, it follows them."""
        before = made_from(self.project, self._before("trajectory"), "pseudo")
        start = start_of(latest_pseudo(self.project))
        followed = asked.start == start_of(PseudoRun(before)) and asked.start != start
        return submit_dynamics(
            self.project,
            start=start if followed else asked.start,
            encoder=None if followed else asked.encoder,
            preset=asked.preset,
            seeds=asked.seeds,
            device=made.device,
            nproc=made.nproc,
            **({} if followed else asked.training),
        )

    def _watch(self, job: Job) -> None:
        """Wait for the job's end, supervising meanwhile: nobody else may be there to start it."""
        try:
            jobs.follow(
                job,
                self.context,
                tell=lambda status: self.lead.tell(status.fraction, state=status.state),
                every=LOOK_SECONDS,
            )
        except JobError as error:
            raise JobError(f"{job.title} failed: {error}", code=error.code) from error

    # --- steps of a moment

    def _score(self) -> str:
        """Scores of the newest trajectories with the settings of the old ones, as far as those still fit."""
        asked = ScoreSettings.from_json(self._before("scores").settings)
        newest = self.project.latest("trajectory")
        if newest is None:
            raise MissingStepError("There is no dynamics run to score. Start one on the Scores page.")
        scores = latest_scores(self.project)
        if newest.hash not in scores.artifact.inputs.values():  # the dynamics job scores what it has recorded
            runs = [TrajectoryRun(artifact) for artifact in refresh.siblings(self.project, newest)]
            scores = score_runs(self.project, runs, progress=self.context)
        try:
            return with_settings(self.project, scores, progress=self.context, **asked.to_json()).artifact.id
        except SemiPruneError as error:
            self.lead.note(f"The scores use the default settings; the earlier ones do not fit this run: {error}")
            return scores.artifact.id

    def _rebuild(self, record: dict[str, Any]) -> str:
        """The same requests on the new scores, the newest last. One that cannot be met is told and left out."""
        made = ""
        scores = latest_scores(self.project)
        for place, name in enumerate(self.settings.coresets):
            self.context.check_stop()
            self.lead.tell(place / len(self.settings.coresets))
            request = refresh.request_of(self.project, CoresetRun(self.project.artifact(name)))
            try:
                made = build_coreset(self.project, request, scores=scores).artifact.id
            except SemiPruneError as error:
                self.lead.note(f"{name} could not be rebuilt: {error}")
                continue
            record.setdefault("artifacts", []).append(made)
        if not made:
            raise MissingStepError("No coreset could be rebuilt. " + " ".join(record.get("notes", ())))
        return made


def _without_input(settings: Any) -> dict[str, Any]:
    """Settings without the name of the pseudo-labels they were asked on."""
    return {name: value for name, value in dict(settings).items() if name != "pseudo"}


def _artifact_of(job: Job) -> str:
    result = job.result() or {}
    artifact = result.get("artifact") or (result.get("trajectories") or [""])[-1]
    return str(artifact)
