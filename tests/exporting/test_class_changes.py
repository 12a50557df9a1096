"""Random renames, orders, colours, merges and removals: every coreset stays as it is but for the names shown."""

import numpy as np
import pytest

from semiprune_core.coresets import CoresetRequest, build_coreset
from semiprune_core.coresets.score_view import open_view
from semiprune_core.dynamics.scoring import score_runs
from semiprune_core.exporting.content import open_content
from semiprune_core.labeling import open_store
from semiprune_core.project.workspace import Workspace
from semiprune_core.results import PseudoRun, latest_pseudo, latest_scores
from semiprune_core.results.coreset import CoresetRun
from semiprune_core.training import keep_snapshot
from semiprune_core.trust import quality_report
from tests.support.pseudo_runs import fake_pseudo, label_share
from tests.support.scored_projects import add_trajectory, make_pool

METHODS = ("random", "semi_aum_cutoff", "semi_dual_beta")
NAMES_SHOWN = ["label", "pseudo_label"]
N_CLASSES = 8


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Eight classes, half of 160 images labeled, pseudo-labels, scores, and a coreset of each method."""
    monkeypatch.setenv("SEMIPRUNE_ROOTS", str(tmp_path))
    project = make_pool(Workspace.open(tmp_path / "home"), tmp_path, 160, N_CLASSES)
    label_share(project, 0.5)
    keep_snapshot(project, open_store(project).snapshot())
    fake_pseudo(project, wrong=0.3, held_out=0.9)
    score_runs(project, [add_trajectory(project, tmp_path)])
    for method in METHODS:
        build_coreset(project, CoresetRequest(method=method, pruning_ratio=0.6))
    return project


class Clumsy:
    """A person who changes classes at random, names of others and of merged classes among the new ones."""

    def __init__(self, project, rng):
        self.classes, self.rng, self.merged = open_store(project).classes, rng, {}
        self.everything = [*project.pool().class_names, "x", "y", "z"]

    def pick(self, n):
        numbers = [entry.class_id for entry in self.classes.all()]
        return [int(number) for number in self.rng.choice(numbers, n, replace=False)]

    def rename(self):
        free = sorted(set(self.everything) - set(self.classes.names()))
        self.classes.rename(self.pick(1)[0], str(self.rng.choice(free)), annotator="ada")

    def swap(self):
        (first, second), names = self.pick(2), {entry.class_id: entry.name for entry in self.classes.all()}
        for number, name in ((first, "aside"), (second, names[first]), (first, names[second])):
            self.classes.rename(number, name, annotator="ada")

    def reorder(self):
        self.classes.reorder(self.pick(len(self.classes)), annotator="ada")

    def recolour(self):
        self.classes.set_colour(self.pick(1)[0], f"#{self.rng.integers(1 << 24):06x}", annotator="ada")

    def add_and_remove(self):
        free = sorted(set(self.everything) - set(self.classes.names()))
        added = self.classes.add([str(self.rng.choice(free))], annotator="ada").classes[0]
        self.reorder()
        self.classes.remove(added.class_id, annotator="ada")

    def merge(self):
        gone, into = self.pick(2)
        self.classes.merge(gone, into, annotator="ada")
        self.merged = {number: into if to == gone else to for number, to in self.merged.items()} | {gone: into}

    def change(self, n):
        ways = [self.rename, self.swap, self.reorder, self.recolour, self.add_and_remove]
        for way in self.rng.choice(len(ways), n):
            ways[way]()


def coresets(project):
    return [CoresetRun(artifact) for artifact in project.artifacts("coreset")]


def exported(project):
    """Of each coreset: its hash, its images best first, and the table of its export."""
    tables = []
    for run in coresets(project):
        content = open_content(project, run)
        tables.append((run.artifact.hash, run.coreset().indices.tolist(), content.rows(content.all_idx, exact=True)))
    return tables


def measured(project):
    """What is said of the run, without any name."""
    report = quality_report.report(project.pool(), latest_pseudo(project), store=open_store(project))
    right = open_view(project, latest_scores(project)).right
    reference = report.reference
    return report.held_out.accuracy, reference.accuracy, reference.confusion.tolist(), right.tolist()


def check_exports(project, before, clumsy):
    """Hashes, images and numbers as before; a label has the present name of its class, or of the one merged with."""
    names = {entry.class_id: entry.name for entry in clumsy.classes.all()}
    was = PseudoRun(latest_pseudo(project).artifact)
    number = dict(zip(was.recorded_names, was.class_ids, strict=True))
    for (old_hash, old_images, old), (new_hash, new_images, new) in zip(before, exported(project), strict=True):
        assert (new_hash, new_images) == (old_hash, old_images)
        assert new.drop_columns(NAMES_SHOWN).equals(old.drop_columns(NAMES_SHOWN))
        ids = [number[name] for name in old["label"].to_pylist()]
        assert new["label"].to_pylist() == [names[clumsy.merged.get(one, one)] for one in ids]
        for name, shown in zip(old["pseudo_label"].to_pylist(), new["pseudo_label"].to_pylist(), strict=True):
            target = clumsy.merged.get(number[name])
            assert (
                shown == names[number[name]]
                if target is None
                else shown == names[target] or shown not in names.values()
            )


def test_sequences_of_renames_orders_colours_and_removals_change_only_names(project):
    before, numbers = exported(project), measured(project)
    for seed in range(24):
        clumsy = Clumsy(project, np.random.default_rng(seed))
        clumsy.change(6)
        check_exports(project, before, clumsy)
        assert measured(project) == numbers


def test_sequences_with_merges_map_each_label_onto_the_class_it_counts_for(project):
    before, clumsy = exported(project), Clumsy(project, np.random.default_rng(99))
    for _ in range(N_CLASSES - 2):
        clumsy.merge()
        clumsy.change(5)
        check_exports(project, before, clumsy)
