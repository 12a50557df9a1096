"""The baselines' own work: scores from features, deep clustering, self-supervised encoders, score extrapolation.

Each file holds one idea of one paper. ``evidence`` holds the registry of what methods look at, ``providers`` fills it;
both import lightly, and torch only inside the functions that need it.
"""

from semiprune_core.baselines import providers  # they register themselves
from semiprune_core.baselines.evidence import (
    PROVIDERS,
    EvidenceRequest,
    evidence_at_hand,
    evidence_for,
    stored_evidence,
)

__all__ = ["PROVIDERS", "EvidenceRequest", "evidence_at_hand", "evidence_for", "stored_evidence", "providers"]
