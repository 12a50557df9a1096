"""Exports: a coreset on its way out, in the format of whoever takes it. A new format is one new file in ``formats``."""

from semiprune_core.exporting import formats  # they register themselves
from semiprune_core.exporting.base import FORMATS, Export, ExportOptions, Place, open_export, options_for
from semiprune_core.exporting.content import COLUMNS, Content, export_ids, open_content, safe_texts
from semiprune_core.exporting.run import (
    Exported,
    ExportSettings,
    estimate_bytes,
    export_coreset,
    export_csv,
    has_exports,
    last_proof,
    list_exports,
    preview,
    submit_export,
    submit_verify,
)

__all__ = [
    "COLUMNS",
    "FORMATS",
    "Content",
    "Export",
    "Exported",
    "ExportOptions",
    "ExportSettings",
    "Place",
    "estimate_bytes",
    "export_coreset",
    "export_csv",
    "export_ids",
    "formats",
    "has_exports",
    "last_proof",
    "list_exports",
    "open_content",
    "open_export",
    "options_for",
    "preview",
    "safe_texts",
    "submit_export",
    "submit_verify",
]
