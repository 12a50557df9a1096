"""Workers that start at once: forked from a process that has torch loaded, instead of loading it for every job.

What runs is ``jobs.worker.main`` in a process of its own, with its own session, log, environment and locks, as in the
app. How the app starts it is tested in tests/jobs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback

from semiprune_core.jobs import job as jobs
from semiprune_core.jobs import launch
from semiprune_core.jobs.context import JobContext
from semiprune_core.jobs.job import Job

PRELOADED = ("torchvision", *(f"semiprune_core.{room}.job" for room in ("training", "dynamics", "search", "finish")))
LONGEST = 1 << 20

start_cold = launch.start


class Template:
    """The process that workers are forked from; started when the first one is wanted."""

    def __init__(self) -> None:
        self._orders, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._moment: int | None = None

    def kill_next_at(self, moment: int) -> None:
        """Let the next worker end by ``kill -9`` when its job has said that ``moment`` units are done."""
        self._moment = moment

    def start(self, job: Job, word: str, lock_handles: tuple[int, ...]) -> int:
        """In the place of ``launch.start``."""
        if job.nproc > 1:
            return start_cold(job, word, lock_handles)
        if self._process is None:
            end = self._theirs.fileno()
            self._process = subprocess.Popen([sys.executable, "-m", __name__, str(end)], pass_fds=[end])
        variables = dict(launch.environment(word, job.folder, lock_handles))
        order = {"folder": os.fspath(job.folder), "variables": variables, "killed_at": self._moment}
        self._moment = None
        with open(job.folder / jobs.LOG, "ab") as log:
            socket.send_fds(self._orders, [json.dumps(order).encode()], [log.fileno(), *lock_handles])
            return int(self._orders.recv(LONGEST))

    def close(self) -> None:
        """Without anybody who gives orders it ends."""
        self._orders.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait()


def serve(orders: socket.socket) -> None:
    """Fork a worker for each order, until nobody is left to give one."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        message, handles, _, _ = socket.recv_fds(orders, LONGEST, 64)
        if not message:
            return
        if (pid := os.fork()) == 0:
            orders.close()
            os._exit(_work(json.loads(message), handles))
        orders.send(str(pid).encode())
        for handle in handles:
            os.close(handle)


def _work(order: dict, handles: list[int]) -> int:
    from semiprune_core.jobs import worker

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    log, *locks = handles
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(order["variables"], **{launch.LOCKS_VARIABLE: ",".join(map(str, locks))})
    if order["killed_at"] is not None:
        _die_at(order["killed_at"])
    try:
        return worker.main([order["folder"]])
    except BaseException:  # noqa: BLE001 - this is where a process ends
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _die_at(moment: int) -> None:
    report = JobContext.report

    def report_and_die(context: JobContext, done: int, total: int, /, **facts: object) -> None:
        report(context, done, total, **facts)
        if done >= moment:
            os.kill(os.getpid(), signal.SIGKILL)

    JobContext.report = report_and_die  # type: ignore[method-assign]


if __name__ == "__main__":
    import importlib

    for module in PRELOADED:
        importlib.import_module(module)
    serve(socket.socket(fileno=int(sys.argv[1])))
