"""Where a project stands, and what each step waits for."""

import pytest

from semiprune_core.steps import BY_KEY, STEPS, first_missing

NOTHING = {step.key: False for step in STEPS}


@pytest.mark.parametrize(
    "step, done, missing",
    [
        ("pool", (), None),
        ("label", (), "pool"),
        ("map", (), "pool"),
        ("map", ("pool",), None),
        ("export", (), "pool"),
        ("export", ("pool",), "label"),
        ("scores", ("pool", "label"), "train"),
        ("scores", ("pool", "train"), None),  # more images were drawn since: what was trained still counts
        ("select", ("pool", "train"), "scores"),
    ],
)
def test_a_step_waits_for_the_earliest_thing_that_is_missing(step, done, missing):
    found = first_missing(BY_KEY[step], NOTHING | dict.fromkeys(done, True))
    assert (found.key if found else None) == missing
