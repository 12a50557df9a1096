"""How a valid example becomes a hostile one: bytes, texts and JSON, all from one ``random.Random``."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

LONGEST = 1 << 20
EDGES = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 10**6, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
NAMES = (
    "\ud800",
    "a\udfffb",
    "a\u2028b",
    "x" * 300,
    "\u00e9" * 200,
    "a/" * 600 + "x",
    "y" * 5000,
    "..",
    ".",
    "",
    " ",
    "../../../outside/secret",
    "..\\..\\outside\\secret",
    "a/../../b",
    "a\0b",
    "\0",
    "/etc/passwd",
    "//host/share",
    "C:\\x",
    "~",
    "~nobody/x",
    "~" + "z" * 300,
    ".hidden",
    "con",
    "\u202egnp.exe",
    "e\u0301",
    "\ufb01",
    "http://169.254.169.254/x",
    "file:///etc/passwd",
    "\n",
    "a\r\nb",
    "=cmd()",
    "'",
    '"',
    "<script>alert(1)</script>",
    "%2e%2e%2f",
    "%s%n{0}",
    "\x1b[2J",
    "\ufeff",
    "\uffff",
    "\U0001d4b3" * 70,
    "nan",
    "-1",
    "None",
    "__proto__",
)


def hostile_name(rng: Random, suffix: str = "") -> str:
    """A name that some file system, encoding or spreadsheet trips over."""
    name = rng.choice(NAMES)
    return rng.choice((name, name + suffix, f"a/{name}{suffix}", f"{name}/a{suffix}"))


def hostile_number(rng: Random) -> str:
    """Digits that fit into few fields."""
    return rng.choice((*map(str, EDGES), "-1", "-9223372036854775809", "1e308", "0.5", "9" * 30, "9" * 5000, "NaN"))


# --- bytes -----------------------------------------------------------------------------------------------------------


def _place(rng: Random, data: bytes) -> int:
    """Anywhere, but more often near the beginning and the end, where headers and directories are."""
    near = min(len(data), 128)
    return rng.choice((rng.randrange(len(data)), rng.randrange(near), len(data) - 1 - rng.randrange(near)))


def _flip(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        out[_place(rng, data)] ^= 1 << rng.randrange(8)
    return bytes(out)


def _cut(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: _place(rng, data)]


def _drop(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = _place(rng, data)
    return data[:at] + data[at + rng.choice((1, 2, 4, 16, 100)) :]


def _repeat(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = _place(rng, data)
    part = data[at : at + rng.choice((1, 8, 64, 1000))]
    return data[:at] + part * rng.choice((2, 3, 50, 1000)) + data[at + len(part) :]


def _splice(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: _place(rng, data)] + (other[_place(rng, other) :] if other else b"")


def _number(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at, length = _place(rng, data), rng.choice((1, 2, 4, 8))
    edge = rng.choice(EDGES) % (1 << 8 * length)
    return data[:at] + edge.to_bytes(length, rng.choice(("little", "big"))) + data[at + length :]


def _replaced(rng: Random, data: bytes, pattern: bytes, words: str) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return data
    start, end = rng.choice(found).span()
    return data[:start] + words.encode("utf-8", "surrogatepass") + data[end:]


def _digits(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return _replaced(rng, data, rb"\d+", hostile_number(rng))


def _word(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return _replaced(rng, data, rb"[A-Za-z_.]{3,}", hostile_name(rng))


def _brackets(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return _replaced(rng, data, rb"[\[{(\"',]", rng.choice("[{(\"',:") * rng.choice((1, 2, 200, 20_000)))


MUTATIONS = (_flip, _flip, _cut, _drop, _repeat, _splice, _number, _number, _digits, _word, _brackets)


def mutated(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """One to four changes; ``others`` are examples whose ends may be put behind this one's beginning."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            data = rng.choice(MUTATIONS)(rng, data, others)[:LONGEST]
    return data


# --- JSON ------------------------------------------------------------------------------------------------------------


def hostile_value(rng: Random) -> Any:
    value = rng.choice(
        (None, True, 0, -1, 1.5, 1e308, float("nan"), float("inf"), 10**400, "", [], {}, [[]], "edge", *["name"] * 6)
    )
    if value == "edge":
        return rng.choice(EDGES)
    return hostile_name(rng) if value == "name" else value


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (list or object, index or key) in a JSON value."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in pairs:
        yield value, key
        yield from _holders(inner)


def mutated_json(rng: Random, value: Any) -> Any:
    """The value with one to four parts replaced, removed, repeated, wrapped or renamed."""
    root = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_holders(root))
        if not places:
            break
        holder, key = rng.choice(places)
        what = rng.choice(("replace", "replace", "remove", "repeat", "wrap", "rename"))
        if what == "replace":
            holder[key] = hostile_value(rng)
        elif what == "remove" and holder is not root:
            del holder[key]
        elif what == "repeat" and isinstance(holder, list) and holder is not root:
            holder.extend([copy.deepcopy(holder[key])] * rng.choice((1, 5, 600)))
        elif what == "wrap":
            holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
        elif isinstance(holder, dict):
            holder[hostile_name(rng)] = holder.pop(key)
    return root[0]
