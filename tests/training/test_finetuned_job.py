"""A net that begins with an encoder's weights, as a job: its artifact, its settings, its pre-flight."""

import argparse

import numpy as np
import pytest
import torch

from semiprune_core import training
from semiprune_core.commands import train as command
from semiprune_core.embeddings.encoders import encode, open_encoder
from semiprune_core.embeddings.start import open_pretrained
from semiprune_core.learning.images import Images
from semiprune_core.learning.pretrained import finetuned_net
from semiprune_core.paths import PathGuard
from semiprune_core.results import latest_pseudo
from semiprune_core.training import AUTO, FINETUNED, SCRATCH, TrainSettings, preflight
from tests.support.encoders import tiny_encoder
from tests.support.pools import make_pool, ssl_settings
from tests.support.training_projects import small_project

SSL = ssl_settings(epochs=2, steps_per_epoch=3, lr=3e-4).to_json()
WANTED = TrainSettings(start=FINETUNED, ssl=SSL, preset="finetune", encoder="efficientnet_lite0")


@pytest.fixture
def project(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr("semiprune_core.training.net.open_pretrained", lambda *given, **more: tiny_encoder())
    return small_project(workspace, tmp_path)


def test_a_run_begins_with_the_encoders_weights_and_says_so(project):
    job = training.start_training(project, WANTED, device="cpu", immediate=True)
    assert job.status().state == "done", (job.status().message, job.log_tail())
    run = latest_pseudo(project)
    assert (run.start, run.encoder) == (FINETUNED, "efficientnet_lite0")
    assert run.artifact.facts["reference"]["value"] > 0.8 and run.held_out_mask().sum() == 3
    (listed,) = training.list_runs(project)
    assert listed.title == "FixMatch, efficientnet_lite0 fine-tuned, seed 0"
    listed.job.delete()
    (listed,) = training.list_runs(project)
    assert listed.settings.start == FINETUNED and listed.settings.encoder == "efficientnet_lite0"
    assert training.side_by_side([listed])["start"] == [FINETUNED]


def test_the_pre_flight_times_the_net_that_would_be_trained(project):
    data = training.training_data(project)
    scratch = WANTED.replace(start=SCRATCH)
    keys = {preflight.trial_key(settings, "cpu", "pool", 3) for settings in (WANTED, scratch)}
    assert len(keys) == 2
    trial = preflight.trial_of(preflight.start_trial(project, WANTED, data, device="cpu", immediate=True))
    n_weights = sum(weight.numel() for weight in tiny_encoder().backbone.parameters())
    assert trial.n_weights == n_weights + 3 * (trial.n_features + 1)


def asked(*words):
    parser = argparse.ArgumentParser()
    command._configure(parser)
    return command.settings_from(parser.parse_args(["photos", *words]))


def test_the_command_takes_the_preset_that_belongs_to_the_start():
    settings = asked("--start", "finetuned", "--encoder", "timm:x")
    assert (settings.start, settings.preset, settings.encoder) == (FINETUNED, "finetune", "timm:x")
    assert "+" not in asked("--start", "finetuned").encoder  # a net begins with the weights of one


@pytest.mark.parametrize(
    "words, start",
    [
        ((), AUTO),
        (("--set", "flip=false"), AUTO),
        (("--algorithm", "freematch"), SCRATCH),
        (("--preset", "standard"), SCRATCH),
        (("--nproc", "2"), SCRATCH),
        (("--preset", "standard", "--start", "auto"), AUTO),
    ],
)
def test_who_names_an_algorithm_or_a_preset_gets_that_run(words, start):
    assert asked(*words).start == start and asked().preset == "quick"


def test_an_algorithm_on_features_is_that_of_a_semi_supervised_head():
    head = asked("--start", "frozen", "--algorithm", "freematch").head
    assert (head.head, head.algorithm) == ("ssl", "freematch")
    assert asked("--start", "frozen").head.head == "combined"


def test_the_packaged_encoder_sees_small_grey_images_as_its_features_do(tmp_path):
    guard = PathGuard((tmp_path,))
    images = make_pool(n=2, size=28)[0]
    start = open_pretrained("efficientnet_lite0", 28, guard=guard)
    assert start.side == 96
    pixels = Images(images, torch.device("cpu"))
    net = finetuned_net(start, pixels, 3)
    with torch.no_grad():
        mine = net.features(pixels.normalise(pixels.take(np.arange(2)))).numpy()
    encoder = open_encoder("efficientnet_lite0", guard=guard)
    theirs = encode(encoder, pixels.pixels, side=96, report=lambda done, total: None).astype(np.float32)
    cosine = (mine * theirs).sum(1) / np.linalg.norm(mine, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosine.min() > 0.999
