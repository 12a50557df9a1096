"""The job kinds ``export`` and ``verify``: coresets into files, and the proof of one export."""

from __future__ import annotations

from typing import Any

from semiprune_core.exporting.base import ExportOptions
from semiprune_core.exporting.content import open_content
from semiprune_core.exporting.run import ExportSettings, VerifySettings, export_coreset, open_named
from semiprune_core.exporting.verify import first_difference, verify
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.results import open_coreset


@JOB_KINDS.register("export", title="Export", device="io")
def run_export(context: JobContext) -> dict[str, Any]:
    settings = ExportSettings.from_json(context.settings)
    options = ExportOptions.from_json(settings.options)
    made = []
    for coreset in settings.coresets:
        chosen = open_coreset(context.project, coreset)
        context.check_pin(coreset, chosen.artifact)
        content = open_content(context.project, chosen)
        for name in settings.formats:
            export = export_coreset(context.project, chosen, name, options, content=content, progress=context)
            context.log.info("%s: %d bytes", export.path.name, export.n_bytes)
            made.append(export.path.name)
    return {"exports": made}


@JOB_KINDS.register("verify", title="Verify", device="io")
def run_verify(context: JobContext) -> dict[str, Any]:
    """The result names the first thing that differs."""
    export = open_named(context.project, VerifySettings.from_json(context.settings).export)
    checks = verify(export.path, context)
    return {"export": export.id, "checked": len(checks), "difference": first_difference(checks)}
