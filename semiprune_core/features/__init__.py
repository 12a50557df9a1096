"""Features of every image, computed from the originals in the background: settings, the job and how it is queued.

It exports :class:`EmbedSettings` and :func:`submit_features`; the work itself is in ``embed``, which loads torch and is
imported by the job's worker alone. The result is read by ``results.latest_features``.
"""

from semiprune_core.features.submit import EmbedSettings, submit_features

__all__ = ["EmbedSettings", "submit_features"]
