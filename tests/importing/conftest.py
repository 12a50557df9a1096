"""Imports as the app makes them."""

import pytest

from semiprune_core.importing import workers


@pytest.fixture(autouse=True)
def decoders_as_in_the_app(monkeypatch):
    monkeypatch.setattr(workers, "START_METHOD", "spawn")
