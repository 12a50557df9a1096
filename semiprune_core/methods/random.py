"""Random, the baseline of every table."""

from semiprune_core.methods.base import METHODS, Method

RANDOM = METHODS.register(
    "random",
    title="Random",
    explain="Chance alone; what every other method has to beat.",
    paper="SemiPrune",
)(Method("random", labels_from="none", evidence="none"))
