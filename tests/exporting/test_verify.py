"""verify proves an export, and names the first thing that differs."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from semiprune_core import files
from semiprune_core.errors import WorkspaceError
from semiprune_core.exporting import FORMATS, ExportOptions, export_coreset, export_csv
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.progress import Collected
from semiprune_core.project import artifacts
from tests.exporting.conftest import select_in


def check(path, **options):
    return first_difference(verify(path, Collected(), **options))


def rewritten(artifact):
    """Make an artifact's manifest fit its changed files, as a careful forger would."""
    manifest = dict(artifact.manifest)
    manifest["files"] = artifacts._file_entries(artifact.folder)
    manifest["hash"] = artifacts.content_hash(manifest)
    files.write_json(artifact.path("manifest.json"), files.sealed(manifest))


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_is_proven_by_any_of_its_names(name, project, select):
    ways = FORMATS.facts(name).get("ways", (None,))
    export = export_coreset(project, select(), name, ExportOptions(images=ways[-1]))
    found = verify(export.path, Collected())
    assert first_difference(found) is None
    assert {"manifest", "selection", "images", "coreset-0001", "scores-0001", "pseudo-0001", "pool-0001"} <= set(found)
    for path in export.files.values():
        assert verify(path, Collected()) == found


def test_a_project_is_proven_with_its_exports(project, select):
    export_csv(project, select())
    export_coreset(project, select(), "parquet")
    found = verify(project.folder, Collected())
    assert first_difference(found) is None
    assert len([name for name in found if name.endswith("selection")]) == 2
    assert first_difference(verify(project.exports_folder, Collected())) is None


def test_one_flipped_flag_in_the_csv_is_found_and_named(project, select):
    exported = export_csv(project, select())
    text = exported.everything.read_text()
    exported.everything.write_text(text.replace('.png",1,', '.png",0,', 1))
    assert check(exported.manifest).startswith(f"{exported.everything.name}: {exported.everything.name} was changed")


def test_a_missing_file_is_named(project, select):
    exported = export_csv(project, select())
    exported.kept.unlink()
    assert check(exported.manifest) == f"{exported.kept.name}: {exported.kept.name} is missing"


def test_a_changed_manifest_is_named(project, select):
    exported = export_csv(project, select())
    said = json.loads(exported.manifest.read_text())
    said["counts"]["n_human"] = 20
    exported.manifest.write_text(json.dumps(said))
    assert check(exported.manifest).startswith(f"manifest: {exported.manifest.name} was changed")


def test_a_changed_score_file_is_named(project, select):
    exported = export_csv(project, select())
    path = project.latest("scores").path("scores.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert check(exported.manifest).startswith("scores-0001: scores.parquet was changed")


def test_scores_that_were_replaced_with_a_fitting_manifest_are_named(project, select):
    exported = export_csv(project, select())
    artifact = project.latest("scores")
    table = pq.read_table(artifact.path("scores.parquet"))
    column = table.column_names.index("aum")
    pq.write_table(table.set_column(column, "aum", [table["aum"].to_numpy()[::-1]]), artifact.path("scores.parquet"))
    rewritten(artifact)
    assert check(exported.manifest).startswith("scores: the project no longer has the scores of hash")


def test_a_selection_that_its_scores_do_not_give_is_named(project, select):
    run = select()
    indices = np.load(run.artifact.path("indices.npy"))
    dropped = next(index for index in range(40) if index not in indices)
    np.save(run.artifact.path("indices.npy"), np.array([dropped, *indices[1:]]))
    rewritten(run.artifact)
    exported = export_csv(project, type(run)(artifacts.open_artifact(run.artifact.folder)))
    assert check(exported.manifest).startswith("selection: selecting again keeps 1 other images")


def test_a_replaced_image_is_named(own_project):
    exported = export_csv(own_project, select_in(own_project))
    paths = [own_project.pool().original_file(position) for position in (3, 4)]
    shutil.copyfile(paths[0], paths[1])
    assert check(exported.manifest) == (
        f"images: {paths[1]} was changed since the import. Restore it, or import the images again."
    )
    assert check(exported.manifest, images=False) is None
    paths[1].unlink()
    assert "has been removed since the import" in check(exported.manifest)


def test_a_replaced_packed_image_is_named(hostile):
    exported = export_csv(hostile, select_in(hostile))
    path = hostile.latest("pool").path("originals.bin")
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert check(exported.manifest).startswith("pool-0001: originals.bin was changed")


@pytest.mark.parametrize("change", ["swap", "add", "remove", "list"])
def test_a_changed_tree_is_named(change, project, select):
    export = export_coreset(project, select(), "imagefolder", ExportOptions(images="copy"))
    root = export.files["folder"]
    first, second = sorted(root.rglob("*.png"))[:2]
    if change == "swap":
        shutil.copyfile(second, first)
        words = f"{root.name}/{first.relative_to(root).as_posix()} was changed"
    elif change == "add":
        shutil.copyfile(second, first.with_name("new.png"))
        words = "new.png is not in SHA256SUMS"
    elif change == "remove":
        first.unlink()
        words = f"{first.name} is missing"
    else:
        (root / "SHA256SUMS").write_text("")
        words = "SHA256SUMS was changed"
    assert words in check(export.path)
    export_coreset(project, select(), "imagefolder", ExportOptions(images="copy"))  # heals it
    assert check(export.path) is None


def test_an_export_away_from_its_project_is_checked_by_its_files(project, select, tmp_path):
    exported = export_csv(project, select())
    away = tmp_path / "away" / "box"
    away.mkdir(parents=True)
    for path in (exported.kept, exported.everything, exported.manifest):
        shutil.copy(path, away)
    found = verify(away / exported.manifest.name, Collected())
    assert list(found) == ["manifest", exported.kept.name, exported.everything.name]
    assert first_difference(found) is None
    (away / exported.kept.name).write_text("image_id\n")
    assert "was changed" in check(away / exported.manifest.name)


def test_a_stranger_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(WorkspaceError, match="no manifest here speaks of it"):
        verify(tmp_path / "x.csv", Collected())
