"""The job kind ``verify``: the proof of one export, in the background."""

from __future__ import annotations

from typing import Any

from semiprune_core.exporting.run import VerifySettings, open_named
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.verify import first_difference, verify


@JOB_KINDS.register("verify", title="Verify", device="io")
def run(context: JobContext) -> dict[str, Any]:
    """Prove one export; the result names the first thing that differs."""
    export = open_named(context.project, VerifySettings.from_json(context.settings).export)
    found = verify(export.path, context)
    return {"export": export.id, "checked": len(found), "difference": first_difference(found)}
