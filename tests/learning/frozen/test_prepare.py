"""Main directions by repeated multiplication, beside the exact ones."""

import numpy as np
import pytest

from semiprune_core.learning.frozen.prepare import main_axes, orthonormal


@pytest.fixture
def rows():
    """(400, 120) float32 with lengths that fall off, as those of features do."""
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.standard_normal((120, 120)))[0]
    return ((rng.standard_normal((400, 120)) * np.exp(-np.arange(120) / 15)) @ turned).astype(np.float32)


def test_main_axes_hold_as_much_as_the_exact_ones(rows):
    axes = main_axes(rows, 24)
    exact = np.linalg.svd(rows.astype(np.float64), compute_uv=False)
    held = np.sort(np.linalg.norm(rows @ axes, axis=0))[::-1]
    np.testing.assert_allclose(axes.T @ axes, np.eye(24), atol=1e-5)
    np.testing.assert_allclose(held, exact[:24], rtol=1e-3)
    assert main_axes(rows, 120) is None


def test_columns_become_orthonormal_and_equal_ones_count_once(rows):
    columns = np.hstack([rows[:, :10], rows[:, :3]])
    found = orthonormal(columns)
    assert found.shape == (400, 10) and np.abs(found.T @ found - np.eye(10)).max() < 1e-5
    left = columns - found @ (found.T @ columns)
    assert np.abs(left).max() < 1e-4 * np.abs(columns).max()
