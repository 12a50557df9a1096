"""Training runs: what they learn from, starting, listing and deleting them, their curves, their job.

Nothing here loads torch but the job itself, in a process of its own.
"""

from semiprune_core.results.pseudo import FINETUNED, FROZEN, SCRATCH
from semiprune_core.training.curves import CHECKED, DRAWN, Curves, Drawn, curves, run_curves
from semiprune_core.training.data import (
    HASHED_BYTES,
    PoolLabels,
    TrainingData,
    check_pool,
    labels_on_pool,
    reference_on,
    training_data,
)
from semiprune_core.training.runs import (
    Run,
    class_names_of,
    delete_run,
    list_runs,
    resume,
    side_by_side,
    start_training,
    trained_seconds,
)
from semiprune_core.training.settings import (
    ARTIFACT,
    AUTO,
    BUDGET,
    CUSTOM,
    KIND,
    STARTS,
    TRIAL,
    TrainSettings,
    title_of,
)
from semiprune_core.training.snapshots import (
    SNAPSHOTS,
    LabelChange,
    changes_since,
    keep_snapshot,
    labels_are,
    read_snapshot,
    snapshot_bytes,
    snapshot_path,
)

__all__ = [
    "ARTIFACT",
    "AUTO",
    "BUDGET",
    "FINETUNED",
    "FROZEN",
    "SCRATCH",
    "STARTS",
    "CHECKED",
    "CUSTOM",
    "Curves",
    "DRAWN",
    "Drawn",
    "HASHED_BYTES",
    "KIND",
    "LabelChange",
    "PoolLabels",
    "Run",
    "SNAPSHOTS",
    "TRIAL",
    "TrainSettings",
    "TrainingData",
    "changes_since",
    "check_pool",
    "class_names_of",
    "curves",
    "delete_run",
    "keep_snapshot",
    "labels_are",
    "labels_on_pool",
    "list_runs",
    "read_snapshot",
    "reference_on",
    "resume",
    "run_curves",
    "side_by_side",
    "snapshot_bytes",
    "snapshot_path",
    "start_training",
    "title_of",
    "trained_seconds",
    "training_data",
]
