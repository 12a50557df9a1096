"""Maps: features in, seeded points out, kept once; a drawn line finds exactly the points inside it."""

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from starlette.applications import Starlette
from starlette.testclient import TestClient

from semiprune_core import jobs
from semiprune_core.cli import main
from semiprune_core.embeddings.encoders import encode, open_encoder
from semiprune_core.embeddings.features import FEATURES, available_features
from semiprune_core.errors import (
    InvalidDataError,
    InvalidSettingError,
    MissingStepError,
    SourceError,
    UnsafePathError,
)
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.maps import embedding_map as maps
from semiprune_core.maps import reduce
from semiprune_core.maps.embedding_map import MapSettings, inside, make_maps, maps_of
from semiprune_core.maps.map_view import NONE, columns_of
from semiprune_core.progress import Collected, Stopped
from semiprune_core.server import studio_routes
from tests.support.effort import FULL
from tests.support.pseudo_runs import fake_pseudo, label_share


@pytest.fixture
def project(tmp_path, import_into):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    pixels = rng.integers(0, 60, (60, 28, 28), dtype=np.uint8) + (labels * 70).astype(np.uint8)[:, None, None]
    np.savez(tmp_path / "pool.npz", images=pixels, labels=np.array(["ant", "bee", "cow"])[labels])
    made, _ = import_into(SourceSpec("npz", str(tmp_path / "pool.npz")))
    label_share(made, 0.4)
    fake_pseudo(made, n_features=8)
    return made


def test_principal_components_equal_scikit_learns_up_to_sign():
    values = np.random.default_rng(0).normal(size=(500, 7)) * np.arange(1, 8)
    ours, theirs = reduce.principal_components(values, 3), PCA(3, svd_solver="full").fit_transform(values)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-4)


def test_a_map_of_one_dimension_still_has_two():
    assert reduce.pca(np.arange(12.0)[:, None]).shape == (12, 2)


def test_a_map_is_computed_once_and_seeded(project):
    settings = MapSettings(method="pca", features="ssl")
    progress = Collected()
    first = make_maps(project, settings, progress)[-1]
    assert first.points().shape == (60, 2) and first.points().dtype == np.float32
    assert make_maps(project, settings, Collected())[-1].artifact.id == first.artifact.id
    assert first.artifact.inputs == {"pseudo": project.latest("pseudo").hash}
    fake_pseudo(project, seed=1, n_features=8)
    assert make_maps(project, settings, Collected())[-1].artifact.id != first.artifact.id
    assert progress.reports[-1]["unit"] == "images"


def test_tsne_follows_pca_with_progress_and_the_same_seed_gives_the_same_map(project):
    progress = Collected()
    made = make_maps(project, MapSettings(method="tsne"), progress)
    assert [one.settings.method for one in made] == ["pca", "tsne"]
    rounds = [one["done"] for one in progress.reports if one["unit"] == "rounds"]
    assert rounds == sorted(rounds) and rounds[-1] == 1000
    again = reduce.tsne(np.asarray(project_features(project)), seed=0)
    np.testing.assert_array_equal(again, made[-1].points())


def project_features(project):
    return FEATURES["ssl"](project, MapSettings(), Collected()).values


def test_a_stop_reaches_the_work_of_another_library(project):
    with pytest.raises(Stopped):
        reduce.tsne(np.random.default_rng(0).normal(size=(60, 4)), progress=Collected(stop_after=50))


@pytest.mark.slow
def test_umap_is_seeded_and_tells_its_progress():
    values = np.random.default_rng(0).normal(size=(80 if FULL else 12, 5))
    progress = Collected()
    first, second = reduce.umap(values, seed=3, progress=progress), reduce.umap(values, seed=3)
    np.testing.assert_array_equal(first, second)
    assert progress.reports[-1]["done"] == progress.reports[-1]["total"]
    with pytest.raises(Stopped):
        reduce.umap(values, progress=Collected(stop_after=0))


def test_wide_features_have_the_same_main_axes_as_all_of_them_together(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 40)) * np.geomspace(10, 0.1, 40) + 5
    exact = reduce.principal_components(values, 5)
    monkeypatch.setattr(reduce, "WIDE", 20)
    np.testing.assert_allclose(reduce.principal_components(values, 5), exact, atol=2e-3)
    constant = reduce.principal_components(np.full((30, 40), 2.0), 2)
    assert not constant.any()


