"""Import: any source becomes a segment of the pool. Decoding runs in worker processes, writing in one."""

from semiprune_core.importing.run import (
    ImportSettings,
    can_repeat,
    import_source,
    remove_upload,
    suggest_pool_settings,
)

__all__ = ["ImportSettings", "can_repeat", "import_source", "remove_upload", "suggest_pool_settings"]
