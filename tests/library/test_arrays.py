"""Images and labels as people have them: taken, or named in one sentence."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import semiprune_core as sp
from semiprune_core.errors import SemiPruneError
from semiprune_core.learning.frozen import FrozenSettings
from semiprune_core.library.arrays import as_images, as_labels
from semiprune_core.records import Trajectory
from semiprune_core.selection import default_knobs
from tests.support.features import clouds_of

COLOUR = np.random.default_rng(0).integers(0, 256, (5, 9, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        COLOUR,
        np.moveaxis(COLOUR, 3, 1),
        COLOUR / 255,
        (COLOUR / 255).astype(np.float32),
        COLOUR.astype(np.float64),
        COLOUR.astype(np.int64),
        torch.from_numpy(COLOUR),
        torch.from_numpy(np.moveaxis(COLOUR, 3, 1).copy()).float() / 255,
        list(COLOUR),
        [Image.fromarray(image) for image in COLOUR],
        [torch.from_numpy(np.moveaxis(image, 2, 0).copy()) for image in COLOUR],
    ],
    ids=str.split("bytes first share share32 to255 whole tensor tensor_first list pillow tensors"),
)
def test_images_come_in_every_usual_form(given):
    seen = as_images(given)
    assert len(seen) == 5
    assert all(np.array_equal(np.asarray(seen[at]), COLOUR[at]) for at in range(5))


def test_grey_images_and_those_of_different_sizes():
    assert as_images(COLOUR[..., 0])[0].mode == as_images(COLOUR[..., :1])[0].mode == "L"
    seen = as_images([COLOUR[0], COLOUR[1, :5], Image.fromarray(COLOUR[2]).convert("P")])
    assert [image.size for image in seen] == [(8, 9), (8, 5), (8, 9)]
    assert seen.copies.shape[0] == 3 and seen.duplicate_of.tolist() == [0, 1, 2]


def test_equal_pictures_are_found():
    assert as_images(np.concatenate([COLOUR, COLOUR[1:2]])).duplicate_of.tolist() == [0, 1, 2, 3, 4, 1]


@pytest.mark.parametrize(
    "given, said",
    [
        ((COLOUR / 255 - 0.5) / 0.2, "normalisation"),
        (np.full((2, 4, 4), np.nan), "0..1"),
        (COLOUR.astype(np.uint16) * 257, "0..255"),
        (np.zeros((4, 4)), "shape"),
        (np.zeros((0, 4, 4), np.uint8), "shape"),
        (np.zeros((2, 5, 6, 7), np.uint8), "shape"),
        ([], "no images"),
        ("pictures/", "semiprune new"),
        (np.array([["a", "b"]] * 4)[None], "numbers"),
        ([np.zeros((3,), np.uint8)], "Image 0"),
    ],
)
def test_what_is_no_image_is_named_in_a_sentence(given, said):
    with pytest.raises(SemiPruneError, match=said) as caught:
        as_images(given)[0]
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    "labels, numbers, names",
    [
        ([1, -1, 0], [1, -1, 0], ("0", "1")),
        ([1.0, np.nan, 0.0], [1, -1, 0], ("0", "1")),
        (["wood", "", "sea"], [1, -1, 0], ("sea", "wood")),
        (["wood", None, "sea"], [1, -1, 0], ("sea", "wood")),
        (np.array(["wood", np.nan, "sea"], dtype=object), [1, -1, 0], ("sea", "wood")),
        (torch.tensor([1, -1, 0]), [1, -1, 0], ("0", "1")),
    ],
)
def test_labels_are_numbers_or_names(labels, numbers, names):
    found, known = as_labels(labels, 3)
    assert found.tolist() == numbers and known == names


def test_names_that_are_given_keep_their_order():
    found, known = as_labels(["wood", "", "sea"], 3, ["wood", "sea", "sky"])
    assert found.tolist() == [0, -1, 1] and known == ("wood", "sea", "sky")


@pytest.mark.parametrize(
    "labels, names, said",
    [
        ([1, 2], None, "shape"),
        ([0.5, 1, 2], None, "whole numbers"),
        ([-2, 0, 1], None, "whole numbers"),
        ([0, 1, 5], ["a", "b"], "names for 2 classes"),
        (["sea", "lake", ""], ["sea", "wood"], "'lake'"),
    ],
)
def test_wrong_labels_are_named_in_a_sentence(labels, names, said):
    with pytest.raises(SemiPruneError, match=said):
        as_labels(labels, 3, names)


# --- the steps on features -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clouds():
    """(features, true, labels): 240 points of three classes, a third of them labeled."""
    true = np.arange(240) % 3
    labels = np.where(np.arange(240) % 7 < 2, true, -1)
    return clouds_of(true), true, labels


@pytest.fixture(scope="module")
def pseudo(clouds):
    features, _, labels = clouds
    return sp.learn(features, labels, class_names=["<sea>", "wood", "sky"])


def test_learning_says_how_right_it_is(pseudo, clouds):
    _, true, labels = clouds
    share = pseudo.accuracy
    assert share.low < share.value <= share.high and share.n == (labels >= 0).sum()
    assert np.array_equal(pseudo.labels[labels >= 0], labels[labels >= 0])
    assert (pseudo.labels == true).mean() > 0.8
    assert f"{share.value:.1%}" in repr(pseudo) and pseudo.names[0] == "<sea>"
    assert pseudo.frame()["human"].sum() == share.n


def test_labels_that_nobody_drew_measure_nothing(clouds):
    features, _, labels = clouds
    chosen = sp.learn(features, labels, drawn_at_random=False)
    assert chosen.accuracy is None and "not known" in repr(chosen)
    half = sp.learn(features, labels, drawn_at_random=np.arange(240) < 120)
    assert half.accuracy.n == (labels[:120] >= 0).sum()


@pytest.mark.parametrize("epochs", [2, 5, 12])
def test_fewer_than_ten_epochs_get_a_shorter_window(pseudo, epochs):
    scores = sp.score(sp.train_dynamics(pseudo, epochs=epochs))
    assert scores.table.settings["window"] == min(10, epochs)
    assert {"aum", "dual", "el2n", "forgetting"} <= {*scores.names}
    assert len(sp.select(scores, 0.75)) == 60


def test_one_epoch_is_refused_in_words(pseudo):
    with pytest.raises(SemiPruneError, match="epochs"):
        sp.train_dynamics(pseudo, epochs=1)


def test_labels_of_ones_own_can_be_scored(clouds):
    features, true, labels = clouds
    assert len(sp.score(sp.train_dynamics(features, true, epochs=3))) == 240
    with pytest.raises(SemiPruneError, match="have no label"):
        sp.train_dynamics(features, labels)
    with pytest.raises(SemiPruneError, match="label for every image"):
        sp.train_dynamics(features)


def test_scores_from_elsewhere_get_the_knobs_of_such_scores():
    aum = np.random.default_rng(0).normal(size=500)
    chosen = sp.select({"aum": aum}, 0.7)
    wanted = default_knobs("semi_aum_cutoff", 0.7, sp.Scores.of({"aum": aum}).basis).selector
    assert chosen.settings["knobs"]["cutoff"] == wanted["cutoff"] > 0
    assert sp.select({"aum": aum}, 0.7, cutoff=0.0).settings["knobs"]["cutoff"] == 0.0
    with pytest.raises(SemiPruneError, match="change the scores themselves"):
        sp.select({"aum": aum}, 0.7, gamma=0.5)
    with pytest.raises(SemiPruneError, match="has no setting|Unknown|unknown"):
        sp.select({"aum": aum}, 0.7, cutof=0.1)


def test_a_method_that_needs_a_project_says_so(pseudo):
    with pytest.raises(SemiPruneError, match="open\\(NAME\\)"):
        sp.select(sp.score(sp.train_dynamics(pseudo, epochs=2)), method="zcore")


def test_a_trajectory_alone_is_enough_for_scores():
    row = np.random.default_rng(0).uniform(size=(4, 30))
    assert len(sp.score(Trajectory(row, row - 0.5, row > 0.5, 1 - row))) == 30


def test_the_coreset_is_a_subset_of_a_data_set(pseudo):
    coreset = sp.select(sp.score(sp.train_dynamics(pseudo, epochs=3)), 0.9)
    dataset = torch.utils.data.TensorDataset(torch.arange(240))
    assert [int(row[0]) for row in coreset.subset(dataset)] == coreset.indices.tolist()
    assert coreset.frame()["position"].tolist() == coreset.indices.tolist()
    assert np.array_equal(coreset.labels, pseudo.labels[coreset.indices])
    with pytest.raises(SemiPruneError, match="in the same order"):
        coreset.subset(torch.utils.data.TensorDataset(torch.arange(10)))


def test_evaluating_says_how_it_compares(clouds):
    features, true, labels = clouds
    coreset = sp.prune(features, labels, 0.8)
    found = sp.evaluate(coreset, features[:240], true, features[::5], true[::5], seeds=(0, 1))
    assert found.coreset.n == 48 and len(found.random) == 2 and found.full.value > 0.8
    assert found.gain == pytest.approx(found.coreset.value - np.mean([one.value for one in found.random]))
    with pytest.raises(SemiPruneError, match="for every image"):
        sp.evaluate(coreset, features, labels, features[::5], true[::5])


def test_notebooks_get_html_that_no_name_can_break(pseudo):
    scores = sp.score(sp.train_dynamics(pseudo, epochs=3))
    assert scores._repr_html_().count("<svg") == len(scores.names)
    assert "<sea>" not in pseudo._repr_html_() + sp.select(scores)._repr_html_()
    grey = sp.Features(np.eye(5), "given", images=as_images(COLOUR))
    assert grey._repr_html_().count("data:image/png;base64,") == 5


def test_settings_of_the_head_are_those_of_the_command_line(clouds):
    features, _, labels = clouds
    (name, *_) = FrozenSettings().to_json()
    with pytest.raises(SemiPruneError):
        sp.learn(features, labels, no_such_setting=1)
    assert name
    with pytest.raises(SemiPruneError, match="trained on images"):
        sp.learn(features, labels, start="scratch")


QUIET = """
import sys, semiprune_core as sp
before = {"numpy", "pandas", "torch"} & {*sys.modules}
import numpy as np
names = dir(sp)
chosen = sp.select({"aum": np.arange(10.0)}, 0.5)
print(sorted(before), "torch" in sys.modules, "streamlit" in sys.modules, len(chosen), names == sorted(sp.__all__))
"""


def test_nothing_is_loaded_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True)
    assert done.stdout.strip() == "[] False False 5 True", done.stderr
