"""Import: any source becomes a segment of the pool. Decoding runs in worker processes, writing in one."""

from semiprune_core.importing.run import ImportSettings, import_source, remove_upload, suggest_pool_settings

__all__ = ["ImportSettings", "import_source", "remove_upload", "suggest_pool_settings"]
