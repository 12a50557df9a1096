"""What is out of date, and the job that makes it again in order."""

from semiprune_core.refresh.submit import (
    JOB_KIND,
    KIND,
    STEPS,
    Again,
    RefreshSettings,
    again,
    bring_up_to_date,
    plan,
    request_of,
    running,
    siblings,
)

__all__ = [
    "Again",
    "JOB_KIND",
    "KIND",
    "RefreshSettings",
    "STEPS",
    "again",
    "bring_up_to_date",
    "plan",
    "request_of",
    "running",
    "siblings",
]
