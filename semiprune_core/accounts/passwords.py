"""Passwords, of which only a slow hash is kept: scrypt of the standard library, so that nothing has to be installed.

2^15 blocks of 8, three times over: 32 MB and some tenths of a second for each guess, as OWASP's cheat sheet on
password storage asks for. The numbers are stored with each hash, so that they can grow.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import unicodedata

from semiprune_core.errors import InvalidSettingError

COST, BLOCK, PASSES = 15, 8, 3
LEAST_LETTERS, LEAST_DIFFERENT, MOST_LETTERS = 8, 4, 500
AT_ONCE = 2
"""Hashes made at one time: many logins at once take neither all memory nor all cores."""
_slots = threading.BoundedSemaphore(AT_ONCE)
_NOBODY = b"nobody has this salt"


def check_password(password: str, account_id: str = "") -> None:
    """Refuse a password that can be guessed in no time."""
    if len(password) > MOST_LETTERS:
        raise InvalidSettingError(f"A password has at most {MOST_LETTERS} characters.", code="WEAK_PASSWORD")
    weak = len(password.strip()) < LEAST_LETTERS or len(set(password)) < LEAST_DIFFERENT
    if weak or password.casefold() == account_id.casefold():
        raise InvalidSettingError(
            f"This password can be guessed: use at least {LEAST_LETTERS} characters, {LEAST_DIFFERENT} of them "
            "different, and not the account's name. A few words are easy to remember.",
            code="WEAK_PASSWORD",
        )


def hash_of(password: str) -> str:
    """What is stored: the costs, a random salt and the hash."""
    salt = secrets.token_bytes(16)
    made = _scrypt(password, salt, COST, BLOCK, PASSES)
    return "$".join(["scrypt", str(COST), str(BLOCK), str(PASSES), _text(salt), _text(made)])


def matches(password: str, stored: str | None) -> bool:
    """Whether ``password`` is the stored one. Without one (None) it takes as long, and is wrong."""
    if len(password) > MOST_LETTERS:
        return False
    if stored is None:
        _scrypt(password, _NOBODY, COST, BLOCK, PASSES)
        return False
    _, cost, block, passes, salt, made = stored.split("$")
    again = _scrypt(password, base64.b64decode(salt), int(cost), int(block), int(passes))
    return hmac.compare_digest(again, base64.b64decode(made))


def _scrypt(password: str, salt: bytes, cost: int, block: int, passes: int) -> bytes:
    letters = unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
    room = 2 * 128 * block * ((1 << cost) + passes)
    with _slots:
        return hashlib.scrypt(letters, salt=salt, n=1 << cost, r=block, p=passes, maxmem=room, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
