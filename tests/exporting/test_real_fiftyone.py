"""The real FiftyOne opens both ways of handing images over: 0 labels wrong. As a data set where it has its mongod, else
by the importer that makes data sets of this format."""

import json
import os
import subprocess
import sys

import pytest

from semiprune_core.exporting import ExportOptions, export_coreset
from tests.exporting.test_real_tables import odd, truth  # noqa: F401 - fixtures
from tests.tools import needs

READ = """
import json, os, sys
from fiftyone.core.service import DatabaseService, ServiceExecutableNotFound
from fiftyone.types import FiftyOneImageClassificationDataset
try:
    DatabaseService.find_mongod()
except ServiceExecutableNotFound:  # its package downloads one when it is built, where the network lets it
    importer = FiftyOneImageClassificationDataset().get_dataset_importer_cls()(sys.argv[1])
    with importer:
        samples = [(path, label) for path, _, label in importer]
    how = "importer"
else:
    import fiftyone
    kind = fiftyone.types.FiftyOneImageClassificationDataset
    dataset = fiftyone.Dataset.from_dir(dataset_dir=sys.argv[1], dataset_type=kind)
    samples = [(sample.filepath, sample.ground_truth) for sample in dataset]
    how = "dataset"
rows = [[label["image_id"], label.label, label["label_source"], label.confidence, os.path.isfile(path)]
        for path, label in samples]
print(json.dumps([how, rows]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["copy", "reference"])
def test_fiftyone_opens_the_export(way, odd, truth, tmp_path):  # noqa: F811
    needs("fiftyone")
    project, run = odd
    folder = export_coreset(project, run, "fiftyone", ExportOptions(images=way)).files["folder"]
    own = {
        "FIFTYONE_DATABASE_DIR": str(tmp_path / "db"),
        "FIFTYONE_CONFIG_PATH": str(tmp_path / "config.json"),
        "FIFTYONE_DEFAULT_DATASET_DIR": str(tmp_path / "data"),
        "FIFTYONE_DO_NOT_TRACK": "true",
        "FIFTYONE_SHOW_PROGRESS_BARS": "false",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", READ, folder], env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    how, rows = json.loads(done.stdout.splitlines()[-1])
    assert how in ("dataset", "importer")
    assert {image: label for image, label, *_ in rows} == {image: label for image, (_, label) in truth.items()}
    assert all(0 <= confidence <= 1 and there for *_, confidence, there in rows)
    assert {source for _, _, source, *_ in rows} == {"human", "pseudo"}
