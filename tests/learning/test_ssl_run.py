"""Semi-supervised runs on tiny pools: they learn, resume to the bit, and refuse what cannot work."""

import numpy as np
import pytest
import torch

from semiprune_core import files
from semiprune_core.errors import InvalidDataError, OutOfMemoryError, WorkspaceError
from semiprune_core.learning import predict, ssl_run, trainer
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.learning.ssl_run import train_ssl
from semiprune_core.progress import Collected, Stopped
from tests.support.pools import NAMES, make_pool, ssl_settings


def run(pool, *, progress=None, seed=0, folder=None, reference=None, names=NAMES, **changes):
    images, labels, _ = pool
    return train_ssl(
        images,
        labels,
        class_names=names,
        settings=ssl_settings(**changes),
        seed=seed,
        progress=progress or Collected(),
        folder=folder,
        reference=reference,
    )


def same(one, other):
    arrays = ("labels", "predicted", "confidence", "margin", "features", "held_out_mask")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and one.history == other.history
        and one.quality == other.quality
        and all(torch.equal(a, b) for a, b in zip(one.net.state_dict().values(), other.net.state_dict().values()))
    )


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_algorithm_learns_a_simple_pool(small_pool, name):
    images, labels, truth = small_pool
    settings = {"epochs": 4, "steps_per_epoch": 8, "lr": 0.05, "held_out": 0.2}
    result = run(small_pool, algorithm=name, reference=truth, **settings)
    rest = labels < 0
    assert (result.predicted[rest] == truth[rest]).mean() > 0.8
    assert np.array_equal(result.labels[~rest], labels[~rest]), "human labels win"
    assert result.features.shape == (60, 128) and np.isfinite(result.features).all()
    assert result.held_out_mask.sum() == 6 == result.quality.accuracy.n
    record = result.pseudo_labels(NAMES)
    assert (record.confidence[record.human_mask] == 1).all()


def test_reports_carry_what_a_page_draws(small_pool):
    progress = Collected()
    result = run(small_pool, progress=progress, reference=small_pool[2])
    assert [report["done"] for report in progress.reports] == list(range(1, 13))
    last = progress.reports[-1]
    for fact in ("loss", "mask_share", "lr", "images_per_s", "held_out_accuracy", "held_out_interval", "class_counts"):
        assert fact in last, fact
    assert [entry["epoch"] for entry in result.history] == [1, 2, 3]
    assert result.history[-1]["pool_passes"] == pytest.approx(12 * 16 / 60, abs=1e-3)


@pytest.mark.parametrize("name", ["fixmatch", "flexmatch", "freematch"])
def test_a_stopped_run_goes_on_to_the_same_bits(small_pool, tmp_path, name):
    changes = {"algorithm": name, "distribution_alignment": "labels", "warm_up": 0.2}
    whole = run(small_pool, **changes)
    for stops in ([1], [4, 9], [2, 3, 11]):
        folder = tmp_path / "-".join(map(str, stops))
        for stop in stops:
            with pytest.raises(Stopped):
                run(small_pool, folder=folder, progress=Collected(stop_after=stop), **changes)
        assert same(run(small_pool, folder=folder, **changes), whole), stops
    again = run(small_pool, folder=folder, **changes)
    assert same(again, whole) and "Resuming from step 12." in again.notes


def test_a_damaged_checkpoint_costs_steps_and_nothing_else(small_pool, tmp_path):
    whole = run(small_pool)
    with pytest.raises(Stopped):
        run(small_pool, folder=tmp_path, progress=Collected(stop_after=8))
    (tmp_path / "round-0" / "checkpoint-00000008.safetensors").write_bytes(b"broken")
    resumed = run(small_pool, folder=tmp_path)
    assert same(resumed, whole)
    assert "Checkpoint 8 is damaged" in resumed.notes[0] and "Resuming from step 6." in resumed.notes[1]


def test_a_folder_of_another_run_is_refused(small_pool, tmp_path):
    run(small_pool, folder=tmp_path)
    with pytest.raises(WorkspaceError, match="another run"):
        run(small_pool, folder=tmp_path, lr=0.5)
    images, labels, truth = small_pool
    with pytest.raises(WorkspaceError, match="another run"):
        run((images, np.where(labels == -1, 0, labels), truth), folder=tmp_path)


def test_an_epoch_may_be_a_pass_over_the_pool_and_views_random_parts(small_pool):
    images, labels, _ = small_pool
    settings = ssl_settings(epochs=2, steps_per_epoch=0, batch_size=8, unlabeled_ratio=2, crop="resized")
    result = train_ssl(images, labels, class_names=NAMES, settings=settings, seed=0, progress=Collected())
    assert [entry["step"] for entry in result.history] == [4, 8]  # 60 images, 16 at a time
    assert result.history[-1]["pool_passes"] == pytest.approx(2, abs=0.2)


def test_seeds_differ_and_repeat(small_pool):
    one, again, other = (run(small_pool, seed=seed) for seed in (1, 1, 2))
    assert same(one, again) and not np.array_equal(one.confidence, other.confidence)


