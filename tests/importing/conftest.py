"""Imports as the app makes them."""

import pytest


@pytest.fixture(autouse=True)
def quick_decoders():
    """None here: these tests start decoders as the app does."""
