"""Job kinds for the tests. Each counts steps and checkpoints them; what differs is how it ends."""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import Any

from semiprune_core import files
from semiprune_core.errors import InvalidDataError
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.progress import Stopped


def count(context: JobContext, *, honour_stop: bool = True) -> dict[str, Any]:
    """Count to ``n``, a checkpoint each; waits at every step for ``seconds`` so that there is time to interfere.

    Every process that counts leaves its pid in work/runs.txt at its start and end, which is how double runs show.
    """
    n, seconds = int(context.settings["n"]), float(context.settings.get("seconds", 0.0))
    path = context.folder / "count.json"
    done = int(files.read_json(path)["done"]) if path.exists() else 0
    for step in range(done + 1, n + 1):
        if honour_stop and context.should_stop():
            raise Stopped
        files.write_json(path, {"done": step})
        context.report(step, n, square=step * step)
        time.sleep(seconds)
    return {"counted": n, "from": done, "attempt": context.attempt}


@JOB_KINDS.register("count", title="Count", device="cpu")
def run_count(context: JobContext) -> dict[str, Any]:
    """Counts alone: an exclusive file made with O_EXCL proves that nobody else runs the same job."""
    alone = context.folder / f"alone-{context.attempt}"
    os.close(os.open(alone, os.O_CREAT | os.O_EXCL))
    with open(context.folder.parent.parent / "starts.txt", "a") as file:
        file.write(f"{context.job.id} {context.attempt} {time.monotonic()}\n")
    try:
        return count(context)
    finally:
        with open(context.folder.parent.parent / "ends.txt", "a") as file:
            file.write(f"{context.job.id} {context.attempt} {time.monotonic()}\n")


@JOB_KINDS.register("stubborn", title="Does not listen")
def run_stubborn(context: JobContext) -> dict[str, Any]:
    """Looks at the stop request only after it has counted."""
    result = count(context, honour_stop=False)
    context.check_stop()
    return result


@JOB_KINDS.register("fail", title="Fail", device="io")
def run_fail(context: JobContext) -> None:
    context.report(3, 10)
    match context.settings["how"]:
        case "data":
            raise InvalidDataError("Class 7 has no label. Label one image of it.", code="NO_LABELS")
        case "defect":
            context.report([][1], 10)
        case "memory":
            raise MemoryError
        case "full":
            raise OSError(errno.ENOSPC, "No space left on device", os.fspath(context.folder / "model.safetensors"))
        case "exit":
            raise SystemExit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)


@JOB_KINDS.register("nothing", title="Nothing", device="io")
def run_nothing(context: JobContext) -> None:
    context.log.info("hello from the job")


@JOB_KINDS.register("fill_disk", title="Fill the disk", device="io")
def run_fill_disk(context: JobContext) -> None:
    """Fills its file system to the last byte, then goes on as if nothing had happened."""
    context.report(1, 10)
    handle = os.open(context.folder / "filler", os.O_WRONLY | os.O_CREAT)
    size = 1 << 16
    while size:
        try:
            os.write(handle, b"x" * size)
        except OSError as error:
            assert error.errno == errno.ENOSPC
            size //= 2
    if context.settings["raises"]:
        files.write_json(context.folder / "checkpoint.json", {"a": 1})
    while True:
        context.report(2, 10)


@JOB_KINDS.register("lock_folder", title="Lock the folder", device="io")
def run_lock_folder(context: JobContext) -> None:
    """Makes the run folder read-only under its own feet."""
    context.report(1, 10)
    give_up_root_powers()
    context.job.folder.chmod(0o555)
    while True:
        context.report(2, 10)


@JOB_KINDS.register("family", title="Has children", device="io")
def run_family(context: JobContext) -> None:
    """Forks a child that would live for ever, then is killed."""
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    files.write_json(context.folder / "child.json", child)
    os.kill(os.getpid(), signal.SIGKILL)


@JOB_KINDS.register("pool", title="Ends its child", device="io")
def run_pool(context: JobContext) -> dict[str, Any]:
    """Forks a child and ends it the way process pools do."""
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    os.kill(child, signal.SIGTERM)
    return {"ended_by": os.WTERMSIG(os.waitpid(child, 0)[1])}


@JOB_KINDS.register("ranks", title="Several processes")
def run_ranks(context: JobContext) -> dict[str, Any] | None:
    """Adds up the ranks over gloo; ``fails`` names a rank that raises while the others wait for a stop."""
    if "fails" in context.settings:
        if context.settings["fails"] == context.rank:
            raise InvalidDataError(f"Rank {context.rank} does not like its part.", code="BAD_PART")
        while True:
            context.report(1, 2)
            context.check_stop()
            time.sleep(0.01)
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.tensor([float(context.rank + 1)])
    dist.all_reduce(total)
    context.report(1, 1, total=total.item())
    dist.destroy_process_group()
    return {"sum": total.item(), "world_size": context.world_size} if context.rank == 0 else None


def give_up_root_powers() -> None:
    """Root may write anywhere; drop that (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER stays) for this thread."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Data(ctypes.Structure):
        _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]

    header, data = Header(0x20080522, 0), (Data * 2)()
    if libc.capget(ctypes.byref(header), data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    data[0].effective &= ~0b110
    if libc.capset(ctypes.byref(header), data) != 0:
        raise OSError(ctypes.get_errno(), "capset")
