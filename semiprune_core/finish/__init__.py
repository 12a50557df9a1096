"""From the last label to coresets, a map and a report in one run: what it is given, how it is queued, what it made."""

from semiprune_core.finish.submit import (
    KIND,
    STAGES,
    FinishSettings,
    finish_runs,
    go_on_with_features,
    submit_finish,
    why_not,
)

__all__ = [
    "KIND",
    "STAGES",
    "FinishSettings",
    "finish_runs",
    "go_on_with_features",
    "submit_finish",
    "why_not",
]
