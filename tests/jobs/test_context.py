"""What a job writes while it runs: progress lines, speed, log."""

from __future__ import annotations

import json

import numpy as np
import pytest

from semiprune_core import streams
from semiprune_core.jobs import JobContext, context, submit
from semiprune_core.jobs import job as jobs
from semiprune_core.jobs.context import Speed, plain, shorten_log
from semiprune_core.jobs.job import JobStatus


@pytest.fixture
def job(project):
    return submit(project, "count", {"n": 1})


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told otherwise."""

    class Clock:
        seconds = 1000.0

        def monotonic(self):
            return self.seconds

        def time(self):
            return self.seconds

    clock = Clock()
    monkeypatch.setattr(context, "time", clock)
    return clock


def test_lines_are_limited_but_no_fact_and_not_the_last_report_is_lost(job, clock):
    inside = JobContext(job)
    for step in range(1, 101):
        clock.seconds += 0.01
        facts = {"accuracy": 0.5} if step == 7 else {}
        inside.report(step, 100, loss=1 / step, **facts)
    inside.end("done")
    lines = job.progress()
    assert 5 <= len(lines) <= 7
    assert lines[-1]["done"] == 100
    assert [line["accuracy"] for line in lines if "accuracy" in line] == [0.5]
    assert job.status().facts == {"loss": 0.01, "accuracy": 0.5}


def test_a_long_run_writes_ever_fewer_lines(job, clock, monkeypatch):
    monkeypatch.setattr(context, "LINES_PER_PACE", 10)
    monkeypatch.setattr(context, "STATUS_SECONDS", 1e9)
    inside = JobContext(job)
    for step in range(2000):
        clock.seconds += 0.2
        inside.report(step, 2000)
    assert len(job.progress()) < 80
    inside.end("done")


def test_progress_gives_what_is_new_and_leaves_out_a_torn_line(job):
    path = job.folder / "progress.jsonl"
    assert job.progress() == []
    path.write_text('{"done": 1}\n{"done": 2}\n{"by_class": {"a": 1}')
    assert [line["done"] for line in job.progress(after=1)] == [2]
    assert job.progress(after=2) == []
    inside = JobContext(job)
    inside.report(3, 4)
    inside.end("done")
    assert [line["done"] for line in job.progress()] == [1, 2, 3]
    assert job.progress(after=3) == []


@pytest.mark.parametrize("text", ["", "torn", '{"done": 1}\n', '{"done": 1}\n\0\0\0'])
def test_lines_follow_whatever_a_crash_left(job, text):
    (job.folder / "progress.jsonl").write_text(text)
    inside = JobContext(job)
    inside.report(2, 4, phase="a\u2028b\nc")
    inside.end("done")
    assert [line["done"] for line in job.progress()] == ([1, 2] if "done" in text else [2])
    assert job.progress()[-1]["phase"] == "a\u2028b\nc"


def test_values_are_strict_json(job):
    inside = JobContext(job)
    inside.report(np.int64(1), 2, loss=float("nan"), counts=np.arange(3), rate=np.float32(0.5), done=9)
    inside.end("done")
    text = (job.folder / "progress.jsonl").read_text()
    line = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (line["loss"], line["counts"], line["rate"], line["done"]) == (None, [0, 1, 2], 0.5, 1)


def test_plain_goes_into_the_depth():
    assert plain({"a": [np.float64("inf"), (1, {"b": np.bool_(True)})]}) == {"a": [None, [1, {"b": True}]]}


def test_speed_and_time_left_follow_the_recent_past():
    speed = Speed()
    assert speed.read() == (None, None)
    for second in range(100):
        speed.add(second, second * (1 if second < 50 else 3), 600)
    per_second, left = speed.read()
    assert per_second == pytest.approx(3)
    assert left == pytest.approx((600 - 297) / 3)


def test_speed_is_never_negative_and_starts_anew_with_a_new_phase():
    speed = Speed()
    for second, done in enumerate([10, 20, 30, 5]):
        speed.add(second, done, 40)
    assert speed.read() == (None, None)
    speed.add(5, 55, 40)  # more than was announced
    per_second, left = speed.read()
    assert per_second == pytest.approx(25)
    assert left == 0.0


def test_many_reports_in_one_moment_do_not_break_the_speed():
    speed = Speed()
    for done in range(50):
        speed.add(7.0, done, 100)
    assert speed.read() == (None, None)
    speed.add(8.0, 100, 100)
    assert speed.read() == (pytest.approx(100.0), 0.0)


def test_a_status_shows_its_speed_while_it_runs(job, clock):
    inside = JobContext(job)
    inside.begin()
    for step in range(1, 11):
        clock.seconds += 1
        inside.report(step, 30)
    stored = job.stored_status()
    assert (stored.speed, stored.seconds_left) == (pytest.approx(1.0), pytest.approx(20.0))
    inside.end("done")


def test_work_that_only_asks_for_stops_still_gives_signs_of_life(job, clock):
    inside = JobContext(job)
    inside.begin()
    inside.report(1, 2)
    before = (job.folder / "status.json").stat().st_ino
    assert not inside.should_stop()
    assert (job.folder / "status.json").stat().st_ino == before
    clock.seconds += 20
    assert not inside.should_stop()
    assert (job.folder / "status.json").stat().st_ino != before
    inside.end("done")


def test_a_fraction_stays_between_zero_and_one():
    assert JobStatus().fraction == 0
    assert JobStatus(done=5, total=4).fraction == 1


def test_a_log_is_shortened_while_somebody_appends_to_it(job, monkeypatch):
    monkeypatch.setattr(context, "LOG_BYTES", 1000)
    monkeypatch.setattr(context, "LOG_TAIL_BYTES", 300)
    with open(job.folder / "log.txt", "ab", buffering=0) as log:
        for number in range(200):
            log.write(f"line {number:04}\n".encode())
        shorten_log(job.folder)
        log.write(b"line 0200\n")
    assert (job.folder / "log.txt").read_text() == "line 0200\n"
    assert job.log_tail(3) == "line 0198\nline 0199\nline 0200"
    assert job.log_tail(0) == ""


def test_the_tail_of_a_huge_log_begins_at_a_whole_line(job, monkeypatch):
    monkeypatch.setattr(jobs, "TAIL_BYTES", 25)
    (job.folder / "log.txt").write_text("".join(f"line {number:04}\n" for number in range(100)))
    assert job.log_tail(50) == "line 0098\nline 0099"


def test_the_failure_of_another_rank_is_the_cause_that_rank_zero_names(job):
    zero, one = (JobContext(job, launch="word", rank=rank, world_size=2) for rank in range(2))
    zero.begin()
    one.end("failed", "Rank 1 does not like its part.", "BAD_PART")
    assert (job.status().state, job.status().error_code) == ("failed", "BAD_PART")  # if rank 0 dies without a word
    zero.end("stopped", "Stopped on request.")
    assert (job.stored_status().state, job.stored_status().error_code) == ("failed", "BAD_PART")
    later = JobContext(job, launch="later")
    later.end("stopped", "Stopped on request.")
    assert job.stored_status().state == "stopped"


def test_only_rank_zero_writes(job):
    other = JobContext(job, rank=1, world_size=2)
    before = job.stored_status()
    other.begin()
    other.report(1, 2)
    other.end("done")
    assert job.stored_status() == before
    assert job.progress() == []


@pytest.mark.parametrize(
    "left_by, is_dropped", [(None, True), ({"rule": streams.RULE - 1}, True), ({"rule": streams.RULE}, False)]
)
def test_what_another_rule_for_random_numbers_left_is_dropped(job, left_by, is_dropped, caplog):
    inside = JobContext(job)
    for name in ("labels.npz", "trials.jsonl", "round-0/checkpoint.json"):
        (inside.folder / name).parent.mkdir(exist_ok=True)
        (inside.folder / name).write_bytes(b"")
    if left_by is not None:
        (inside.folder / context.STREAMS).write_text(json.dumps(left_by))
    assert inside.drop_older_streams(keep=("labels.npz",)) is is_dropped
    left = {"labels.npz", context.STREAMS} | (set() if is_dropped else {"trials.jsonl", "round-0"})
    assert {path.name for path in inside.folder.iterdir()} == left
    assert ("begins anew" in caplog.text) is is_dropped
    assert inside.drop_older_streams() is False  # once


def test_a_new_job_has_nothing_to_drop(job, caplog):
    assert JobContext(job).drop_older_streams() is False
    assert not caplog.text
