"""A full disk in the middle of any export: a named error, nothing under a final name, and the next try goes well."""

import builtins
import errno
import io
import shutil
import subprocess

import pytest

from semiprune_core.errors import DiskFullError
from semiprune_core.exporting import FORMATS, ExportOptions, export_coreset
from semiprune_core.project.workspace import Workspace

pytestmark = pytest.mark.fault

CASES = [(name, way) for name in FORMATS for way in FORMATS.facts(name).get("ways", (None,))]


class Disk:
    """Room for so many bytes in new files; a write beyond them fails as a full disk does."""

    def __init__(self, room):
        self.room, self.written = room, 0

    def open(self, path, mode="r", *args, **options):
        file = REAL_OPEN(path, mode, *args, **options)
        return Limited(file, self) if mode == "xb" else file


class Limited(io.RawIOBase):
    def __init__(self, file, disk):
        self.file, self.disk = file, disk

    def writable(self):
        return True

    def seekable(self):
        return self.file.seekable()

    def write(self, data):
        size = len(memoryview(data).cast("B"))
        if self.disk.room is not None and self.disk.written + size > self.disk.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.disk.written += size
        return self.file.write(data)

    def tell(self):
        return self.file.tell()

    def seek(self, *where):
        return self.file.seek(*where)

    def flush(self):
        if not self.file.closed:
            self.file.flush()

    def fileno(self):
        return self.file.fileno()

    def close(self):
        self.file.close()
        super().close()


REAL_OPEN = builtins.open


@pytest.mark.parametrize("name, way", CASES)
def test_every_format_survives_a_full_disk_at_its_begin_middle_and_end(name, way, project, select, monkeypatch):
    run, options = select(), ExportOptions(images=way)

    def export(room):
        disk = Disk(room)
        with monkeypatch.context() as patched:
            for module in ("base", "trees"):
                patched.setattr(f"semiprune_core.exporting.{module}.open", disk.open, raising=False)
            return export_coreset(project, run, name, options), disk.written

    _, needed = export(None)
    assert needed > 0
    for path in project.exports_folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for room in (0, needed // 3, needed // 2, needed - 1):
        with pytest.raises(DiskFullError, match="The disk is full"):
            export(room)
        assert list(project.exports_folder.iterdir()) == []
    made, _ = export(needed)
    assert all(path.exists() for path in made.files.values())


def test_a_really_full_disk_is_named_and_leaves_nothing(in_files, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("FULL DISK NOT TESTED: a small tmpfs can only be mounted by root")
    try:
        from tests.exporting.conftest import copied, select_in

        project = copied(in_files, Workspace.open(place))
        run = select_in(project, 0.0)
        filler = place / "filler"
        free = shutil.disk_usage(place).free
        filler.write_bytes(b"x" * (free - 40_000))
        with pytest.raises(DiskFullError, match="The disk is full"):
            export_coreset(project, run, "imagefolder")
        assert list(project.exports_folder.iterdir()) == []
        filler.unlink()
        assert export_coreset(project, run, "imagefolder").files["images"].is_file()
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
