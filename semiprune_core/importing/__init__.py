"""Import: any source becomes a segment of the pool. Decoding runs in worker processes, writing in one."""

from semiprune_core.importing.begin import begin_import, begin_project
from semiprune_core.importing.follow_up import features_are_on, queue_features
from semiprune_core.importing.run import (
    ImportSettings,
    can_repeat,
    import_source,
    remove_upload,
    suggest_pool_settings,
    usual_fit,
)

__all__ = [
    "ImportSettings",
    "begin_import",
    "begin_project",
    "can_repeat",
    "features_are_on",
    "import_source",
    "queue_features",
    "remove_upload",
    "suggest_pool_settings",
    "usual_fit",
]
