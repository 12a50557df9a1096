"""A finished SSL run as others read it."""

import pytest

from semiprune_core.project.artifacts import Artifact
from semiprune_core.results import PseudoRun


@pytest.mark.parametrize(
    "settings, facts, start, encoder",
    [
        ({"algorithm": "fixmatch"}, {}, "scratch", None),  # as older versions wrote it
        ({"start": "frozen", "encoder": "efficientnet_lite0"}, {}, "frozen", "efficientnet_lite0"),
        ({"start": "finetuned", "encoder": "timm:x"}, {}, "finetuned", "timm:x"),
        ({"start": "auto", "encoder": "timm:x"}, {"start": "scratch"}, "scratch", None),
        ({"start": "auto", "encoder": "timm:x"}, {"start": "frozen"}, "frozen", "timm:x"),
    ],
)
def test_a_run_says_where_its_answers_began(tmp_path, settings, facts, start, encoder):
    run = PseudoRun(Artifact(tmp_path, {"settings": settings, "facts": facts}))
    assert (run.start, run.encoder) == (start, encoder)
