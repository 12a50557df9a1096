"""The job kind ``export``."""

from __future__ import annotations

from typing import Any

from semiprune_core.exporting.base import ExportOptions
from semiprune_core.exporting.content import open_content
from semiprune_core.exporting.run import ExportSettings, export_coreset
from semiprune_core.jobs import JOB_KINDS, JobContext
from semiprune_core.results import open_coreset


@JOB_KINDS.register("export", title="Export", device="io")
def run(context: JobContext) -> dict[str, Any]:
    settings = ExportSettings.from_json(context.settings)
    options = ExportOptions.from_json(settings.options)
    made = []
    for coreset in settings.coresets:
        chosen = open_coreset(context.project, coreset)
        content = open_content(context.project, chosen)
        for name in settings.formats:
            export = export_coreset(context.project, chosen, name, options, content=content, progress=context)
            context.log.info("%s: %d bytes", export.path.name, export.n_bytes)
            made.append(export.path.name)
    return {"exports": made}
