"""Accounts for tests: hashes that cost nothing, and one password for everybody."""

from semiprune_core.accounts import passwords

WORDS = "correct horse"


def make_hashes_cheap(monkeypatch):
    monkeypatch.setattr(passwords, "COST", 4)