def test_refitting_trains_a_second_net_on_all_labels_and_says_so(small_pool, tmp_path):
    progress = Collected()
    result = run(small_pool, refit=True, folder=tmp_path, progress=progress)
    assert progress.reports[-1]["done"] == progress.reports[-1]["total"] == 24
    assert {report.get("round") for report in progress.reports} == {1, 2}
    assert "second one trained on all labels" in result.quality.measured_on
    plain = run(small_pool)
    assert result.quality.accuracy == plain.quality.accuracy
    assert not np.array_equal(result.confidence, plain.confidence)
    with pytest.raises(Stopped):
        run(small_pool, refit=True, folder=tmp_path / "b", progress=Collected(stop_after=17))
    assert same(run(small_pool, refit=True, folder=tmp_path / "b"), result)


@pytest.mark.parametrize("cross_fit", [0, 3])
def test_the_margin_is_the_lead_of_the_first_class_over_the_second(small_pool, cross_fit, monkeypatch):
    kept = []

    def also_probs(net, images, idx=None, **known):
        found = predict.predict(net, images, idx, **{**known, "keep_probs": True})
        kept.extend([found.probs] if idx is None else [])
        return found

    monkeypatch.setattr(ssl_run, "predict", also_probs)
    result = run(small_pool, cross_fit=cross_fit)
    probs = np.sort(np.mean(kept, axis=0), axis=1)
    assert len(kept) == max(1, cross_fit)
    assert np.allclose(result.margin, probs[:, -1] - probs[:, -2], atol=1e-6)
    assert np.allclose(result.confidence, probs[:, -1], atol=1e-6) and np.ptp(result.margin) > 0


def test_cross_fitting_measures_on_every_label(small_pool):
    result = run(small_pool, cross_fit=3)
    assert result.quality.accuracy.n == 30 and "one of 3 models" in result.quality.measured_on
    assert np.array_equal(result.held_out_mask, small_pool[1] >= 0)


def test_one_channel_without_its_axis_and_three_channels_work(small_pool):
    images, labels, truth = small_pool
    assert len(run((images[..., 0], labels, truth)).labels) == 60
    colour, _ = make_pool(channels=3)
    assert len(run((colour, labels, truth)).labels) == 60


def test_bf16_runs_and_stays_finite(small_pool):
    result = run(small_pool, precision="bf16")
    assert np.isfinite(result.confidence).all()


def test_gradient_clipping_keeps_a_wild_run_finite(small_pool):
    assert np.isfinite(run(small_pool, lr=3.0, clip_norm=0.1).confidence).all()


def test_a_pool_of_twelve_images_works(tmp_path):
    images, truth = make_pool(n=12)
    labels = np.where(np.arange(12) < 6, truth, -1)
    labels[:3], truth[:3] = [0, 1, 2], [0, 1, 2]
    result = run((images, labels, truth), folder=tmp_path)
    assert len(result.labels) == 12 and result.quality is None


@pytest.mark.parametrize(
    "labels, names, sentence",
    [
        ([0, 1, -1, -1], NAMES, "1 of 3 classes have no labeled image: c. Label at least one of each"),
        ([0, 0, 0, -1], ("only",), "at least two classes"),
        ([-1, -1, -1, -1], NAMES, "No image is labeled yet"),
        ([0, 0, 0, -1], NAMES, "2 of 3 classes have no labeled image: b, c"),
        ([0, 1, 3, -1], NAMES, "must lie in -1..2"),
        ([0, 1, 2], NAMES, "3 labels for 4 images"),
    ],
)
def test_labels_that_cannot_work_are_refused_in_a_sentence(labels, names, sentence):
    images, _ = make_pool(n=4)
    with pytest.raises(InvalidDataError, match=sentence):
        run((images, np.array(labels), None), names=names)


def test_cross_fitting_too_few_labels_is_refused():
    images, truth = make_pool(n=12)
    labels = np.where(np.arange(12) < 4, [0, 1, 2] * 4, -1)
    with pytest.raises(InvalidDataError, match="needs at least 10 labels, but there are 4"):
        run((images, labels, truth), cross_fit=5)


def out_of_memory_above(monkeypatch, largest):
    """Make the net refuse batches above ``largest`` images, as a small GPU would."""
    build = trainer.build_net

    def small(*args, **kwargs):
        net = build(*args, **kwargs)

        def refuse(module, inputs):
            if len(inputs[0]) > largest:
                raise torch.OutOfMemoryError("CUDA out of memory.")

        net.register_forward_pre_hook(refuse)
        return net

    monkeypatch.setattr(trainer, "build_net", small)


def test_too_little_memory_splits_the_batch_and_goes_on(small_pool, monkeypatch):
    out_of_memory_above(monkeypatch, 9)
    result = run(small_pool, epochs=1)
    assert len(result.labels) == 60


def test_far_too_little_memory_names_the_batch_and_a_smaller_one(small_pool, monkeypatch):
    out_of_memory_above(monkeypatch, 1)
    with pytest.raises(OutOfMemoryError, match="batch of 24 images with compact. Set batch_size to 4"):
        run(small_pool)


@pytest.mark.fault
def test_a_read_only_folder_fails_with_its_cause(small_pool, tmp_path, monkeypatch):
    def read_only(handle):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(files.os, "fsync", read_only)
    with pytest.raises(WorkspaceError, match="cannot be written: Read-only file system"):
        run(small_pool, folder=tmp_path)
