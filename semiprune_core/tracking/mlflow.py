"""MLflow by its address: an experiment for each project, a run for each run; a resumed one goes on in the same run."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semiprune_core.tracking.base import TRACKERS, Point, TrackedRun

TAG = "semiprune.run"
ENDS = {"done": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
MOST_PARAMS, MOST_METRICS, LONGEST = 100, 1000, 500
"""What MLflow takes at once, and a length of a value that every version of it takes."""
MANNERS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
}
"""Where the person did not say otherwise: nobody else is told, and a server that is not there is noticed at once."""


@TRACKERS.register("mlflow", title="MLflow", needs="mlflow", address="http://127.0.0.1:5000")
class MLflow:
    """Metrics, settings as parameters, manifests as artifacts."""

    def __init__(self, run: TrackedRun, address: str) -> None:
        for name, value in MANNERS.items():
            os.environ.setdefault(name, value)
        mlflow: Any = importlib.import_module("mlflow")
        self._entities: Any = importlib.import_module("mlflow.entities")
        self._client = mlflow.MlflowClient(tracking_uri=address)
        self._id = self._run_of(run, self._experiment(run.project))
        params = [self._entities.Param(name, value[:LONGEST]) for name, value in run.flat_settings().items()]
        for start in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self._id, params=params[start : start + MOST_PARAMS])

    def points(self, points: Sequence[Point]) -> None:
        metrics = [
            self._entities.Metric(_name(name), value, int(1000 * point.time), point.step)
            for point in points
            for name, value in point.values.items()
        ]
        for start in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + MOST_METRICS])

    def file(self, path: Path) -> None:
        self._client.log_artifact(self._id, os.fspath(path), path.parent.name)

    def end(self, state: str) -> None:
        self._client.set_terminated(self._id, ENDS[state])

    def _experiment(self, name: str) -> str:
        experiment = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if experiment is None else experiment.experiment_id)

    def _run_of(self, run: TrackedRun, experiment: str) -> str:
        """The run of an earlier attempt, else a new one."""
        earlier = self._client.search_runs([experiment], f"tags.`{TAG}` = '{run.id}'", max_results=1)
        if earlier:
            self._client.update_run(earlier[0].info.run_id, status="RUNNING")
            return str(earlier[0].info.run_id)
        tags = {TAG: run.id, "semiprune.kind": run.kind, "semiprune.title": run.title}
        return str(self._client.create_run(experiment, tags=tags, run_name=run.id).info.run_id)


def _name(name: str) -> str:
    """As MLflow takes names: letters, digits and a few signs."""
    return re.sub(r"[^\w./ -]", "_", name, flags=re.ASCII)
