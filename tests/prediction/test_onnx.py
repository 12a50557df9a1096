"""The ONNX file of a net: answers as the net does, in onnxruntime; where its packages are missing, a sentence."""

import json
from importlib import util

import numpy as np
import pytest

from semiprune_core import cli
from semiprune_core.prediction import onnx_file
from semiprune_core.results import latest_pseudo
from semiprune_core.training import start_training
from tests.support.training_projects import short_run, small_project
from tests.tools import needs

N = 110


@pytest.fixture
def project(workspace, tmp_path):
    project = small_project(workspace, tmp_path, n=N)
    start_training(project, short_run(), device="cpu", immediate=True)
    return project


def test_what_is_missing_is_named_and_the_rest_is_written(project, tmp_path, capsys, monkeypatch):
    there = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "onnxruntime" else there(name, *more))
    assert "install" in str(onnx_file.missing()) and "onnxruntime" in str(onnx_file.missing())
    assert cli.main(["model", project.name, "--out", str(tmp_path / "net")]) == 0
    assert "model.onnx was left out: install" in capsys.readouterr().out
    written = {path.name for path in (tmp_path / "net").iterdir()}
    assert written == {"model.safetensors", "model.json", "model.pt2"}
    assert {*json.loads((tmp_path / "net" / "model.json").read_text())["files"]} == written - {"model.json"}


@pytest.mark.slow
def test_onnxruntime_answers_as_the_net_does(project, tmp_path, capsys):
    needs(*onnx_file.NEEDED)
    assert cli.main(["model", project.name, "--out", str(tmp_path / "net"), "--json"]) == 0
    about, run = json.loads(capsys.readouterr().out), latest_pseudo(project)
    assert about["tried_on"] == 100 and about["left_out"] is None
    assert about["largest_difference"]["model.onnx"] <= 1e-4
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "net" / "model.onnx", providers=["CPUExecutionProvider"])
    pixels = np.array(project.pool().images()).transpose(0, 3, 1, 2)
    for part in (pixels[:1], pixels):  # any number at once
        (probs,) = session.run(["probabilities"], {"pixels": part})
        assert (probs.argmax(1) == run.predicted()[: len(part)]).all()
        assert np.allclose(probs.max(1), run.confidence()[: len(part)], atol=1e-4)
    assert {path.name for path in (tmp_path / "net").glob("model.onnx*")} == {"model.onnx"}
