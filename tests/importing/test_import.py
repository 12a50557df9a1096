"""Import: the same picture is the same image from everywhere, and nothing is lost on the way."""

import csv
import os
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from semiprune_core.copies import delete_project
from semiprune_core.errors import JobError, SourceError, WorkspaceError
from semiprune_core.importing import images, workers
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.progress import Collected, Stopped
from semiprune_core.project import artifacts
from semiprune_core.project.pool import show_id
from tests.conftest import make_class_folder
from tests.importing import bad_decoder


def files_below(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


def as_zip(root, target):
    with zipfile.ZipFile(target, "w") as archive:
        for path in files_below(root):
            archive.write(path, path.relative_to(root).as_posix())
    return SourceSpec("zip", str(target))


def as_csv(root, target):
    with open(target, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["path", "label"])
        table.writerows([path.relative_to(root).as_posix(), path.parent.name] for path in files_below(root))
    return SourceSpec("manifest", str(target), {"root": str(root)})


def as_npz(root, target):
    found = files_below(root)
    np.savez_compressed(
        target,
        images=np.stack([np.asarray(Image.open(path)) for path in found]),
        labels=np.array([path.parent.name for path in found]),
        paths=np.array([path.relative_to(root).as_posix() for path in found]),
    )
    return SourceSpec("npz", str(target))


def test_the_same_pictures_have_the_same_ids_from_everywhere(tmp_path, class_folder, import_into):
    specs = [
        SourceSpec("folder", str(class_folder)),
        as_zip(class_folder, tmp_path / "pictures.zip"),
        as_csv(class_folder, tmp_path / "pictures.csv"),
        as_npz(class_folder, tmp_path / "pictures.npz"),
    ]
    pools = [import_into(spec)[0].pool() for spec in specs]
    ids = [sorted(map(show_id, pool.ids)) for pool in pools]
    assert len(set(ids[0])) == 20
    assert all(other == ids[0] for other in ids[1:])
    for pool in pools:
        by_path = dict(zip(pool.column("path").to_pylist(), pool.column("label").to_pylist(), strict=True))
        assert all(path.startswith(label) for path, label in by_path.items())


@pytest.mark.usefixtures("decoders_as_in_the_app")
def test_every_image_arrives_with_pixels_thumb_and_original(class_folder, import_into):
    project, artifact = import_into(SourceSpec("folder", str(class_folder)), pool={"size": 28, "channels": 3})
    pool = project.pool()
    assert pool.images().shape == (20, 28, 28, 3)
    assert artifact.facts["n_images"] == 20 and artifact.facts["labels"] == {"cat": 10, "dog": 10}
    position = 7
    original = (class_folder / pool.path(position)).read_bytes()
    assert pool.original(position) == original
    assert pool.thumb(position).startswith(b"\x89PNG")  # small pictures stay lossless
    centre = np.asarray(Image.open(class_folder / pool.path(position)).convert("RGB")).mean()
    assert abs(float(pool.images()[position].mean()) - centre) < 12


def test_a_packed_source_keeps_its_originals(tmp_path, class_folder, import_into):
    project, _ = import_into(as_zip(class_folder, tmp_path / "pictures.zip"))
    (tmp_path / "pictures.zip").unlink()
    pool = project.pool()
    for position in (0, 11, 19):
        assert pool.original(position) == (class_folder / pool.path(position)).read_bytes()


def test_broken_files_are_listed_and_the_rest_goes_on(class_folder, import_into):
    (class_folder / "cat" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    (class_folder / "cat" / "page.jpg").write_text("<html></html>")
    project, artifact = import_into(SourceSpec("folder", str(class_folder)))
    problems = {problem.path: problem for problem in project.everything().segments[0].problems()}
    assert artifact.facts["n_images"] == 20
    assert set(problems) == {"cat/broken.png", "cat/page.jpg"}
    assert problems["cat/page.jpg"].code == "NOT_AN_IMAGE"
    assert all(problem.message.endswith(".") for problem in problems.values())


def test_a_changed_or_missing_original_is_noticed(class_folder, import_into):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    pool = project.pool()
    (class_folder / pool.path(0)).write_bytes(b"other")
    (class_folder / pool.path(1)).unlink()
    with pytest.raises(WorkspaceError, match="changed since the import"):
        pool.original(0)
    with pytest.raises(WorkspaceError, match="removed since the import"):
        pool.original(1)


def test_an_original_that_became_a_link_out_is_refused(tmp_path, class_folder, import_into):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    pool = project.pool()
    path = class_folder / pool.path(0)
    secret = tmp_path / "secret.png"
    path.rename(secret)
    path.symlink_to(secret)
    with pytest.raises(Exception, match="leads outside"):
        pool.original(0)


def test_added_images_come_after_the_old_ones_and_known_ones_are_skipped(tmp_path, class_folder, import_into):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    before = project.pool()
    Image.new("RGB", (32, 24), "red").save(class_folder / "cat" / "new.png")
    _, artifact = import_into(SourceSpec("folder", str(class_folder)), project)
    after = project.pool()
    assert artifact.facts["n_already_there"] == 20 and artifact.facts["n_images"] == 1
    assert after.ids[:20].tolist() == before.ids.tolist()
    assert after.path(20) == "cat/new.png"
    assert after.images().shape[0] == 21
    assert (after.images()[:20] == before.images()).all()
    assert after.hash != before.hash
    assert after.original(20) == (class_folder / "cat" / "new.png").read_bytes()


def test_adding_only_known_images_is_refused_and_leaves_nothing(class_folder, import_into):
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    with pytest.raises(SourceError, match="All 20 usable images are already in the pool"):
        import_into(SourceSpec("folder", str(class_folder)), project)
    assert [artifact.id for artifact in project.artifacts()] == ["pool-0001"]


def test_a_packed_source_can_be_added_in_part(tmp_path, class_folder, import_into):
    project, _ = import_into(as_zip(class_folder, tmp_path / "a.zip"))
    for name in ("aa.png", "zz.png"):
        Image.new("RGB", (32, 24), "red" if name == "aa.png" else "blue").save(class_folder / "cat" / name)
    import_into(as_zip(class_folder, tmp_path / "b.zip"), project)
    pool = project.pool()
    assert [pool.path(position) for position in (20, 21)] == ["cat/aa.png", "cat/zz.png"]
    for position in (20, 21):
        assert pool.original(position) == (class_folder / pool.path(position)).read_bytes()


def test_duplicates_are_counted_and_known(class_folder, import_into):
    (class_folder / "dog" / "copy.png").write_bytes((class_folder / "cat" / "001.png").read_bytes())
    project, artifact = import_into(SourceSpec("folder", str(class_folder)))
    pool = project.pool()
    assert artifact.facts["n_duplicates"] == 1
    paths = pool.column("path").to_pylist()
    twin, first = paths.index("dog/copy.png"), paths.index("cat/001.png")
    assert pool.duplicate_of[twin] == min(first, twin) and pool.duplicate_of[first] == min(first, twin)


def test_a_stop_leaves_nothing_behind(class_folder, import_into, workspace):
    project = workspace.create("Test")
    with pytest.raises(Stopped):
        import_into(SourceSpec("folder", str(class_folder)), project, Collected(stop_after=1))
    assert not project.has_pool()
    assert set(os.listdir(project.folder)) == {".project.json.backup", "project.json", "artifacts", "exports", "runs"}
    assert os.listdir(project.artifacts_folder) == []


def test_an_empty_source_says_so(tmp_path, import_into):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(SourceError, match="No images were found"):
        import_into(SourceSpec("folder", str(tmp_path / "nothing")))


def test_a_source_of_broken_files_alone_names_them(tmp_path, import_into):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "c.png").write_text("<html>")
    with pytest.raises(SourceError, match="None of the 1 files could be used. c.png .*HTML"):
        import_into(SourceSpec("folder", str(tmp_path / "bad")))


def test_a_project_made_anew_under_an_old_name_shows_its_own_images(tmp_path, workspace, import_into):
    for n in (20, 12):
        folder = make_class_folder(tmp_path / f"p{n}", n=n, seed=n)
        project, _ = import_into(SourceSpec("folder", str(folder)), workspace.create("Tmp", name="tmp"))
        assert len(project.pool()) == len(project.everything().images()) == n
        delete_project(workspace, "tmp")


def test_progress_ends_at_the_total(class_folder, import_into):
    progress = Collected()
    import_into(SourceSpec("folder", str(class_folder)), progress=progress)
    assert progress.reports[-1]["done"] == progress.reports[-1]["total"] == 20


def test_grey_pictures_give_a_grey_cache_and_their_size(tmp_path, import_into):
    (tmp_path / "grey").mkdir()
    for number in range(3):
        Image.new("L", (28, 28), 40 * number).save(tmp_path / "grey" / f"{number}.png")
    project, _ = import_into(SourceSpec("folder", str(tmp_path / "grey")))
    assert project.workspace.project(project.name).pool_settings.to_json() == {"size": 28, "channels": 1, "fit": "crop"}


@pytest.mark.parametrize(
    "side, wanted", [(16, 28), (28, 28), (32, 32), (40, 40), (50, 48), (60, 64), (64, 64), (400, 64)]
)
def test_the_suggested_size_suits_the_pictures(tmp_path, import_into, side, wanted):
    (tmp_path / "p").mkdir()
    Image.new("RGB", (side, side + 9), "red").save(tmp_path / "p" / "a.png")
    project, artifact = import_into(SourceSpec("folder", str(tmp_path / "p")))
    assert artifact.settings["pool"]["size"] == wanted


def test_an_import_verifies(class_folder, import_into):
    _, artifact = import_into(SourceSpec("folder", str(class_folder)))
    assert artifacts.differences(artifact.folder) == []


def test_the_same_import_twice_has_the_same_hash(tmp_path, class_folder, import_into):
    spec = as_zip(class_folder, tmp_path / "p.zip")
    assert import_into(spec)[1].hash == import_into(spec)[1].hash


def test_the_table_can_be_read_by_anybody(class_folder, import_into):
    _, artifact = import_into(SourceSpec("folder", str(class_folder)))
    frame = pq.read_table(artifact.path("table.parquet")).to_pandas()
    assert len(frame) == 20 and set(frame["split"]) == {"pool"}


@pytest.mark.usefixtures("decoders_as_in_the_app")
@pytest.mark.fault
@pytest.mark.parametrize(
    "way, code", [("hang", "DECODE_TIMEOUT"), ("die", "DECODER_CRASHED")], ids=["a hanging decoder", "a dying decoder"]
)
def test_a_decoder_that_fails_costs_one_image(tmp_path, import_into, monkeypatch, way, code):
    """The real worker process really hangs or dies on one picture; the others arrive in order."""
    from tests.conftest import make_class_folder

    folder = make_class_folder(tmp_path / "many", n=150)
    monkeypatch.setattr(workers, "_work", bad_decoder.hang if way == "hang" else bad_decoder.die)
    monkeypatch.setattr(workers, "CPU_SECONDS_PER_IMAGE", 1.0)
    project, artifact = import_into(SourceSpec("folder", str(folder)), pool={"size": 28, "channels": 3})
    problems = project.everything().segments[0].problems()
    assert [(problem.path, problem.code) for problem in problems] == [("cat/077.png", code)]
    assert artifact.facts["n_images"] == 149
    paths = project.pool().column("path").to_pylist()
    assert paths == sorted(paths) and len(set(paths)) == 149


@pytest.mark.fault
def test_a_decoder_may_not_grow_without_limit(class_folder, import_into, monkeypatch):
    min((class_folder / "cat").iterdir()).rename(class_folder / bad_decoder.CULPRIT)
    monkeypatch.setattr(workers, "_work", bad_decoder.swell)
    project, _ = import_into(SourceSpec("folder", str(class_folder)), pool={"size": 28, "channels": 3})
    problems = project.everything().segments[0].problems()
    assert [(problem.path, problem.code) for problem in problems] == [(bad_decoder.CULPRIT, "IMAGE_TOO_MANY_PIXELS")]


class Impatient(Collected):
    """Asks for a stop while the first chunk is being decoded."""

    asked = 0

    def should_stop(self):
        self.asked += 1
        return self.asked > 4


@pytest.mark.fault
def test_a_stop_does_not_wait_for_a_hanging_decoder(tmp_path, import_into, workspace, monkeypatch):
    folder = make_class_folder(tmp_path / "many", n=80)
    monkeypatch.setattr(workers, "_work", bad_decoder.hang)
    project, progress = workspace.create("Test"), Impatient()
    with pytest.raises(Stopped):
        import_into(SourceSpec("folder", str(folder)), project, progress, pool={"size": 28, "channels": 3})
    assert progress.reports == []  # the chunk that hangs was not waited for
    assert os.listdir(project.artifacts_folder) == []


def test_the_first_look_decodes_nothing_in_this_process(class_folder, import_into, monkeypatch):
    def here(*args, **options):
        raise AssertionError("decoded without limits")

    monkeypatch.setattr(images, "decode", here)  # the decoders are processes of their own
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    assert (project.workspace.project("test").pool_settings.size, len(project.pool())) == (28, 20)


@pytest.mark.usefixtures("decoders_as_in_the_app")
@pytest.mark.fault
def test_decoders_that_never_start_end_the_import(class_folder, import_into, workspace, monkeypatch):
    monkeypatch.setattr(workers, "_work", bad_decoder.never_begin)
    project = workspace.create("Test")
    with pytest.raises(JobError, match="as soon as they start"):
        import_into(SourceSpec("folder", str(class_folder)), project)
    assert os.listdir(project.artifacts_folder) == []
