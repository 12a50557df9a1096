"""An encoder's weights as the start of a net: what it sees, how it moves, where its head begins."""

import numpy as np
import pytest
import torch

from semiprune_core.learning import pretrained as module
from semiprune_core.learning.images import Images
from semiprune_core.learning.optim import make_optimizer, set_lr
from semiprune_core.learning.predict import predict
from semiprune_core.learning.pretrained import FixedNorm, begin_head, finetuned_net, first_head, step_scales
from semiprune_core.learning.settings import SupervisedSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.learning.supervised_run import train_supervised
from semiprune_core.progress import Collected, Stopped
from tests.support.encoders import tiny_encoder
from tests.support.pools import NAMES, make_pool, ssl_settings


@pytest.fixture
def pool():
    return make_pool(n=60, size=28)


def test_it_sees_what_the_encoder_was_trained_to_see(pool):
    images = Images(pool[0], torch.device("cpu"))
    net = finetuned_net(tiny_encoder(), images, 3)
    batch = images.take(np.arange(4)).float() / 255
    large = torch.nn.functional.interpolate(batch.expand(-1, 3, -1, -1), size=(48, 48), mode="bilinear", antialias=True)
    with torch.no_grad():
        wanted = tiny_encoder().backbone.eval()((large - 0.5) / 0.2)
        assert torch.allclose(net.features(images.normalise(images.take(np.arange(4)))), wanted, atol=1e-4)


def test_normalisation_keeps_the_encoders_statistics_and_learns_scale_and_shift(pool):
    images = Images(pool[0], torch.device("cpu"))
    net = finetuned_net(tiny_encoder(), images, 3).train()
    (norm,) = (part for part in net.modules() if isinstance(part, FixedNorm))
    before = norm.get_buffer("running_mean").clone()
    net(images.normalise(images.take(np.arange(8)))).sum().backward()
    assert torch.equal(norm.get_buffer("running_mean"), before) and norm.weight.grad is not None


def test_earlier_layers_take_smaller_steps(pool):
    net = finetuned_net(tiny_encoder(), Images(pool[0], torch.device("cpu")), 3)
    scales = step_scales(net)
    by_depth = [scales[f"backbone.net.{name}.weight"] for name in ("stem.0", "blocks.0.0", "blocks.1.0")]
    assert by_depth == sorted(by_depth) and by_depth[0] == pytest.approx(module.EARLIEST) and by_depth[-1] == 1
    optimizer = make_optimizer(net, SupervisedSettings(), torch.device("cpu"), scales)
    set_lr(optimizer, 0.5)
    moves = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert moves[id(net.head.weight)] == 0.5
    assert moves[id(net.backbone.net.stem[0].weight)] == pytest.approx(0.5 * module.EARLIEST)
    assert len(moves) == len(list(net.parameters()))


def test_the_head_begins_as_a_probe_that_is_sure_of_some_images(pool):
    pixels, truth = pool
    images = Images(pixels, torch.device("cpu"))
    net = finetuned_net(tiny_encoder(), images, 4)  # the fourth class has no label
    begin_head(net, images, np.arange(30), truth[:30])
    answers = predict(net, images, np.arange(30, 60), keep_probs=True)
    assert (answers.labels == truth[30:]).mean() > 0.8
    assert answers.confidence.max() > 0.8 and answers.probs[:, 3].max() < 0.01


def test_the_first_head_does_not_mind_constant_features():
    rows = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)
    rows[:, 1] = 7.0
    labels = (rows[:, 0] > 0).astype(int)
    head = first_head(rows, labels, 2)
    assert np.isfinite(head.weights).all() and (head.logits(rows).argmax(1) == labels).mean() > 0.9


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_learns_from_it(pool, name):
    pixels, truth = pool
    labels = np.where(np.arange(60) < 30, truth, -1)
    settings = ssl_settings(algorithm=name, epochs=2, steps_per_epoch=3, lr=3e-4, options={})
    result = train_ssl(
        pixels,
        labels,
        class_names=NAMES,
        settings=settings,
        seed=0,
        progress=Collected(),
        pretrained=tiny_encoder,
    )
    assert (result.predicted == truth).mean() > 0.8


def test_a_stopped_run_goes_on_to_the_same_bits(pool, tmp_path):
    pixels, truth = pool
    common = {"n_classes": 3, "settings": SupervisedSettings(epochs=3, batch_size=16, lr=0.001, flip=False), "seed": 0}
    whole = train_supervised(pixels, truth, progress=Collected(), pretrained=tiny_encoder(), **common)
    with pytest.raises(Stopped):
        train_supervised(
            pixels, truth, progress=Collected(stop_after=5), folder=tmp_path, pretrained=tiny_encoder(), **common
        )
    again = train_supervised(pixels, truth, progress=Collected(), folder=tmp_path, pretrained=tiny_encoder(), **common)
    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(tensor, again.net.state_dict()[name]), name
    assert whole.history[-1]["train_accuracy"] > 0.9
