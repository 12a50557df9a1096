"""Decoders that are started as the app starts them."""

import pytest

from semiprune_core.importing import workers


@pytest.fixture
def decoders_as_in_the_app(monkeypatch):
    """Spawned, not forked from the tests' server."""
    monkeypatch.setattr(workers, "START_METHOD", "spawn")
