"""Schedules, averages, sampling, presets, devices and nets: values pinned."""

import math
import sys

import numpy as np
import pytest
import torch

from semiprune_core.errors import InvalidDataError, InvalidSettingError, SemiPruneError, UnknownNameError
from semiprune_core.learning import alignment, device, optim, presets, sampling
from semiprune_core.learning.images import Images, channel_moments
from semiprune_core.learning.nets import NETS, build_net
from semiprune_core.learning.predict import settle_norms
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.streams import Purpose


@pytest.mark.parametrize("done, factor", [(0, 1.0), (0.5, math.cos(7 * math.pi / 32)), (1, math.cos(7 * math.pi / 16))])
def test_fixmatch_schedule(done, factor):
    assert optim.fixmatch_cosine(done) == pytest.approx(factor)
    assert optim.fixmatch_cosine(1) == pytest.approx(0.19509, abs=1e-5)


def test_supervised_schedules():
    assert [optim.cosine(d) for d in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])
    assert [optim.step_decay(d) for d in (0, 0.49, 0.5, 0.75)] == [1, 1, 0.1, 0.01]


def test_moving_average_of_weights_and_copy_of_buffers():
    net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.BatchNorm1d(1))
    torch.nn.init.constant_(net[0].weight, 1.0)
    average = optim.MovingAverage(net, decay=0.9)
    torch.nn.init.constant_(net[0].weight, 2.0)
    net[1].running_mean.fill_(5.0)
    average.update(net)
    average.update(net)
    assert average.net[0].weight.item() == pytest.approx(2 - 0.81)
    assert average.net[1].running_mean.item() == 5.0
    assert not average.net.training


def test_norms_and_biases_decay_only_when_asked():
    net = build_net("compact", image_size=12, channels=1, n_classes=2)
    for decays in (False, True):
        settings = SupervisedSettings(weight_decay=0.1, decay_norms=decays)
        matrices, vectors = optim.make_optimizer(net, settings, torch.device("cpu")).param_groups
        assert matrices["weight_decay"] == 0.1 and vectors["weight_decay"] == (0.1 if decays else 0.0)
        assert all(p.ndim == 1 for p in vectors["params"])


def test_a_stream_shows_every_image_before_one_comes_twice():
    taken = [sampling.stream(7, 4 * k, 4, seed=1, purpose=Purpose.POOL) for k in range(14)]
    row = np.concatenate(taken)
    for turn in range(8):
        assert sorted(row[7 * turn : 7 * turn + 7]) == list(range(7))
    assert np.array_equal(sampling.stream(7, 20, 10, seed=1, purpose=Purpose.POOL), row[20:30])
    assert not np.array_equal(row[:7], sampling.stream(7, 0, 7, seed=2, purpose=Purpose.POOL))


def test_a_batch_larger_than_the_images_repeats_them():
    assert sorted(sampling.stream(3, 0, 7, seed=0, purpose=Purpose.LABELED))[:3] == [0, 0, 1]


def test_draws_depend_on_seed_purpose_and_step_only():
    order, views = Purpose.POOL, Purpose.VIEWS
    keys = [(0, order, 2), (0, order, 3), (0, views, 2), (1, order, 2)]
    draws = {torch.rand(1, generator=sampling.torch_rng(*key)).item() for key in keys}
    assert len(draws) == 4
    again = torch.rand(1, generator=sampling.torch_rng(0, order, 2)).item()
    assert again in draws


def test_alignment_pulls_the_mean_prediction_to_the_wanted_shares():
    drawn, like = torch.tensor([3.0, 1.0]), torch.zeros(2)
    state = alignment.begin_alignment("labels", drawn, like)
    probs = torch.tensor([[0.5, 0.5], [0.3, 0.7]])
    aligned, state = alignment.align(probs, state)
    mean = probs.mean(0)
    wanted = probs * torch.tensor([0.75, 0.25]) / mean
    assert torch.allclose(aligned, wanted / wanted.sum(-1, keepdim=True), atol=1e-4)
    assert torch.allclose(state["align_mean"], mean)
    assert alignment.align(probs, alignment.begin_alignment("none", drawn, like))[0] is probs
    assert alignment.begin_alignment("labels", None, like) == {}  # nothing is known of class shares


