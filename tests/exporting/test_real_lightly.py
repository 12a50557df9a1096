"""The real LightlyStudio imports our CSV by the script in the export's own README: 0 labels wrong."""

import json
import os
import re
import subprocess
import sys

import pytest

from semiprune_core.exporting import export_coreset
from tests.exporting.test_real_tables import odd, truth  # noqa: F401 - fixtures
from tests.tools import needs

TELL = """
import json
rows = []
for sample in dataset:
    for annotation in sample.annotations:
        rows.append([sample.file_path_abs, annotation.class_name])
print(json.dumps(rows))
"""


@pytest.mark.slow
def test_the_script_of_the_readme_imports_the_coreset(odd, truth, tmp_path):  # noqa: F811
    needs("lightly_studio")
    project, run = odd
    export = export_coreset(project, run, "lightly")
    (script,) = re.findall(r"^```python\n(.*?)^```", export.files["lightly-readme"].read_text("utf-8"), re.M | re.S)
    assert script.count("ls.start_gui()\n") == 1
    (tmp_path / "import_coreset.py").write_text(script.replace("ls.start_gui()\n", TELL))
    own = {"HOME": str(tmp_path), "LIGHTLY_STUDIO_DO_NOT_TRACK": "1"}
    done = subprocess.run(
        [sys.executable, "import_coreset.py", export.files["lightly"]],
        env={**os.environ, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    pool = project.pool()
    root = pool.segments[0].artifact.facts["root"]
    assert {(os.path.relpath(path, root), name) for path, name in rows} == set(truth.values()) and len(rows) == 24
