"""``semiprune jobs ...`` without the command line around it."""

from __future__ import annotations

import json

from semiprune_core.jobs import DONE, QUEUED, STOPPED, submit, wait
from semiprune_core.jobs.commands import jobs_list, jobs_log, jobs_resume, jobs_stop


def test_list_stop_resume_and_log(workspace, project):
    job = submit(project, "nothing", {})
    (line,) = jobs_list(workspace, project.name)
    assert (line["id"], line["state"], line["project"]) == (job.id, QUEUED, project.name)
    assert jobs_list(workspace, kind="count") == []
    assert jobs_stop(workspace, job.id)["state"] == STOPPED
    assert jobs_resume(workspace, job.id)["attempt"] == 2
    assert wait(job, 30).state == DONE
    log = jobs_log(workspace, job.id, n_lines=5)
    assert "hello from the job" in log["log"]
    json.dumps([line, log], allow_nan=False)


def test_listing_recognises_the_dead_but_starts_nothing(workspace, project):
    dead = submit(project, "fail", {"how": "kill"})
    wait(dead, 30)
    waiting = submit(project, "nothing", {})
    states = {line["id"]: line["state"] for line in jobs_list(workspace)}
    assert states == {dead.id: "lost", waiting.id: QUEUED}