@pytest.mark.parametrize("algorithm", ["fixmatch", "flexmatch", "freematch", "pseudo_label", "supervised"])
@pytest.mark.parametrize("name", list(presets.SSL_PRESETS))
def test_every_ssl_preset_fits_every_algorithm(name, algorithm):
    settings = presets.ssl_preset(name, algorithm)
    assert settings.algorithm == algorithm and settings.net in NETS
    assert SSLSettings.from_json(settings.to_json()) == settings


def test_the_paper_presets_are_the_papers():
    settings = presets.ssl_preset("paper:cifar100")
    assert (settings.net, settings.n_steps, settings.batch_size, settings.unlabeled_ratio) == (
        "wrn_28_8",
        102_400,
        64,
        7,
    )
    assert (settings.lr, settings.momentum, settings.nesterov, settings.weight_decay) == (0.03, 0.9, True, 1e-3)
    assert (settings.ema_decay, settings.make_algorithm().threshold, settings.warm_up) == (0.999, 0.95, 0.0)
    assert presets.ssl_preset("paper:cifar10").weight_decay == 5e-4
    dynamics = presets.supervised_preset("paper:imagenet1k")
    assert (dynamics.net, dynamics.epochs, dynamics.batch_size, dynamics.lr) == ("resnet34", 90, 256, 0.1)
    assert dynamics.weight_decay == 1e-4


@pytest.mark.parametrize("name", list(presets.PAPER_SSL))
def test_the_paper_presets_learn_from_all_labels_and_crop_as_published(name):
    ssl, dynamics = presets.ssl_preset(f"paper:{name}"), presets.supervised_preset(f"paper:{name}")
    is_small = name.startswith("cifar")
    assert ssl.held_out == 0 and not ssl.refit and not ssl.cross_fit
    assert ssl.crop == dynamics.crop == ("shift" if is_small else "resized")
    assert (dynamics.nesterov, dynamics.lr_end, dynamics.schedule) == (is_small, 1e-4, "cosine")
    assert ssl.steps_per_epoch == 1024 and ssl.replace(steps_per_epoch=0).on_pool(1).n_steps == ssl.epochs


def test_an_epoch_may_be_a_pass_over_the_pool():
    ours = presets.ssl_preset("paper:cifar100")
    passes = ours.replace(steps_per_epoch=0).on_pool(50_000)
    assert (ours.on_pool(50_000).n_steps, passes.n_steps) == (102_400, 11_200)


@pytest.mark.parametrize("name", ["quick", "brief", "standard"])
def test_settings_that_came_later_are_left_out_where_they_change_nothing(name):
    """Results are found by a hash of their settings: those of presets from before must not change."""
    for preset in (presets.supervised_preset(name), *([] if name == "brief" else [presets.ssl_preset(name)])):
        assert not {"crop", "lr_end"} & {*preset.to_json()}
        assert type(preset).from_json(preset.to_json()) == preset
    paper = presets.supervised_preset("paper:food101")
    assert SupervisedSettings.from_json(paper.to_json()) == paper == paper.replace(epochs=200)


def test_presets_take_changes_and_refuse_unknown_names():
    assert presets.ssl_preset("quick", epochs=2).epochs == 2
    with pytest.raises(UnknownNameError, match="Known: .*paper:cifar10"):
        presets.ssl_preset("fast")
    with pytest.raises(InvalidSettingError, match="Did you mean 'epochs'"):
        presets.supervised_preset("quick", epoch=3)
    with pytest.raises(InvalidSettingError, match="Unknown setting 'treshold'"):
        presets.ssl_preset("quick", options={"treshold": 0.9})