def test_the_neighbours_that_umap_gets_are_the_nearest_rows_themselves_first():
    values = np.random.default_rng(0).normal(3, 1, size=(50, 4)).astype(np.float32)
    places, distances, index = reduce._neighbours(values, 6, None)
    far = np.linalg.norm(values[:, None] - values[None], axis=2)
    assert index is None and places.shape == distances.shape == (50, 6)
    np.testing.assert_array_equal(places, far.argsort(1)[:, :6])
    np.testing.assert_allclose(distances, np.sort(far, 1)[:, :6], rtol=1e-5)
    assert (places[:, 0] == np.arange(50)).all() and not distances[:, 0].any()


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="compiles UMAP for ten seconds")
def test_umap_takes_our_neighbours_and_keeps_groups_apart():
    group = np.arange(reduce.EXACT.start) % 2
    values = np.random.default_rng(0).normal(size=(len(group), 5)) + 20 * group[:, None]
    points = reduce.umap(values, seed=3)
    middles = np.stack([points[group == number].mean(0) for number in (0, 1)])
    nearest = np.linalg.norm(points[:, None] - middles[None], axis=2).argmin(1)
    assert (nearest == group).all()


def test_a_large_pool_is_placed_by_a_stated_sample(project, monkeypatch):
    monkeypatch.setattr(maps, "MOST_POINTS", 20)
    quick, placed = make_maps(project, MapSettings(method="tsne"), Collected())
    assert np.isfinite(quick.points()).all()
    assert int(np.isfinite(placed.points()).all(1).sum()) == placed.artifact.facts["n_placed"] == 20
    everywhere = [[-1e6, -1e6], [1e6, -1e6], [1e6, 1e6], [-1e6, 1e6]]
    assert len(inside(placed.points(), everywhere)) == 20


def test_pixels_need_no_model_and_pretrained_needs_a_name(project):
    made = make_maps(project, MapSettings(method="pca", features="pixels"), Collected())[-1]
    assert made.artifact.facts["n_dimensions"] == 28 * 28 and "pool" in made.artifact.inputs
    with pytest.raises(InvalidSettingError, match="encoder's name"):
        MapSettings(features="pretrained")
    with pytest.raises(MissingStepError, match="no dynamics run"):
        make_maps(project, MapSettings(features="dynamics"), Collected())
    assert available_features(project)["pixels"] == "" != available_features(project)["dynamics"]


def test_features_that_are_not_finite_are_refused(project):
    broken = maps.Features(np.full((60, 2), np.nan), {})
    with pytest.raises(InvalidDataError, match="not finite"):
        maps.checked(broken, 60)


def test_the_job_publishes_the_maps(project):
    job = jobs.submit(project, "map", MapSettings(method="pca").to_json(), immediate=True)
    assert job.status().state == jobs.DONE
    assert job.result()["artifact"] == maps_of(project)[0].artifact.id


def test_the_even_odd_rule_equals_a_slow_twin():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(400, 2)).astype(np.float32)
    line = rng.normal(size=(9, 2))  # crosses itself

    def is_inside(x, y):
        found = False
        for (x1, y1), (x2, y2) in zip(np.roll(line, 1, axis=0), line, strict=True):
            if (y2 > y) != (y1 > y) and x < (x1 - x2) * (y - y2) / (y1 - y2) + x2:
                found = not found
        return found

    slow = [i for i, (x, y) in enumerate(points.astype(float)) if is_inside(x, y)]
    assert inside(points, line).tolist() == slow
    mask = np.arange(400) % 2 == 0
    assert inside(points, line, mask).tolist() == [i for i in slow if i % 2 == 0]


@pytest.mark.parametrize("line", [[], [[0, 0], [1, 1]], [[0, 0], [1, 1], [float("nan"), 0]], [[1, 2, 3]] * 4])
def test_a_line_that_is_none_is_refused(line):
    with pytest.raises(InvalidDataError, match="line of 3"):
        inside(np.zeros((3, 2), np.float32), line)


# --- encoders ---------------------------------------------------------------------------------------------------------


def test_an_encoder_reads_a_local_safetensors_file(project, tmp_path):
    from safetensors.torch import save_file
    from torchvision.models import resnet18

    save_file(resnet18(num_classes=5).state_dict(), tmp_path / "net.safetensors")
    encoder = open_encoder("torchvision:resnet18", str(tmp_path / "net.safetensors"), guard=project.workspace.guard)
    features = encode(encoder, project.pool().images()[:3], side=32, report=lambda done, n: None)
    assert features.shape == (3, 512) and np.isfinite(features).all()


