"""Features of every image, computed from the originals in the background: settings, the job and how it is queued.

It exports :class:`EmbedSettings`, :func:`submit_features` and :func:`wait_while_computed`; the work itself is in
``embed``, which loads torch and is imported by workers alone. The result is read by ``results.latest_features``.
"""

from semiprune_core.features.submit import EmbedSettings, submit_features, wait_while_computed

__all__ = ["EmbedSettings", "submit_features", "wait_while_computed"]
