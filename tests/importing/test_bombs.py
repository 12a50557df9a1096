"""Small files that would unpack to gigabytes: a sentence each, and the app and its helpers stay small."""

import contextlib
import json
import os
import signal
import threading

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from semiprune_core.errors import InvalidDataError, SourceError
from semiprune_core.importing import images, limited
from semiprune_core.importing.sources import manifest, open_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.importing.workers import Place
from semiprune_core.labeling.exchange import rows as label_rows
from semiprune_core.labeling.exchange.label_studio import read_label_studio_rows
from semiprune_core.labeling.exchange.rows import Problems
from semiprune_core.paths import PathGuard
from tests.support.effort import FULL

MOST = 500 << 20


class Growth:
    """How much memory this process took beyond what it had, with all of the processes it started since."""

    def __enter__(self):
        self._over = threading.Event()
        self._this = psutil.Process()
        self._others = set(self._this.children(recursive=True))
        self._before, self.most = self._this.memory_info().rss, 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _now(self):
        total = self._this.memory_info().rss - self._before
        for process in {*self._this.children(recursive=True)} - self._others:
            with contextlib.suppress(psutil.NoSuchProcess):
                is_begun = process.cmdline() != self._this.cmdline()  # until then it seems to have all of our memory
                total += process.memory_info().rss if is_begun else 0
        return total

    def _watch(self):
        while not self._over.wait(0.05):
            self.most = max(self.most, self._now())


def write_parquet(path, cells, **columns):
    pq.write_table(pa.table({"path": cells, **columns}), path, compression="zstd", write_statistics=False)
    assert path.stat().st_size < 200_000
    return path


def test_one_very_large_cell_is_refused(tmp_path):
    path = write_parquet(tmp_path / "big.parquet", pa.array(["x" * ((800 if FULL else 420) << 20) + ".png"]))
    with Growth() as growth, pytest.raises(SourceError) as caught:
        manifest.preview(path)
    assert caught.value.code == "FILE_TOO_LARGE" and "big.parquet needs more than 384 MB" in str(caught.value)
    assert growth.most < MOST


def test_a_cell_of_a_megabyte_is_refused_with_its_row(tmp_path):
    path = write_parquet(tmp_path / "wide.parquet", pa.array(["a.png", "x" * (1 << 20)]))
    with pytest.raises(SourceError, match=r"Row 2 of wide.parquet holds a cell of more than 131,072 characters"):
        manifest.preview(path)


def test_many_equal_rows_take_no_memory_and_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "MOST_LISTED", 100)
    n_rows = 10_000_000 if FULL else 60_000
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    cells = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), pa.array(["a.png"]))
    path = write_parquet(tmp_path / "equal.parquet", cells)
    with Growth() as growth:
        source = open_source(SourceSpec("manifest", str(path)), guard=PathGuard((tmp_path,)), scratch=tmp_path)
        assert source.count() == 1 and [entry.path for entry in source.entries()] == ["a.png"]
    assert len(source.problems) == 101
    assert source.problems[-1].message.startswith(f"{n_rows - 101:,} more rows of equal.parquet cannot be used")
    assert growth.most < MOST


def test_a_label_file_of_numbers_is_listed_briefly(monkeypatch):
    monkeypatch.setattr(label_rows, "MOST_LISTED", 100)
    data = b"[" + b"0," * (5_000_000 if FULL else 200_000) + b"0]"
    problems = Problems()
    with Growth() as growth:
        assert list(read_label_studio_rows(data, "ada", problems)) == []
    assert len(problems) == 100 and problems.n_rows == data.count(b"0")
    assert growth.most < MOST


def test_a_label_file_of_nested_lists_is_refused():
    data = b"[" + b"[[]]," * 4_000_000 + b"0]"
    with Growth() as growth, pytest.raises(SourceError) as caught:
        list(read_label_studio_rows(data, "ada", Problems()))
    assert caught.value.code == "FILE_TOO_LARGE" and "The label file" in str(caught.value)
    assert growth.most < MOST


def test_errors_of_a_limited_reader_keep_their_kind():
    with pytest.raises(InvalidDataError, match="not JSON") as caught:
        list(read_label_studio_rows(b"{", "ada", Problems()))
    assert type(caught.value) is InvalidDataError and caught.value.code == "JSON_DAMAGED"


def numbers(count):
    return ([number, "x" * 1000] for number in range(int(count)))


def test_what_is_streamed_arrives_whole_in_order():
    assert [number for number, _ in limited.stream(numbers, "5000", name="numbers")] == list(range(5000))


def crash(status):
    yield 1
    os._exit(int(status)) if int(status) >= 0 else os.kill(os.getpid(), -int(status))


@pytest.mark.parametrize("status", [1, -signal.SIGSEGV])
def test_a_reader_that_crashes_is_not_taken_for_a_large_file(status):
    with pytest.raises(SourceError, match=rf"odd.parquet is damaged: its reader ended with status {status}") as caught:
        list(limited.stream(crash, str(int(status)), name="odd.parquet"))
    assert caught.value.code == "FILE_DAMAGED"


def test_lines_are_about_a_megabyte():
    lines = list(limited._lines(numbers("20000")))
    assert max(map(len, lines)) < 2.5 * limited.LINE and json.loads(lines[-1]) is None
    assert len(lines) < 60


def test_a_reader_that_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(limited, "PATIENCE", 0.0)
    with pytest.raises(SourceError) as caught:
        list(limited.stream(numbers, "1", name="slow.parquet"))
    assert caught.value.code == "FILE_TOO_SLOW"


@pytest.mark.parametrize(("mode", "kind"), [("F", "tiff"), ("I;16", "tiff"), ("RGBA", "png")])
def test_a_large_picture_of_any_kind_is_decoded_in_little_memory(tmp_path, mode, kind):
    path = tmp_path / f"large.{kind}"
    image = Image.new(mode, (7000, 7000))
    image.putpixel((5, 6), {"F": 3.5, "I;16": 40_000, "RGBA": (1, 2, 3, 128)}[mode])
    image.save(path, compression="tiff_adobe_deflate")
    del image
    data = path.read_bytes()
    assert len(data) < 1_500_000
    with Growth() as growth:
        decoded = images.decode(data, name=path.name)
        assert decoded.image.size == (7000, 7000)
    assert decoded.image.getpixel((5, 6)) == {"F": 255, "I;16": 156, "RGBA": (128, 128, 129)}[mode]
    assert growth.most < MOST


def test_large_pictures_wait_for_their_turn_and_small_ones_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "LARGE_PIXELS", 100)
    Image.new("L", (11, 10)).save(tmp_path / "large.png")
    Image.new("L", (10, 10)).save(tmp_path / "small.png")
    asked = []
    for name in ("large.png", "small.png"):
        images.decode((tmp_path / name).read_bytes(), name=name, before_large=lambda name=name: asked.append(name))
    assert asked == ["large.png"]


def test_a_turn_is_one_workers_at_a_time_and_ends_with_its_image(tmp_path):
    (tmp_path / "turn").touch()
    with open(tmp_path / "turn", "rb") as first, open(tmp_path / "turn", "rb") as second:
        one, other = Place([0, 0], first.fileno()), Place([0, 0], second.fileno())
        one.begin(0)
        one.take_turn()
        waiting = threading.Thread(target=other.take_turn, daemon=True)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        one.begin(1)
        waiting.join()
