"""The demo: the whole pipeline on the bundled pool in one call, and the finished demo project."""

from semiprune_core.demo.run import (
    ANNOTATOR,
    SHORT_EVALUATION,
    STAGES,
    Begin,
    DemoResult,
    DemoSettings,
    Stage,
    StageDone,
    Walk,
    claim_folder,
    run_demo,
)

__all__ = [
    "ANNOTATOR",
    "Begin",
    "DemoResult",
    "DemoSettings",
    "SHORT_EVALUATION",
    "STAGES",
    "Stage",
    "StageDone",
    "Walk",
    "claim_folder",
    "run_demo",
]