def test_a_device_that_is_not_there_is_refused_with_what_is():
    assert device.choose_device("cpu").type == "cpu"
    with pytest.raises(InvalidSettingError, match="Available: auto, cpu"):
        device.choose_device("tpu")
    with pytest.raises(InvalidSettingError, match="fp16 needs a GPU"):
        device.choose_precision("fp16", torch.device("cpu"))


def test_memory_errors_are_recognised():
    assert device.is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."))
    assert device.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert not device.is_out_of_memory(RuntimeError("shape mismatch"))


@pytest.mark.parametrize("name", [name for name in NETS if name != "wrn_28_8"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_net_gives_features_and_logits(name, channels):
    net = build_net(name, image_size=32, channels=channels, n_classes=5).eval()
    x = torch.zeros(2, channels, 32, 32)
    features = net.features(x)
    assert features.shape == (2, net.n_features)
    assert torch.equal(net.classify(features), net(x)) and net(x).shape == (2, 5)


@pytest.mark.parametrize("size", [8, 28, 64, 96, 224])
def test_the_compact_net_takes_any_size(size):
    net = build_net("compact", image_size=size, channels=3, n_classes=2)
    assert net(torch.zeros(2, 3, size, size)).shape == (2, 2)


def test_wide_nets_have_their_published_size():
    counts = {
        name: sum(p.numel() for p in build_net(name, image_size=32, channels=3, n_classes=10).parameters())
        for name in ("wrn_28_2", "wrn_28_8")
    }
    assert counts["wrn_28_2"] == pytest.approx(1.47e6, rel=0.01) and counts["wrn_28_8"] == pytest.approx(
        23.4e6, rel=0.01
    )


def test_building_a_net_is_repeatable_and_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    one = build_net("compact", image_size=12, channels=1, n_classes=2, seed=1)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1))
    same, other = (build_net("compact", image_size=12, channels=1, n_classes=2, seed=s) for s in (1, 2))
    assert torch.equal(one.head.weight, same.head.weight) and not torch.equal(one.head.weight, other.head.weight)


def test_a_broken_torchvision_is_named_only_when_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    build_net("compact", image_size=12, channels=1, n_classes=2)
    with pytest.raises(SemiPruneError, match="needs torchvision.*or choose compact"):
        build_net("resnet18", image_size=64, channels=3, n_classes=2)


def test_images_are_normalised_by_their_own_moments():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 9, 9, 3), dtype=np.uint8)
    images = Images(pixels, torch.device("cpu"))
    batch = images.normalise(images.take(np.arange(50)))
    assert batch.shape == (50, 3, 9, 9) and batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(batch.mean((0, 2, 3)), torch.zeros(3), atol=1e-3)
    assert torch.allclose(batch.std((0, 2, 3)), torch.ones(3), atol=1e-3)
    mean, std = channel_moments(np.full((4, 5, 5, 1), 7, np.uint8))
    assert mean[0] == pytest.approx(7) and std[0] == 1


def test_images_of_another_type_are_refused():
    with pytest.raises(InvalidDataError, match="uint8"):
        Images(np.zeros((3, 4, 4), np.float32), torch.device("cpu"))


def test_settled_norms_are_those_of_the_images_and_leave_the_weights_alone():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 12, 12, 1), dtype=np.uint8)
    images = Images(pixels, torch.device("cpu"))
    net = build_net("compact", image_size=12, channels=1, n_classes=2).eval()
    weights = [p.clone() for p in net.parameters()]
    settle_norms(net, images, np.arange(40))
    stem, norm = net.backbone[0], net.backbone[1]
    with torch.no_grad():
        wanted = stem(images.normalise(images.take(np.arange(40)))).mean((0, 2, 3))
    assert torch.allclose(norm.running_mean, wanted, atol=1e-5)
    assert norm.momentum == 0.1 and not net.training
    assert all(torch.equal(a, b) for a, b in zip(weights, net.parameters()))
