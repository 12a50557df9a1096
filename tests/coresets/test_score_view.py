"""Which images a bar, a box or a point means; one image's story."""

import numpy as np
import pytest

from semiprune_core.coresets import score_view
from semiprune_core.coresets.score_view import (
    bin_values,
    group_images,
    histogram,
    image_story,
    in_bins,
    in_range,
    open_view,
)
from semiprune_core.errors import MissingStepError
from semiprune_core.results import latest_scores
from semiprune_core.scores.windows import sliding_moments
from tests.support.scored_projects import make_scored


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    from semiprune_core.project.workspace import Workspace

    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMIPRUNE_ROOTS", str(folder))
        project = make_scored(Workspace.open(folder / "home"), folder)
        return open_view(project, latest_scores(project))


@pytest.mark.parametrize("split", ["none", "class", "source", "right"])
def test_a_histogram_counts_every_image_once(view, split):
    _, counts = histogram(view, "aum", group_images(view, split))
    assert counts.sum() == view.n_images


def test_wrong_labels_lie_lower_than_right_ones(view):
    groups = group_images(view, "right")
    assert view.table["aum"][groups.codes == 0].mean() < view.table["aum"][groups.codes == 1].mean() - 0.2


@pytest.mark.parametrize("split", ["none", "class", "right"])
def test_all_bars_together_are_all_images_and_one_bar_its_own(view, split):
    groups = group_images(view, split)
    edges, counts = histogram(view, "aum", groups)
    every = [(number, group) for number in range(counts.shape[1]) for group in range(counts.shape[0])]
    assert sorted(in_bins(view, "aum", groups, every)) == list(range(view.n_images))
    group, number = np.unravel_index(counts.argmax(), counts.shape)
    found = in_bins(view, "aum", groups, [(number, group)])
    assert len(found) == counts.max()
    assert (groups.codes[found] == group).all()
    values = view.table["aum"][found]
    assert (np.diff(values) >= 0).all() and edges[number] - 1e-9 <= values.min() and values.max() <= edges[number + 1]


def test_bars_that_do_not_exist_mean_nothing(view):
    assert len(in_bins(view, "aum", group_images(view, "none"), [(-1, 0), (999, 0), (0, 7)])) == 0


def test_a_range_holds_its_ends(view):
    values = np.sort(view.table["dual"])
    found = in_range(view, "dual", group_images(view, "none"), values[3], values[9])
    assert view.table["dual"][found].tolist() == values[3:10].tolist()


def test_equal_scores_have_a_bin():
    edges, place = bin_values(np.full(5, 0.25))
    assert edges[0] < 0.25 < edges[-1] and len(set(place.tolist())) == 1


def test_a_box_on_the_plane_is_what_lies_inside(view):
    x, y = view.table["mean_prob"], view.table["variability"]
    found = score_view.on_plane(view, "aum", box=(0.2, 0.6, 0.0, 1.0))
    assert set(found) == set(np.flatnonzero((x >= 0.2) & (x <= 0.6) & (y <= 1)))


def test_a_point_is_an_image_and_a_cell_is_its_images(view, monkeypatch):
    assert score_view.on_plane(view, "aum", ids=[7, 3, 10**6, -1]).tolist() == sorted(
        [3, 7], key=lambda i: view.table["aum"][i]
    )
    monkeypatch.setattr(score_view, "MAX_POINTS", 10)
    cells = score_view.plane(view, "dual", limit=10)
    assert cells.is_density and cells.counts.sum() == view.n_images
    assert len(score_view.on_plane(view, "aum", ids=cells.ids.tolist())) == view.n_images
    one = score_view.on_plane(view, "aum", ids=[int(cells.ids[0])])
    assert len(one) == cells.counts[0]
    assert np.isclose(view.table["dual"][one].mean(), cells.value[0])


def test_many_classes_become_one_against_the_others(view, monkeypatch):
    monkeypatch.setattr(score_view, "MAX_COLOURS", 3)
    groups = group_images(view, "class", 2)
    assert groups.names == ("other classes", view.labels.class_names[2])
    assert (groups.codes == 1).sum() == (view.labels.labels == 2).sum()


def test_a_story_tells_the_trajectory_its_windows_and_its_place(view):
    position = int(view.table["aum"].argmin())
    story = image_story(view, position)
    trajectory = view.runs[0].trajectory()
    assert np.array_equal(story.target_prob, trajectory.target_prob[:, position].astype(np.float64))
    mean, squares = sliding_moments(story.target_prob[:, None], 10)
    assert np.allclose(story.window_mean, mean[:, 0]) and len(story.window_mean) == 3
    assert np.allclose(story.window_deviation, np.sqrt(squares[:, 0] / 9))
    assert story.harder_than["aum"] == (view.n_images - 1) / view.n_images
    assert story.reference is not None


def test_the_nearest_neighbour_of_a_copy_is_its_original():
    features = np.random.default_rng(0).normal(size=(50, 8))
    features[7] = 3 * features[31]
    near, likeness = score_view.neighbours(features, 7, k=5)
    assert near[0] == 31 and np.isclose(likeness[0], 1)
    assert 7 not in near and (np.diff(likeness) <= 0).all()
    assert len(score_view.neighbours(features[:1], 0)[0]) == 0


def test_scores_of_another_pool_are_refused(view):
    class Other:
        hash = "other"

    with pytest.raises(MissingStepError, match="pool has changed"):
        open_view(None, view.scores, Other())
