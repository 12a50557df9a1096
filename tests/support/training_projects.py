"""Projects with a small pool and some labels, for tests of jobs, pages and commands around training."""

import numpy as np

from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import import_csv, take_reference
from semiprune_core.progress import Collected
from semiprune_core.project.pool import show_id
from semiprune_core.training import SCRATCH, TrainSettings
from tests.support.pools import NAMES, make_pool, ssl_settings


def small_project(workspace, folder, *, n=60, fraction=0.5, reference=True, title="Bars"):
    """A project of ``n`` images in three classes; the drawn fraction is labeled by its reference labels."""
    images, truth = make_pool(n=n, size=28)
    path = folder / f"{title}.npz"
    np.savez(path, images=images, labels=np.array(NAMES)[truth])
    project = workspace.create(title)
    import_source(project, ImportSettings(source=SourceSpec("npz", str(path)).to_json(), n_workers=1), Collected())
    if reference:
        label_drawn(project, fraction)
    return project


def label_drawn(project, fraction=0.5):
    """Draw a fraction of the pool and label it by its reference labels."""
    draw(project, fraction)
    take_reference(open_store(project), project.pool())
    return project


def draw(project, fraction):
    pool = project.pool()
    return open_store(project).drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=fraction, annotator="ann"
    )


def label(project, labels, *, annotator="ann"):
    """Label images of the pool by position: {position: class name}."""
    pool = project.pool()
    rows = [f"{show_id(pool.ids[position])},{name}" for position, name in labels.items()]
    data = "\n".join(["image_id,label", *rows]).encode()
    return import_csv(open_store(project), pool, data, annotator=annotator, create_missing_classes=True, replace=True)


def short_run(**changes):
    """Settings of a run of a few steps."""
    seed = changes.pop("seed", 0)
    return TrainSettings(start=SCRATCH, ssl=ssl_settings(**changes).to_json(), preset="quick", seed=seed)


def unlabeled(project):
    """Positions of the images that nobody labeled."""
    pool = project.pool()
    labels, _ = open_store(project).snapshot().on_pool(pool.ids, pool.duplicate_of)
    return np.flatnonzero(labels < 0).tolist()
