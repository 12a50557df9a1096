"""ZCore (Griffin et al. 2024): images that cover sampled subspaces of the features, less what lies next to them."""

from semiprune_core.methods.base import METHODS, Method

ZCORE = METHODS.register(
    "zcore",
    title="ZCore",
    explain="Keeps images that cover the features well and are not redundant beside others.",
    score_title="Coverage",
    paper="arXiv:2411.15349",
)(
    Method(
        "top",
        "zcore",
        labels_from="none",
        knobs={"score": "zcore", "higher_is": "harder", "keep": "hardest"},
        higher_is="harder",
        evidence="zcore_scores",
    )
)
