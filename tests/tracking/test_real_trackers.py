"""The real TensorBoard and the real MLflow follow a run and a coreset, and a server that is not there costs a note."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.tracking import keep_trackers, parse_trackers
from semiprune_core.training import start_training
from tests.browser.serving import free_port
from tests.support.scored_projects import make_scored
from tests.support.training_projects import short_run, small_project
from tests.support.waiting import wait_until
from tests.tools import needs
from tests.tracking.test_following import follow_all, notes

pytestmark = pytest.mark.slow


def train(project):
    return start_training(project, short_run(), device="cpu", immediate=True)


def read_events(folder):
    """The event files as TensorBoard reads them; in a process of its own, for what it warns of."""
    code = (
        "import json, sys\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "events = EventAccumulator(sys.argv[1]).Reload()\n"
        "scalars = {n: [[e.step, e.value] for e in events.Scalars(n)] for n in events.Tags()['scalars']}\n"
        "texts = {n: events.Tensors(n)[0].tensor_proto.string_val[0].decode() for n in events.Tags()['tensors']}\n"
        "print(json.dumps([scalars, texts]))"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_tensorboard_reads_a_run_back(workspace, tmp_path):
    needs("tensorboard")
    keep_trackers(workspace, parse_trackers("tensorboard"))
    project = small_project(workspace, tmp_path)
    job = train(project)
    assert notes(job) == []
    scalars, texts = read_events(project.folder / "tensorboard" / job.id)
    lines = {line["done"]: line["loss"] for line in job.progress() if "loss" in line}
    assert {step: pytest.approx(value) for step, value in scalars["loss"]} == lines
    assert scalars["accuracy"][-1][1] == pytest.approx(job.result()["accuracy"]["value"])
    assert "| ssl.lr | 0.03 |" in texts["settings"] and texts["state"] == "done"
    assert project.artifact("pseudo-0001").hash in texts["pseudo-0001/manifest.json"]


def test_tensorboard_shows_a_coreset(workspace, tmp_path):
    needs("tensorboard")
    keep_trackers(workspace, parse_trackers("tensorboard"))
    project = make_scored(workspace, tmp_path)
    built = build_coreset(project, CoresetRequest(pruning_ratio=0.5))
    follow_all()
    scalars, texts = read_events(project.folder / "tensorboard" / built.artifact.id)
    assert scalars["n_kept"] == [[0, 60.0]] and built.artifact.hash in texts[f"{built.artifact.id}/manifest.json"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A running ``mlflow server``; its address."""
    needs("mlflow")
    home, port = tmp_path_factory.mktemp("mlflow"), free_port()
    words = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    words += ["--backend-store-uri", f"sqlite:///{home}/mlflow.db", "--artifacts-destination", str(home / "artifacts")]
    with open(home / "server.log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=home)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: process.poll() is not None or answers(address), "MLflow answers", 300)
        assert process.poll() is None, (home / "server.log").read_text()
        yield address
    finally:
        process.terminate()
        process.wait(60)


def answers(address):
    import urllib.request

    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


ASK = """
import json, sys, mlflow
client = mlflow.MlflowClient(tracking_uri=sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
told = []
for run in client.search_runs([experiment.experiment_id]):
    files = {}
    for folder in client.list_artifacts(run.info.run_id):
        path = client.download_artifacts(run.info.run_id, folder.path + "/manifest.json", sys.argv[3])
        files[folder.path] = json.load(open(path))
    losses = [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, "loss")]
    told.append([run.info.run_name, run.info.status, run.data.metrics, run.data.params, files, losses])
print(json.dumps(told))
"""


def asked(address, project, folder):
    Path(folder).mkdir(exist_ok=True)
    words = [sys.executable, "-c", ASK, address, project.name, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: told for name, *told in json.loads(done.stdout.splitlines()[-1])}


def test_mlflow_holds_runs_and_coresets(server, workspace, tmp_path):
    keep_trackers(workspace, parse_trackers(f"mlflow={server}"))
    project = small_project(workspace, tmp_path)
    job = train(project)
    assert notes(job) == []
    scored = make_scored(workspace, tmp_path)
    built = build_coreset(scored, CoresetRequest(pruning_ratio=0.5))
    follow_all()
    status, metrics, params, files, losses = asked(server, project, tmp_path / "run")[job.id]
    assert status == "FINISHED" and params["ssl.lr"] == "0.03"
    assert metrics["accuracy"] == job.result()["accuracy"]["value"]
    assert dict(losses) == {line["done"]: line["loss"] for line in job.progress() if "loss" in line}
    assert files["pseudo-0001"]["hash"] == project.artifact("pseudo-0001").hash
    status, metrics, params, files, _ = asked(server, scored, tmp_path / "coreset")[built.artifact.id]
    assert (status, metrics["n_kept"], params["pruning_ratio"]) == ("FINISHED", 60.0, "0.5")
    assert files == {built.artifact.id: json.loads(json.dumps(dict(built.artifact.manifest)))}


@pytest.mark.fault
def test_an_mlflow_that_is_not_there_costs_one_note(workspace, tmp_path):
    needs("mlflow")
    keep_trackers(workspace, parse_trackers(f"mlflow=http://127.0.0.1:{free_port()}"))
    job = train(small_project(workspace, tmp_path))
    assert job.status().state == "done" and len(notes(job)) == 1 and "MLflow" in notes(job)[0]
