"""Corrupted and long-tailed variants, and the known data sets."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from semiprune_core.errors import InvalidSettingError, SourceError, UnknownNameError
from semiprune_core.importing.sources import VARIANTS, SourceSpec, datasets, open_source
from semiprune_core.importing.sources.reading import read_entry
from semiprune_core.importing.sources.variants import tail_sizes
from semiprune_core.paths import PathGuard
from tests.hostile_inputs.cases import GOOD, picture


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path.resolve()


def opened(root: Path, *variants: dict, **columns):
    """120 pool and 30 test images of three classes, 50 of each."""
    labels = np.arange(150) % 3
    whole = {"images": picture(0, (150, 8, 8)), "labels": labels, "class_names": ["c", "a", "b"]}
    whole["split"] = np.repeat(["pool", "test"], [120, 30])
    np.savez(root / "a.npz", **{**whole, **columns})
    return open_source(
        SourceSpec("npz", str(root / "a.npz"), {}, variants), guard=PathGuard((root,)), scratch=root / "scratch"
    )


def test_a_share_of_the_pool_is_corrupted_and_the_test_split_is_not(root):
    entries = list(opened(root, {"name": "corrupt", "seed": 4}).entries())
    assert len(entries) == 150
    kinds = Counter(entry.corruption for entry in entries if entry.split == "pool")
    assert kinds.pop(None) == 84 and sum(kinds.values()) == 36 and len(kinds) == 5
    assert all(entry.corruption is None for entry in entries if entry.split == "test")


def test_corruption_repeats_with_its_seed_and_is_recorded_per_image(root):
    def chosen(seed):
        source = opened(root, {"name": "corrupt", "share": 0.5, "seed": seed})
        assert source.origin == "packed" and source.count() == 150
        return [(entry.path, entry.corruption, entry.corruption_seed) for entry in source.entries()]

    assert chosen(1) == chosen(1) != chosen(2)


def test_a_corrupted_original_is_the_corrupted_picture(root):
    plain = {entry.path: entry for entry in opened(root).entries()}
    entry = next(e for e in opened(root, {"name": "corrupt"}).entries() if e.corruption)
    decoded, original = read_entry(entry)
    assert original.startswith(b"\x89PNG")
    assert not np.array_equal(decoded.pixels, read_entry(plain[entry.path])[0].pixels)
    assert np.array_equal(decoded.pixels, read_entry(entry)[0].pixels)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_none_or_all_may_be_corrupted(root, share):
    entries = opened(root, {"name": "corrupt", "share": share}).entries()
    assert sum(entry.corruption is not None for entry in entries) == round(120 * share)


def test_a_long_tail_shrinks_the_classes_in_their_order(root):
    source = opened(root, {"name": "longtail", "factor": 0.1})
    entries = list(source.entries())
    pool = Counter(entry.label for entry in entries if entry.split == "pool")
    assert pool == {"c": 40, "a": 13, "b": 4}
    assert sum(entry.split == "test" for entry in entries) == 30
    assert source.count() == len(entries) == 87 and source.class_names == ("c", "a", "b")


def test_a_long_tail_repeats_with_its_seed(root):
    def kept(seed):
        return [entry.path for entry in opened(root, {"name": "longtail", "factor": 0.1, "seed": seed}).entries()]

    assert kept(0) == kept(0) != kept(1)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((500, 100, 0.1), (500, 50)), ((500, 100, 0.01), (500, 5)), ((7, 1, 0.1), (7, 7)), ((3, 10, 0.01), (3, 1))],
)
def test_tail_sizes_go_from_the_largest_to_its_share(sizes, expected):
    found = tail_sizes(*sizes)
    assert (found[0], found[-1]) == expected and found == sorted(found, reverse=True)


def test_variants_go_on_top_of_each_other(root):
    source = opened(root, {"name": "longtail", "factor": 0.1}, {"name": "corrupt", "share": 1.0})
    assert Counter(entry.corruption is None for entry in source.entries()) == {False: 57, True: 30}


def test_a_long_tail_without_labels_is_refused(root):
    with pytest.raises(SourceError, match="needs a reference label") as caught:
        opened(root, {"name": "longtail"}, labels=np.full(150, -1))
    assert caught.value.code == "LABELS_NEEDED"


@pytest.mark.parametrize(
    "variant",
    [{"name": "corrupt", "share": 1.5}, {"name": "longtail", "factor": 0}, {"name": "corrupt", "speed": 1}],
)
def test_bad_options_are_refused(root, variant):
    with pytest.raises(InvalidSettingError):
        opened(root, variant)


def test_unknown_variants_are_refused(root):
    with pytest.raises(UnknownNameError, match="corrupt"):
        opened(root, {"name": "corupt"})
    assert set(VARIANTS) == {"corrupt", "longtail"}


# -------------------------------------------------------------------------------------------------- data sets


def known(root: Path, name: str, **options):
    spec = SourceSpec("torchvision", name, {"root": str(root), **options})
    return open_source(spec, guard=PathGuard((root,)), scratch=root / "scratch")


def fake(monkeypatch, **kinds) -> None:
    monkeypatch.setattr(datasets, "_torchvision", lambda: SimpleNamespace(**kinds))


def test_sets_in_memory_go_through_an_array(root, monkeypatch):
    class CIFAR10:
        classes = ["plane", "car"]

        def __init__(self, root, train, download):
            self.data = picture(int(train), (4 if train else 2, 8, 8, 3))
            self.targets = [1, 0, 1, 0][: len(self.data)]

        def __len__(self):
            return len(self.data)

    fake(monkeypatch, CIFAR10=CIFAR10)
    source = known(root, "cifar-10")
    entries = list(source.entries())
    assert [(e.path, e.label, e.split) for e in entries][3:5] == [
        ("train/00003.png", "plane", "pool"),
        ("test/00000.png", "car", "test"),
    ]
    assert np.array_equal(read_entry(entries[5])[0].pixels, picture(0, (2, 8, 8, 3))[1])
    assert source.class_names == ("plane", "car")


def test_sets_in_files_stay_where_they_are(root, monkeypatch):
    base = root / "SUN397"
    for number in range(10):
        path = base / "a" / f"sun_{9 - number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(GOOD)

    class SUN397:
        classes = ["abbey"]

        def __init__(self, root, download):
            self._image_files = list((Path(root) / "SUN397").rglob("sun_*.jpg"))
            self._labels = [0] * len(self._image_files)

    fake(monkeypatch, SUN397=SUN397)
    source = known(root, "SUN397")
    entries = list(source.entries())
    assert [entry.path for entry in entries] == [f"a/sun_{number}.jpg" for number in range(10)]
    assert Counter(entry.split for entry in entries) == {"pool": 8, "test": 2} and source.origin == "file"
    assert read_entry(entries[0])[1] == GOOD
    assert Counter(entry.split for entry in known(root, "SUN397", test_share=0.0).entries()) == {"pool": 10}


def test_imagenet_is_read_from_its_folders(root):
    for name in ("train/n01/a.JPEG", "train/n02/b.JPEG", "val/n01/c.JPEG"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(GOOD)
    entries = {entry.path: (entry.label, entry.split) for entry in known(root, "ImageNet").entries()}
    assert entries["train/n02/b.JPEG"] == ("n02", "pool") and entries["val/n01/c.JPEG"] == ("n01", "test")


@pytest.mark.parametrize(("download", "code"), [(False, "DATASET_MISSING"), (True, "DOWNLOAD_FAILED")])
def test_missing_data_are_named(root, monkeypatch, download, code):
    def missing(*_, **__):
        raise RuntimeError("Dataset not found. You can use download=True to download it")

    fake(monkeypatch, CIFAR100=missing)
    with pytest.raises(SourceError) as caught:
        known(root, "CIFAR100", download=download)
    assert caught.value.code == code and str(root) in str(caught.value)


@pytest.mark.parametrize("name", ["ImageNet", "TinyImageNet"])
def test_missing_folders_are_named(root, name):
    with pytest.raises(SourceError, match="expected train/") as caught:
        known(root, name)
    assert caught.value.code == "DATASET_MISSING"


def test_a_broken_pair_of_torch_and_torchvision_is_named(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delitem(sys.modules, "torchvision.datasets", raising=False)
    with pytest.raises(SourceError, match="make install") as caught:
        known(root, "CIFAR10")
    assert caught.value.code == "TORCHVISION_BROKEN"


def test_unknown_sets_and_missing_roots_are_named(root):
    with pytest.raises(UnknownNameError, match="Known: CIFAR10"):
        known(root, "MNIST-1000")
    with pytest.raises(SourceError, match="torchvision:Food101:FOLDER"):
        open_source(SourceSpec("torchvision", "Food101"), guard=PathGuard((root,)), scratch=root / "scratch")
