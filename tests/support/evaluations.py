"""Short evaluations of small projects."""

import pytest

from semiprune_core import jobs
from semiprune_core.evaluation import (
    EvaluationRun,
    EvaluationSettings,
    partial_trials,
    submit_evaluation,
)
from semiprune_core.evaluation import job as evaluate_job
from semiprune_core.jobs.context import JobContext
from semiprune_core.progress import Stopped

METHODS = ("full", "semi_aum_cutoff", "random")
SHORT = {"methods": METHODS, "ratios": (0.5, 0.8), "seeds": (0, 1), "epochs": 3}
BRIEFLY = {
    "encoder": "pixels",
    "training": {"epochs": 3, "batch_size": 32},
    "heads": {"n_heads": 2, "epochs": 3, "hidden": 8, "bottleneck": 4, "n_components": 8, "batch_size": 64},
    "window": 2,
}
"""Evidence of a baseline in a second."""


def evaluate(project, **changes):
    return submit_evaluation(project, EvaluationSettings(**{**SHORT, **changes}), device="cpu", immediate=True)


def done(job):
    assert job.status().state == jobs.DONE, job.status().message + job.log_tail()
    return EvaluationRun(job.project.artifact(job.result()["artifact"]))


def stopped_in_its_second_trial(project, quick, monkeypatch, **changes):
    job = submit_evaluation(project, EvaluationSettings(**{**SHORT, **changes}), device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "should_stop", lambda self: len(quick) > 1)
        with pytest.raises(Stopped):
            evaluate_job.run(JobContext(job))
    assert len(partial_trials(job)) == 1
    return job
