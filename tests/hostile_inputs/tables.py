"""Manifests in CSV and Parquet: rows that reach out, tables that cannot be read."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from semiprune_core.importing.sources.base import SourceSpec
from tests.hostile_inputs.cases import GOOD, Case, Ending, outside


def _table(data: bytes, name: str = "m.csv", **options: Any) -> Callable[[Path], SourceSpec]:
    def build(folder: Path) -> SourceSpec:
        (folder / "good.png").write_bytes(GOOD)
        (folder / "sub").mkdir()
        (folder / "link.png").symlink_to(outside(folder))
        (folder / name).write_bytes(data)
        return SourceSpec("manifest", str(folder / name), options)

    return build


def _row(path: str) -> bytes:
    return f'path,label\n"{path}",cat\ngood.png,cat\n'.encode()


BAD_ROWS = {
    "passwd": ("/etc/passwd", "PATH_OUTSIDE_ROOT"),
    "climbing": ("../../outside/secret.png", "PATH_OUTSIDE_ROOT"),
    "climbing_back": ("sub/../../../outside/secret.png", "PATH_OUTSIDE_ROOT"),
    "climbing_backslash": ("..\\..\\outside\\secret.png", "PATH_OUTSIDE_ROOT"),
    "home": ("~/secret.png", "FILE_MISSING"),
    "link": ("link.png", "PATH_OUTSIDE_ROOT"),
    "drive": ("C:\\x.png", "PATH_OUTSIDE_ROOT"),
    "http": ("http://example.com/a.png", "URL_NOT_SUPPORTED"),
    "https": ("HTTPS://example.com/a.png", "URL_NOT_SUPPORTED"),
    "file_address": ("file:///etc/passwd", "URL_NOT_SUPPORTED"),
    "file_short": ("file:/etc/passwd", "URL_NOT_SUPPORTED"),
    "share": ("\\\\host\\share\\a.png", "URL_NOT_SUPPORTED"),
    "share_slashes": ("//host/share/a.png", "URL_NOT_SUPPORTED"),
    "metadata": ("169.254.169.254/latest", "URL_NOT_SUPPORTED"),
    "bucket": ("s3://bucket/a.png", "URL_NOT_SUPPORTED"),
    "data": ("data:image/png;base64,AAAA", "URL_NOT_SUPPORTED"),
    "missing": ("nothing.png", "FILE_MISSING"),
    "a_folder": ("sub", "FILE_MISSING"),
    "itself": ("m.csv", "NOT_AN_IMAGE"),
    "hidden": (".hidden/good.png", "PATH_HIDDEN"),
    "no_path": ("", "ROW_WITHOUT_PATH"),
}
CASES = [Case(f"row_{name}", _table(_row(path)), code, "listed") for name, (path, code) in BAD_ROWS.items()]


def _parquet(columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


TABLES: dict[str, tuple[str, Ending, Callable[[Path], SourceSpec]]] = {
    "row_twice": ("DUPLICATE_ROW", "listed", _table(b"path,label\ngood.png,cat\n./good.png,dog\n")),
    "unknown_split": (
        "SPLIT_UNKNOWN",
        "listed",
        _table(b"path,split\ngood.png,train\nlink2.png,x\n./sub/../m.csv,y\n"),
    ),
    "nul_byte": ("CSV_ENCODING", "stop", _table(b"path\ngood.png\nx\0y.png\n")),
    "mixed_encodings": ("CSV_ENCODING", "stop", _table("path\nü.png\n".encode() + b"caf\xe9.png\n")),
    "half_utf16": ("CSV_ENCODING", "stop", _table("path\ngood.png\n".encode("utf-16")[:-1])),
    "undefined_letters": ("CSV_ENCODING", "stop", _table(b"path\ngood.png\ncaf\x81.png\n")),
    "no_path_column": ("CSV_NO_PATH_COLUMN", "stop", _table(b"name_of_it,label\ngood.png,cat\n")),
    "chosen_column_missing": ("CSV_NO_PATH_COLUMN", "stop", _table(b"path\ngood.png\n", path_column="where")),
    "chosen_label_missing": ("CSV_NO_COLUMN", "stop", _table(b"path\ngood.png\n", label_column="what")),
    "column_twice": ("CSV_NO_PATH_COLUMN", "stop", _table(b"path,path\ngood.png,good.png\n")),
    "empty": ("CSV_EMPTY", "stop", _table(b"")),
    "blank_lines": ("CSV_EMPTY", "stop", _table(b"\n\n\n")),
    "header_only": ("CSV_EMPTY", "stop", _table(b"path,label\n")),
    "huge_cell": ("CSV_CELL_TOO_LARGE", "stop", _table(b"path\ngood.png\n" + b"x" * 10_000_000)),
    "open_quote": ("CSV_CELL_TOO_LARGE", "stop", _table(b'path\ngood.png\n"never' + b"\nclosed" * 30_000)),
    "root_outside": ("PATH_OUTSIDE_ROOT", "stop", _table(b"path\ngood.png\n", root="/")),
    "root_is_address": ("URL_NOT_SUPPORTED", "stop", _table(b"path\ngood.png\n", root="http://x/")),
    "parquet_damaged": ("PARQUET_CORRUPT", "stop", _table(b"PAR1" + b"\1" * 200 + b"PAR1", "m.parquet")),
    "parquet_cut_off": ("PARQUET_CORRUPT", "stop", _table(_parquet({"path": ["good.png"]})[:60], "m.parquet")),
    "parquet_without_path": ("CSV_NO_PATH_COLUMN", "stop", _table(_parquet({"x": [1]}), "m.parquet")),
    "parquet_empty": ("CSV_EMPTY", "stop", _table(_parquet({"path": pa.array([], pa.string())}), "m.parquet")),
    "parquet_address": (
        "URL_NOT_SUPPORTED",
        "listed",
        _table(_parquet({"path": ["good.png", "http://x/y.png"]}), "m.parquet"),
    ),
    "parquet_null": ("ROW_WITHOUT_PATH", "listed", _table(_parquet({"path": ["good.png", None]}), "m.parquet")),
    "parquet_year_beyond_all": (
        "PARQUET_CORRUPT",
        "stop",
        _table(_parquet({"path": ["good.png"], "label": pa.array([2**44], pa.timestamp("s"))}), "m.parquet"),
    ),
    "no_table_by_name": ("NOT_A_TABLE", "stop", _table(b"path\ngood.png\n", "m.txt")),
    "no_images": ("CSV_NO_PATH_COLUMN", "stop", _table(b"path,key\nana,s3cret\nbob,geheim\n")),
    "pictures_not_paths": ("CSV_ENCODING", "stop", _table(GOOD)),
}
CASES += [Case(f"table_{name}", build, code, ending) for name, (code, ending, build) in TABLES.items()]
