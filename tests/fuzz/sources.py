"""What is imported: pictures in folders, archives, arrays, tables, uploads; opened, listed, decoded and written."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import struct
import tarfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from semiprune_core.errors import SemiPruneError
from semiprune_core.importing.images import FORMATS
from semiprune_core.importing.sources import open_source, parse_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.importing.sources.manifest import preview
from semiprune_core.importing.sources.uploads import uploaded_source
from semiprune_core.importing.workers import Place, decode_chunk
from semiprune_core.importing.writer import SegmentWriter
from semiprune_core.paths import PathGuard, shown
from semiprune_core.project.pool import PoolSettings
from semiprune_core.records import Problem
from tests.fuzz.mutations import EDGES, hostile_name, mutated, mutated_json
from tests.fuzz.running import SECRET_SIZE, Said, TryOne
from tests.hostile_inputs.cases import GOOD, picture
from tests.hostile_inputs.zips import Packed, end64, raw_zip

POOL = PoolSettings(size=28)


def taken_in(spec: SourceSpec, base: Path) -> list[Said]:
    """What an import says about a source; every sentence names the file, its row, or the upload."""
    try:
        problems = _import(spec, base)
    except SemiPruneError as error:
        if os.path.lexists(spec.location):
            names = (Path(spec.location).name, "upload", *(shown(value)[:20] for value in spec.options.values()))
            assert any(name in str(error) for name in names), f"{error} names nothing"
        raise
    for problem in problems:
        named = problem.message.startswith("Row ") or shown(problem.path)[:20] in problem.message
        assert named, f"{problem} names nothing"
        json.dumps([problem.path, problem.message], ensure_ascii=False).encode()
    return [(problem.code, problem.message) for problem in problems]


def _import(spec: SourceSpec, base: Path) -> list[Problem]:
    """What an import does, in this process: open, count, list, decode, write."""
    scratch = base / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "segment").mkdir(parents=True)
    guard = PathGuard((base / "allowed",), closed=base / "home")
    source = open_source(spec, guard=guard, scratch=scratch)
    source.count()
    chunk = decode_chunk(
        list(source.entries()), POOL, at=Place(), spool_folder=str(scratch) if source.origin == "packed" else None
    )
    for row in chunk.rows:
        assert (row.width, row.height) != SECRET_SIZE, "a picture from outside was read"
    with SegmentWriter(
        scratch / "segment", POOL, packed=source.origin == "packed", known_ids=np.empty(0, np.uint64)
    ) as writer:
        writer.add(chunk)
        writer.add_problems(source.problems)
        writer.finish()
    return [*source.problems, *chunk.problems]


def fresh(base: Path) -> Path:
    """An empty folder that may be read."""
    folder = base / "allowed" / "input"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


# --- images ----------------------------------------------------------------------------------------------------------


def _image_examples() -> dict[str, bytes]:
    image = Image.fromarray(picture())
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a note"
    many: dict[str, tuple[Image.Image, str, dict[str, Any]]] = {
        "png": (image, "PNG", {"exif": exif, "dpi": (72, 72)}),
        "palette.png": (image.convert("P"), "PNG", {"transparency": 3}),
        "clear.png": (image.convert("RGBA"), "PNG", {}),
        "deep.png": (Image.fromarray(picture(2, (12, 16)).astype(np.uint16) * 200), "PNG", {}),
        "jpg": (image, "JPEG", {"exif": exif, "comment": b"hello"}),
        "progressive.jpg": (image, "JPEG", {"progressive": True}),
        "cmyk.jpg": (image.convert("CMYK"), "JPEG", {}),
        "gif": (image, "GIF", {"save_all": True, "append_images": [image.rotate(90)], "comment": b"x"}),
        "bmp": (image, "BMP", {}),
        "bit.bmp": (image.convert("1"), "BMP", {}),
        "tiff": (image, "TIFF", {"exif": exif}),
        "lzw.tif": (image, "TIFF", {"compression": "tiff_lzw"}),
        "float.tif": (image.convert("F"), "TIFF", {"compression": "tiff_adobe_deflate"}),
        "fax.tif": (image.convert("1"), "TIFF", {"compression": "group4"}),
        "webp": (image, "WEBP", {"lossless": True, "exif": exif}),
        "moving.webp": (image, "WEBP", {"save_all": True, "append_images": [image.rotate(90)]}),
        "ppm": (image, "PPM", {}),
        "pgm": (image.convert("L"), "PPM", {}),
        "avif": (image, "AVIF", {"exif": exif}),
        "clear.avif": (image.convert("RGBA"), "AVIF", {}),
    }
    if "HEIF" in FORMATS:  # where its package is installed
        many["heic"] = image, "HEIF", {"exif": exif}
    examples = {}
    for name, (picture_, kind, options) in many.items():
        buffer = io.BytesIO()
        picture_.save(buffer, kind, **options)
        examples[name] = buffer.getvalue()
    return examples


def images(base: Path) -> TryOne:
    examples = _image_examples()
    others = list(examples.values())

    def try_one(rng: Random) -> list[Said]:
        folder = fresh(base)
        suffix, data = rng.choice(list(examples.items()))
        (folder / f"bad.{suffix}").write_bytes(mutated(rng, data, others))
        with contextlib.suppress(OSError, ValueError):  # a name that the disk refuses
            path = os.path.normpath(folder / hostile_name(rng, f".{suffix}").lstrip("/"))
            if path.startswith(f"{folder}/"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                Path(path).write_bytes(mutated(rng, data, others))
        if rng.random() < 0.2:
            (folder / rng.choice(("link.png", "link"))).symlink_to(
                rng.choice(("../../outside", "../../outside/secret.png", "link.png", "/"))
            )
        return taken_in(SourceSpec("folder", str(folder)), base)

    return try_one


# --- archives --------------------------------------------------------------------------------------------------------


def _hostile_member(rng: Random, n: int) -> Packed:
    """A member that tells one lie or none."""
    wide = struct.pack("<2H3Q", 1, 24, *(rng.choice(EDGES) for _ in range(3)))
    lies: list[dict[str, Any]] = [
        {},
        {"name": hostile_name(rng, ".png").encode("utf-8", "surrogatepass")[:60_000]},
        {"name": f"train/{n}/a.png"},
        {"data": mutated(rng, GOOD, [GOOD])},
        {"method": rng.choice((0, 1, 9, 12, 14, 99))},
        {"flags": rng.choice((1, 8, 0x40, 0x800, 0xFFFF))},
        {"attributes": rng.choice((0o120777, 0o040755, 0o010644)) << 16},
        {key: rng.choice(EDGES) % (1 << 32) for key in ("size", "compressed", "offset") if rng.random() < 0.6},
        {**{key: 0xFFFFFFFF for key in ("size", "compressed", "offset") if rng.random() < 0.6}, "extra": wide},
        {"extra": wide[: rng.randrange(len(wide))], "size": 0xFFFFFFFF},
        {"crc": rng.choice(EDGES) % (1 << 32)},
        {"packed": mutated(rng, GOOD, [GOOD]) or b"x"},
    ]
    return Packed(**{"name": f"{n}.png", **rng.choice(lies)})


def _zip(rng: Random) -> bytes:
    count = rng.choice((1, 2, 3, 40))
    members = [_hostile_member(rng, n) if rng.random() < 1.5 / count else Packed(f"{n}.png") for n in range(count)]
    if rng.random() < 0.2:
        plain = raw_zip(*members)
        truth = [len(members), *struct.unpack_from("<2I", plain, len(plain) - 10), len(plain) - 22]
        truth[rng.randrange(4)] = rng.choice(EDGES)
        return raw_zip(*members, zip64=end64(*truth, rest=rng.choice((44, *EDGES))))
    return raw_zip(*members)


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("good.png")
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    return buffer.getvalue()


def archives(base: Path) -> TryOne:
    tar = _tar()

    def try_one(rng: Random) -> list[Said]:
        folder = fresh(base)
        data = tar if rng.random() < 0.05 else _zip(rng)
        name = "bad.tar" if data is tar and rng.random() < 0.5 else "bad.zip"
        if rng.random() < 0.3:
            data = mutated(rng, data, [tar, GOOD, data])
        (folder / name).write_bytes(data)
        return taken_in(parse_source(str(folder / name)), base)

    return try_one


# --- arrays ----------------------------------------------------------------------------------------------------------


def _npy(array: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), version=version, allow_pickle=False)
    return buffer.getvalue()


HEADERS = (
    "{'descr': '|u1', 'fortran_order': %s, 'shape': %s, }",
    "{'descr': %s, 'fortran_order': False, 'shape': %s, }",
    "{'descr': [('a', '|u1'), ('b', %s)], 'fortran_order': False, 'shape': %s, }",
    "{%s: '|u1', 'fortran_order': False, 'shape': %s, }",
    "%s %s",
)
WORDS = (
    "True", "None", "'|O'", "'|V0'", "'<U0'", "'<U2147483647'", "'>U8'", "'|S4'", "'|b1'", "'<M8[ns]'", "'<f2'",
    "(3, 8, 8)", "(3, 8, 8, 3)", "(3,)", "()", "(0, 8, 8)", "(-1, 8, 8)", "(3, 8, 0)", "(3.0, 8, 8)", "(True, 8, 8)",
    "(9223372036854775807, 2, 2)", "(18446744073709551616, 1, 1)", "(" * 300 + ")" * 300, "[3, 8, 8]", "3", "'\\ud800'",
    "__import__('os')", "1j", "{}", "''", "('|u1', (2, 3))", "'|u1\\0'", "\0", "(3, 8, 8", "-" * 3000 + "1",
)  # fmt: skip


def _hostile_npy(rng: Random, good: bytes) -> bytes:
    what = rng.randrange(4)
    if what == 0:
        return good
    if what == 1:
        return mutated(rng, good, [good])
    text = (rng.choice(HEADERS) % (rng.choice(WORDS), rng.choice(WORDS))).encode()
    if what == 2:
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n" + bytes(rng.choice((0, 192, 600)))
    version, size = rng.choice((b"\2\0", b"\3\0", b"\4\0", b"\xff\xff")), rng.choice((len(text), *EDGES)) % 2**32
    return b"\x93NUMPY" + version + struct.pack("<I", size) + text + bytes(rng.choice((0, 192)))


def arrays(base: Path) -> TryOne:
    columns: dict[str, list[Any]] = {
        "images": [np.stack([picture(n, shape) for n in range(3)]) for shape in ((8, 8), (8, 8, 3), (8, 8, 4))],
        "labels": [[0, 1, -1], ["a", "b", ""], np.array([1, 2, 3], np.uint8), np.array([0, 1, 2], ">i8")],
        "class_names": [["a", "b"], ["a", "\ud800"], np.array(["a", "b", "c"], ">U3")],
        "split": [["pool", "test", "val"], ["train", "x", ""]],
        "paths": [["a.png", "b.png", "c/d.png"], ["a.png", "a.png", "../x.png"], ["\ud800", "a\u2028.png", "x" * 300]],
        "other": [[1, 2, 3]],
    }

    def try_one(rng: Random) -> list[Said]:
        members = []
        chosen = [name for name in columns if name == "images" or rng.random() < 0.4]
        bad = rng.choice((*chosen, ""))
        for name in chosen:
            data = _npy(rng.choice(columns[name]))
            data = _hostile_npy(rng, data) if name == bad else data
            members.append(Packed(f"{name}.npy", data=data, method=rng.choice((0, 8))))
        data = raw_zip(*members, *members[: rng.random() < 0.1])
        path = fresh(base) / "bad.npz"
        path.write_bytes(mutated(rng, data, [data]) if rng.random() < 0.2 else data)
        return taken_in(SourceSpec("npz", str(path)), base)

    return try_one


# --- tables ----------------------------------------------------------------------------------------------------------


def _parquet(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="snappy")
    return buffer.getvalue()


def _table_examples() -> list[tuple[str, bytes]]:
    text = 'path,label,split\ngood.png,cat,train\n"sub/b.png","a ""dog""",test\nmissing.png,,\n'
    paths = ["good.png", "sub/b.png", None]
    return [
        ("bad.csv", text.encode()),
        ("bad.csv", text.encode("utf-16")),
        ("bad.csv", text.replace("cat", "Käse").encode("cp1252")),
        ("bad.tsv", text.replace(",", "\t").encode("utf-8-sig")),
        ("bad.csv", text.replace(",", ";").replace("\n", "\r\n").encode()),
        ("bad.parquet", _parquet(path=paths, label=["a", "b", None], split=["pool", "test", ""])),
        ("bad.parquet", _parquet(path=pa.array(paths).dictionary_encode(), label=pa.array([1, None, 3]))),
        ("bad.parquet", _parquet(file=[b"good.png", b"\xff\xfe.png", b""], label=[[1], None, []])),
        ("bad.parquet", _parquet(path=paths, label=pa.array([0, 2**62, None], pa.timestamp("ns")))),
        ("bad.parquet", _parquet(path=paths, label=pa.array([2**44, -(2**44), None], pa.timestamp("s")))),
        ("bad.parquet", _parquet(path=paths, y=pa.array([2**40, 1, None], pa.duration("s")))),
        ("bad.parquet", _parquet(path=paths, label=pa.array([{"a": 1}, None, {"a": None}]))),
    ]


