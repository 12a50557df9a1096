"""The states of a job.

queued -> running -> done | failed | stopped | lost
   |                          |        |        |
   +-> stopped                +--------+--------+-> queued (resume, retry)
"""

from __future__ import annotations

QUEUED = "queued"  # waits for its device
RUNNING = "running"  # a process holds its lease
DONE = "done"  # ended well, its result can be read
FAILED = "failed"  # ended with a named cause; can be retried
STOPPED = "stopped"  # somebody asked for it; can be resumed
LOST = "lost"  # its process died without a word; can be resumed

STATES = (QUEUED, RUNNING, DONE, FAILED, STOPPED, LOST)
OVER = frozenset({DONE, FAILED, STOPPED, LOST})
RESUMABLE = frozenset({FAILED, STOPPED, LOST})
