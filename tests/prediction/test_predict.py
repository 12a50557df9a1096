"""New images get a label, a confidence and a distance to the pool, by the run that labeled the pool."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from semiprune_core import cli
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.prediction.run import distances
from semiprune_core.progress import Collected, Silent
from semiprune_core.results import latest_pseudo
from semiprune_core.training import start_training
from semiprune_core.training.settings import asked_settings
from tests.support.demo_pool import clothes
from tests.support.training_projects import label_drawn, short_run, small_project

N, NEW = 150, 30


def save(folder, images, names=None):
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images):
        pixels = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        Image.fromarray(pixels).save(folder / (names[number] if names else f"{number:03d}.png"))
    return folder


def predict(capsys, project, folder, out, *words):
    code = cli.main(
        ["predict", project.name, "--from", str(folder), "--out", str(out), "--json", "--device", "cpu", *words]
    )
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


@pytest.fixture
def on_features(workspace, tmp_path):
    """A project of clothes, labeled on features; and other clothes with what they are."""
    images, kinds = clothes(N + NEW)
    np.savez(tmp_path / "pool.npz", images=images[:N], labels=kinds[:N])
    project = workspace.create("Clothes")
    source = SourceSpec("npz", str(tmp_path / "pool.npz"))
    import_source(project, ImportSettings(source=source.to_json(), n_workers=1), Collected())
    label_drawn(project, 0.4)
    start_training(project, asked_settings(start="frozen", changes={}), device="cpu", immediate=True)
    return project, images, kinds


def test_new_images_are_labeled_and_strangers_are_far(on_features, tmp_path, capsys):
    project, images, kinds = on_features
    folder = save(tmp_path / "new", images[N:], [f"{number:03d}.png" for number in range(NEW - 1)] + ["=new.png"])
    save(folder / "noise", np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8))
    (folder / "broken.png").write_bytes(b"\x89PNG nothing")
    code, said, _ = predict(capsys, project, folder, tmp_path / "labels.csv")
    assert code == 0 and said["n_images"] == NEW + 4 and said["n_problems"] == 1 and said["n_far"] >= 4
    table = pd.read_csv(tmp_path / "labels.csv")
    assert [*table.columns] == ["path", "label", "confidence", "distance"]
    assert table["confidence"].between(0, 1).all() and table["distance"].between(0, 100).all()
    assert "'=new.png" in {*table["path"]}
    table["path"] = table["path"].str.removeprefix("'")
    mine = table[~table["path"].str.startswith("noise/")].set_index("path").sort_index()
    true = pd.Series(kinds[N:], index=[f"{number:03d}.png" for number in range(NEW - 1)] + ["=new.png"]).sort_index()
    assert (mine["label"] == true).mean() >= 0.9
    strangers = table[table["path"].str.startswith("noise/")]["distance"]
    assert strangers.min() >= 95 and mine["distance"].median() < 90


def test_the_pools_own_images_get_what_the_run_said_of_them(on_features, tmp_path, capsys):
    project, images, _ = on_features
    folder = save(tmp_path / "again", images[:N])
    assert predict(capsys, project, folder, tmp_path / "labels.parquet")[0] == 0
    table, run = pq.read_table(tmp_path / "labels.parquet").to_pandas(), latest_pseudo(project)
    said = np.array(run.class_names)[run.predicted()]
    assert (table["label"].to_numpy() == said).mean() >= 0.95
    assert (table["distance"] == 0).all()


def test_a_net_from_scratch_says_the_same_of_the_same_images(workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path)
    start_training(project, short_run(), device="cpu", immediate=True)
    run, pool = latest_pseudo(project), project.pool()
    folder = save(tmp_path / "again", pool.images())
    code, said, _ = predict(capsys, project, folder, tmp_path / "labels.parquet")
    assert code == 0 and said["run"] == run.artifact.id
    table = pq.read_table(tmp_path / "labels.parquet").to_pandas()
    assert (table["label"].to_numpy() == np.array(run.class_names)[run.predicted()]).all()
    assert np.allclose(table["confidence"], run.confidence(), atol=1e-3)


@pytest.mark.parametrize(
    "words, said",
    [
        (("--from", "{new}", "--out", "labels.txt"), ".csv or .parquet"),
        (("--from", "nowhere", "--out", "labels.csv"), "no folder"),
        (("--from", "{new}", "--out", "labels.csv"), "no pseudo-labels"),
    ],
)
def test_what_cannot_be_predicted_is_named(words, said, workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path)
    save(tmp_path / "new", np.zeros((1, 8, 8), np.uint8))
    code = cli.main(["predict", project.name, *(word.format(new=tmp_path / "new") for word in words)])
    assert code == 1 and said in capsys.readouterr().err


def test_an_empty_folder_is_named(workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path)
    start_training(project, short_run(), device="cpu", immediate=True)
    (tmp_path / "empty").mkdir()
    code = cli.main(["predict", project.name, "--from", str(tmp_path / "empty"), "--out", str(tmp_path / "x.csv")])
    assert code == 1 and "No image" in capsys.readouterr().err and not (tmp_path / "x.csv").exists()


def test_distances_are_ranks_among_the_pools_own():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 16))
    pool = centres[np.arange(300) % 3] + 0.2 * rng.normal(size=(300, 16))
    far = rng.normal(size=(5, 16)) * 3
    found = distances(pool, np.concatenate([pool[:4], centres + 0.2 * rng.normal(size=(3, 16)), far]), Silent())
    assert (found[:4] == 0).all() and (found[-5:] == 100).all() and (found[4:7] < 100).all()


def test_a_net_is_taken_away_and_answers_the_same(workspace, tmp_path, capsys):
    project = small_project(workspace, tmp_path)
    start_training(project, short_run(), device="cpu", immediate=True)
    assert cli.main(["model", project.name, "--out", str(tmp_path / "net"), "--json"]) == 0
    about, run = json.loads(capsys.readouterr().out), latest_pseudo(project)
    assert about["classes"] == [*run.class_names] and about["tried_on"] == 60
    assert max(about["largest_difference"].values()) <= 1e-4
    written = {path.name for path in (tmp_path / "net").iterdir()}
    assert written == {"model.json", *about["files"]} >= {"model.safetensors", "model.pt2"}
    program = torch.export.load(tmp_path / "net" / "model.pt2").module()
    pixels = torch.from_numpy(np.array(project.pool().images()[:7])).permute(0, 3, 1, 2)
    probs = program(pixels).detach().numpy()
    assert (probs.argmax(1) == run.predicted()[:7]).all()
    assert np.allclose(probs.max(1), run.confidence()[:7], atol=1e-4)
    assert cli.main(["model", project.name, "--out", str(tmp_path / "net")]) == 1
    assert "Choose a new folder" in capsys.readouterr().err


def test_a_run_on_features_has_no_net_to_take_away(on_features, tmp_path, capsys):
    project, _, _ = on_features
    assert cli.main(["model", project.name, "--out", str(tmp_path / "net")]) == 1
    assert "semiprune predict" in capsys.readouterr().err and not (tmp_path / "net").exists()
