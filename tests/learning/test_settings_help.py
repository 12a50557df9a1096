"""What the form says about settings, and what is known of the machine without loading torch."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from semiprune_core.errors import InvalidSettingError
from semiprune_core.learning import machine, settings_help
from semiprune_core.learning.machine import Device, Machine
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS

ROOT = Path(__file__).resolve().parents[2]
GPU = Machine((Device("cuda:0", "GPU", 1), Device("cuda:1", "GPU", 1), Device("cpu", "CPU", 1)), (), "2.0", 8)


def test_every_setting_of_a_run_is_in_words_and_in_one_place():
    shown = [one.name for members in settings_help.ssl_help_by_group().values() for one in members] + list(
        settings_help.ELSEWHERE
    )
    assert sorted(shown) == sorted(settings_help.ssl_help())
    assert all(one.about and one.title for one in settings_help.ssl_help().values())


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_setting_of_an_algorithm_is_in_words(name):
    assert all(one.about for one in settings_help.algorithm_help(name).values())


def test_offered_choices_are_legal():
    for name, choices in settings_help.CHOICES.items():
        for choice in choices:
            SSLSettings(**{name: choice})
        with pytest.raises(InvalidSettingError):
            SSLSettings(**{name: "nonsense"})


def test_this_machine_is_looked_at_in_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "semiprune_core.learning.machine"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["devices"][-1]["name"] == "cpu" and found["torch"] and found["problem"] is None
    assert "compact" in [net["name"] for net in found["nets"]]


def test_places_are_named_as_jobs_occupy_them(monkeypatch):
    monkeypatch.setattr(machine, "look", lambda: GPU)
    assert machine.devices_for("auto") == machine.devices_for("cuda") == "cuda:0"
    assert machine.devices_for("cuda:1") == "cuda:1" and machine.devices_for("cpu", 4) == "cpu"
    assert machine.devices_for("auto", 2) == "cuda:0,cuda:1"
    assert GPU.recommended_preset == "standard"
    with pytest.raises(InvalidSettingError, match="Available: auto, cuda:0, cuda:1, cpu"):
        machine.devices_for("mps")
    with pytest.raises(InvalidSettingError, match="this machine has 2"):
        machine.devices_for("cuda:0", 3)


def test_the_train_page_is_drawn_without_torch():
    parts = ["form", "history", "live", "preflight", "result"]
    code = f"import importlib, sys\nfor m in {parts!r}: importlib.import_module('pages.parts.training_' + m)\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_where_torch_is_loaded_no_other_process_is_started(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", importlib.import_module("torch"))
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: pytest.fail("another process was started"))
    machine.look.cache_clear()
    assert machine.look().can_train and machine.look().devices[-1].name == "cpu"
