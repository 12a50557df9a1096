"""Mean and spread of every sliding window, without the cancellation of running sums.

The usual trick, running sums of p and p^2, subtracts two nearly equal numbers: for a probability that rests at 0.3 it
leaves a deviation of about 1e-8 instead of 0, and an exponent such as gamma = 0.1 makes 0.16 of that. Here windows are
built by merging shorter neighbours instead (Chan, Golub and LeVeque 1979),

    mean = mean_a + (mean_b - mean_a) n_b / n,     M2 = M2_a + M2_b + (mean_b - mean_a)^2 n_a n_b / n,

where M2 is the sum of squared deviations. Only squares are added, so nothing cancels and a constant window has M2 = 0
exactly. Windows of 1, 2, 4, 8, ... epochs come from doubling, a window of 10 from 8 + 2: about log2(J) merges, not J.
"""

from __future__ import annotations

import numpy as np

from semiprune_core.checks import check_range
from semiprune_core.errors import InvalidSettingError
from semiprune_core.records import FloatArray

COLUMNS = 256  # images at a time: the windows of 256 images over 200 epochs stay in the processor's cache
Windows = tuple[FloatArray, FloatArray]


def check_window(title: str, window: int, n_epochs: int) -> None:
    """Refuse windows that are longer than the ``n_epochs`` a score looks at."""
    check_range("window", window, low=2)
    if window > n_epochs:
        raise InvalidSettingError(
            f"{title} looks at windows of {window} epochs, but only {n_epochs} are scored. "
            f"Set the window to {n_epochs} or less, or score (and train) at least {window} epochs."
        )


def sliding_moments(values: FloatArray, window: int) -> Windows:
    """Mean and sum of squared deviations of all windows of ``window`` rows.

    ``values`` (T, N) float64 -> two (T - window + 1, N) arrays.

    >>> mean, m2 = sliding_moments(np.array([[1.0], [2.0], [6.0]]), 2)
    >>> mean.ravel().tolist(), m2.ravel().tolist()
    ([1.5, 4.0], [0.5, 8.0])
    """
    power: Windows = (values, np.zeros((1, 1)))
    size = 1  # windows of 1, 2, 4, ... rows
    joined: Windows | None = None  # windows of the low bits of `window` so far
    joined_size = 0
    while True:
        if window & size:
            joined = power if joined is None else _merge(power, size, joined, joined_size)
            joined_size += size
        if joined is not None and joined_size == window:
            break
        power, size = _merge(power, size, power, size), 2 * size
    mean, m2 = joined
    return mean, np.broadcast_to(m2, mean.shape)


def _merge(first: Windows, n_first: int, second: Windows, n_second: int) -> Windows:
    """Windows of ``n_first + n_second`` rows: one of ``first``, followed at once by one of ``second``."""
    n = n_first + n_second
    (mean_a, m2_a), (mean_b, m2_b) = first, second
    mean_b = mean_b[n_first:]
    mean_a = mean_a[: len(mean_b)]
    apart = mean_b - mean_a
    mean = apart * (n_second / n)
    mean += mean_a
    apart *= apart
    apart *= n_first * n_second / n
    if n_first > 1:  # single rows do not spread
        apart += m2_a[: len(apart)]
    if n_second > 1:
        apart += m2_b[n_first:]
    return mean, apart