@pytest.mark.parametrize(
    "name, weights, kind, words",
    [
        ("torchvision:nothing", "", InvalidSettingError, "no classifier 'nothing'"),
        ("keras:vgg", "", InvalidSettingError, "torchvision:NAME or timm:NAME"),
        ("torchvision:resnet18", "net.pt", SourceError, "not a safetensors file"),
        ("torchvision:resnet18", "/etc/passwd", UnsafePathError, "outside the allowed folders"),
        ("torchvision:resnet18", "broken.safetensors", SourceError, "cannot be read"),
        ("torchvision:resnet18", "gone.safetensors", SourceError, "There is no file"),
    ],
)
def test_what_cannot_be_an_encoder_is_refused_in_words(project, tmp_path, name, weights, kind, words):
    (tmp_path / "net.pt").write_bytes(b"x")
    (tmp_path / "broken.safetensors").write_bytes(b"not a tensor file")
    path = str(tmp_path / weights) if weights else ""
    with pytest.raises(kind, match=words):
        open_encoder(name, path, guard=project.workspace.guard)


def test_weights_that_cannot_be_fetched_are_named(project, monkeypatch):
    import torch.hub

    def refuse(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", refuse)
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", refuse)
    with pytest.raises(SourceError, match="could not be fetched .*no network.*local .safetensors"):
        open_encoder("torchvision:resnet18", guard=project.workspace.guard)


# --- columns, routes, commands ----------------------------------------------------------------------------------------


def test_columns_say_everything_known_and_follow_the_labels(project):
    pool = project.pool()
    columns = columns_of(project, pool)
    assert set(columns.by_key) == {"pseudo", "confidence", "right", "human", "reference"}
    codes = np.frombuffer(columns.packed("reference"), "<u2")
    assert codes.tolist() == pool.reference_labels.tolist()
    human = np.frombuffer(columns.packed("human"), "<u2")
    assert (human == NONE).sum() == 60 - 24
    sure = np.frombuffer(columns.packed("confidence"), "<u2")
    assert sure[columns["confidence"].values.argmin()] == 0 and sure.max() == 65_534
    assert columns_of(project, pool) is columns
    from semiprune_core.trust import review

    review.label_images(open_store(project), [int(pool.ids[0])], "cow", annotator="bob")
    later = columns_of(project, pool)
    assert later.version != columns.version and later["pseudo"].told(0) == "cow" == later["human"].told(0)


def test_more_classes_than_colours_are_grey():
    from semiprune_core.maps.map_view import class_colours

    assert len(set(class_colours(10))) == 10
    assert len(set(class_colours(11))) == 1


@pytest.fixture
def client(project):
    return TestClient(Starlette(routes=studio_routes(project.workspace)))


def test_points_and_columns_travel_as_small_binary(project, client):
    made = make_maps(project, MapSettings(method="pca"), Collected())[-1]
    answer = client.get(f"/studio/projects/test/maps/{made.artifact.id}/points")
    np.testing.assert_array_equal(np.frombuffer(answer.content, "<f4").reshape(-1, 2), made.points())
    assert "immutable" in answer.headers["cache-control"]
    columns = columns_of(project, project.pool())
    answer = client.get(f"/studio/projects/test/columns/pseudo?v={columns.version}")
    assert answer.content == columns.packed("pseudo") and "immutable" in answer.headers["cache-control"]
    assert client.get("/studio/projects/test/columns/pseudo?v=old").headers["cache-control"] == "no-store"


def test_facts_name_the_image_at_a_position(project, client):
    facts = client.get("/studio/projects/test/facts/7").json()
    pool = project.pool()
    assert facts["id"] == f"{int(pool.ids[7]):016x}" and facts["path"] == pool.path(7)
    assert {"title": "Reference label", "text": "bee"} in facts["facts"]


@pytest.mark.parametrize(
    "path", ["maps/map-0009/points", "maps/pool-0001/points", "maps/..%2f/points", "columns/secret", "facts/60"]
)
def test_what_does_not_exist_is_not_found(project, client, path):
    assert client.get(f"/studio/projects/test/{path}").status_code in (400, 404)


def test_the_quality_command_speaks_json(project, capsys):
    assert main(["quality", "test", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["held_out"]) >= {"accuracy", "low", "high", "n", "per_class"}
    assert set(said["reference"]) >= {"accuracy", "balanced_accuracy", "nmi", "ari"}
    assert said["trust"]["level"] in ("green", "amber", "red")
    assert main(["quality", "test", "--run", "pool-0001"]) == 1
    assert "holds no pseudo-labels" in capsys.readouterr().err
    assert main(["quality", "test"]) == 0
    assert "Held-out accuracy" in capsys.readouterr().out


def test_the_map_command_makes_a_map(project, capsys):
    assert main(["map", "test", "--method", "pca", "--features", "pixels", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["artifact"] == "map-0001"
