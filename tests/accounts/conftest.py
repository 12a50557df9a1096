"""Accounts with a clock to set, and hashes that cost nothing."""

import pytest

from semiprune_core.accounts import Accounts, add_account
from semiprune_core.accounts.book import FILE
from tests.support.people import WORDS, make_hashes_cheap


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    make_hashes_cheap(monkeypatch)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def accounts(workspace, clock):
    accounts = Accounts(workspace.root / FILE, clock=clock)
    add_account(accounts, "Root", admin=True, password=WORDS)
    return accounts