def tables(base: Path) -> TryOne:
    examples = _table_examples()
    others = [data for _, data in examples]

    def hostile_rows(rng: Random) -> bytes:
        rows = [["path", "label", "split"], ["good.png", "cat", "pool"]]
        rows += [[hostile_name(rng, ".png"), hostile_name(rng), rng.choice(("", "test", "x"))] for _ in range(4)]
        quoted = "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
        return quoted.encode(rng.choice(("utf-8", "utf-16")), rng.choice(("surrogatepass", "replace")))

    def try_one(rng: Random) -> list[Said]:
        folder = fresh(base)
        (folder / "good.png").write_bytes(GOOD)
        (folder / "sub").mkdir()
        (folder / "sub" / "b.png").write_bytes(GOOD)
        name, data = rng.choice(examples)
        if rng.random() < 0.2:
            name, data = "bad.csv", hostile_rows(rng)
        (folder / name).write_bytes(mutated(rng, data, others) if rng.random() < 0.9 else data)
        options = {}
        if rng.random() < 0.2:
            options = {rng.choice(("root", "path_column", "label_column", "split_column")): hostile_name(rng)}
        preview(folder / name)
        return taken_in(SourceSpec("manifest", str(folder / name), options), base)

    return try_one


# --- uploads ---------------------------------------------------------------------------------------------------------


def uploads(base: Path) -> TryOne:
    lines = [{"file": str(n), "name": f"cats/{n}.png", "bytes": 5} for n in range(3)]

    def line(rng: Random, n: int) -> bytes:
        values = mutated_json(rng, lines[n]) if rng.random() < 0.5 else {**lines[n], "name": hostile_name(rng, ".png")}
        text = json.dumps(values, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return mutated(rng, text, [text]) if rng.random() < 0.2 else text

    def try_one(rng: Random) -> list[Said]:
        folder = fresh(base)
        (folder / "files").mkdir()
        for n in range(3):
            (folder / "files" / str(n)).write_bytes(GOOD)
        (folder / "index.jsonl").write_bytes(b"\n".join(line(rng, n) for n in range(rng.choice((1, 3)))) + b"\n")
        return taken_in(uploaded_source(folder), base)

    return try_one
