"""kill -9 at random steps and in the middle of checkpoint writes: nothing unreadable, nothing different."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS = 20 if os.environ.get("SEMIPRUNE_FULL") else 6


@pytest.mark.fault
def test_killed_runs_end_bit_identical(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.learning.killed_runs", str(tmp_path), str(KILLS), "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["unreadable"] == 0 and found["same"]
    assert found["killed"]["write"] >= KILLS // 4 and sum(found["killed"].values()) >= KILLS * 3 // 4, found
