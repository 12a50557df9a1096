"""Which pools are the paper's data sets, and the numbers beside them."""

import numpy as np
import pytest

from semiprune_core.evaluation import paper as paper_results
from semiprune_core.evaluation.paper import CIFAR10, data_set_of
from semiprune_core.importing.sources.base import SourceSpec
from tests.support.trial_tables import TITLES


class Segment:
    def __init__(self, source):
        self.settings = {"source": source.to_json()}


class FakePool:
    def __init__(self, class_names, n):
        self.class_names, self.n = class_names, n

    def __len__(self):
        return self.n


class FakeProject:
    """Only what is asked of a project here: its title, its pool and where that came from."""

    def __init__(self, *sources, classes=tuple("ab"), n=50_000, title="Mine"):
        self.title, self._sources, self._pool = title, sources, FakePool(classes, n)

    def artifacts(self, kind):
        return [Segment(source) for source in self._sources]

    def pool(self):
        return self._pool


def torchvision(name, *variants):
    return SourceSpec("torchvision", name, {}, variants)


def paper_numbers(project, titles, *, preset="quick", truth="reference", **options):
    return paper_results.paper_numbers(project, titles, preset=preset, truth=truth, **options)


HUNDRED = tuple(f"c{number}" for number in range(100))


@pytest.mark.parametrize(
    "project, name",
    [
        (FakeProject(torchvision("CIFAR10")), "cifar10"),
        (FakeProject(torchvision("cifar-100")), "cifar100"),
        (FakeProject(torchvision("CIFAR100", {"name": "corrupt", "share": 0.3, "severity": "paper"})), "cifar100-c"),
        (FakeProject(torchvision("CIFAR100", {"name": "corrupt", "share": 0.3, "severity": "mild"})), None),
        (FakeProject(torchvision("CIFAR100", {"name": "corrupt", "share": 0.5, "severity": "paper"})), None),
        (FakeProject(torchvision("CIFAR100", {"name": "longtail", "factor": 0.01})), "cifar100-lt-0.01"),
        (FakeProject(torchvision("CIFAR100", {"name": "longtail"})), "cifar100-lt-0.1"),
        (FakeProject(torchvision("CIFAR100", {"name": "longtail"}, {"name": "corrupt"})), None),
        (
            FakeProject(torchvision("CIFAR10", {"name": "corrupt", "severity": "paper"})),
            None,
        ),  # the paper has no such table
        (FakeProject(torchvision("TinyImageNet")), None),
        (FakeProject(torchvision("TinyImageNet", {"name": "corrupt", "severity": "paper"})), "tiny-imagenet-c"),
        (FakeProject(torchvision("ImageNet")), "imagenet1k"),
        (FakeProject(torchvision("FashionMNIST")), None),
        (FakeProject(SourceSpec("npz", "/data/some.npz"), classes=tuple(reversed(CIFAR10))), "cifar10"),
        (FakeProject(SourceSpec("folder", "/data/cifar100"), classes=HUNDRED), "cifar100"),
        (FakeProject(SourceSpec("folder", "/data/pictures"), classes=HUNDRED, title="My CIFAR-100 try"), "cifar100"),
        (FakeProject(SourceSpec("folder", "/data/cifar100"), classes=HUNDRED[:20]), None),
        (FakeProject(SourceSpec("folder", "/data/pictures"), classes=HUNDRED), None),
        (FakeProject(torchvision("CIFAR10"), SourceSpec("folder", "/more")), None),
        (FakeProject(), None),
    ],
)
def test_a_pool_is_recognised_by_source_name_and_classes(project, name):
    assert data_set_of(project) == name


def test_numbers_are_those_of_the_methods_that_ran():
    numbers = paper_numbers(FakeProject(torchvision("CIFAR10")), TITLES)
    assert numbers.full == 95.3 and numbers.title == "CIFAR-10"
    assert numbers.by_cell["semi_aum_cutoff", 0.9] == 87.2 and numbers.by_cell["random", 0.9] == 83.7
    assert {method for method, _ in numbers.by_cell} == {"random", "semi_aum_cutoff", "semi_dual_beta"}


def test_a_method_is_found_by_its_title_too():
    numbers = paper_numbers(FakeProject(torchvision("CIFAR10")), {"my_elfs": "ELFS (DINO)"})
    assert numbers.by_cell["my_elfs", 0.3] == 95.3
    numbers = paper_numbers(FakeProject(torchvision("CIFAR10")), {"extrapolation_knn": "Score extrapolation (kNN)"})
    assert numbers.by_cell["extrapolation_knn", 0.9] == 81.5
    assert paper_numbers(FakeProject(torchvision("CIFAR10")), {"own": "My own idea"}) is None


def test_the_ablation_over_scores_stands_beside_the_coresets():
    numbers = paper_numbers(FakeProject(torchvision("CIFAR100")), {"semi_el2n": "Semi-EL2N", "random": "Random"})
    assert numbers.by_cell["semi_el2n", 0.3] == 77.5 and numbers.by_cell["random", 0.3] == 75.2


def test_the_same_annotation_budget_has_its_own_table():
    project = FakeProject(torchvision("Caltech101"))
    assert paper_numbers(project, TITLES, same_annotation_budget=True).by_cell["semi_aum_cutoff", 0.8] == 50.46
    assert paper_numbers(project, TITLES).by_cell["semi_aum_cutoff", 0.8] == 53.1
    assert paper_numbers(FakeProject(torchvision("CIFAR10")), TITLES, same_annotation_budget=True) is None


def test_a_part_of_a_data_set_is_said_to_be_one():
    part = FakeProject(SourceSpec("npz", "x.npz"), classes=CIFAR10, n=12_000)
    assert "has 50,000 images, this one 12,000" in paper_numbers(part, TITLES).note
    assert "this one" not in paper_numbers(FakeProject(torchvision("CIFAR10")), TITLES).note


@pytest.mark.parametrize(
    "source, preset, words",
    [
        (torchvision("CIFAR10"), "paper:cifar10", "with the preset paper:cifar10 and true labels."),
        (torchvision("CIFAR100", {"name": "longtail"}), "paper:cifar100", "preset paper:cifar100 and true labels."),
        (torchvision("ImageNet"), "paper:imagenet1k", "preset paper:imagenet1k and true labels."),
        (
            torchvision("CIFAR10"),
            "quick",
            "Coresets were trained here with the preset quick, not with paper:cifar10: compare the order, not the "
            "numbers.",
        ),
        (torchvision("CIFAR10"), "paper:cifar100", "with the preset paper:cifar100, not with paper:cifar10: compare"),
    ],
)
def test_numbers_compare_only_where_coresets_were_trained_on_as_in_the_paper(source, preset, words):
    note = paper_numbers(FakeProject(source, n=2_000_000), TITLES, preset=preset).note
    assert words in note
    assert ("compare the order, not the numbers" in note) == ("not with" in words)


def test_other_labels_and_other_lengths_are_named_too():
    whole = FakeProject(torchvision("CIFAR10"))
    note = paper_numbers(whole, TITLES, preset="paper:cifar10", truth="pseudo").note
    assert note.endswith(
        "Coresets had pseudo-labels here, true labels in the paper: compare the order, not the numbers."
    )
    note = paper_numbers(whole, TITLES, preset="paper:cifar10", epochs=5).note
    assert "here for 5 epochs, not for the 200 of paper:cifar10: compare the order" in note
    assert "compare the order" not in paper_numbers(whole, TITLES, preset="paper:cifar10", epochs=200).note
    both = paper_numbers(FakeProject(torchvision("CIFAR10"), n=12_000), TITLES, truth="pseudo").note
    assert "this one 12,000; coresets were trained here with the preset quick" in both and "pseudo-labels" in both
    assert len(both) < 400  # as much as the page shows


def test_the_numbers_are_whole():
    rows = paper_results._rows()
    cells = [(row["dataset"], row["table"], row["method"], row["pruning_ratio"]) for row in rows]
    assert len(cells) == len(set(cells)) == 512
    values = np.array([float(row["test_accuracy_percent"]) for row in rows])
    assert values.min() > 2 and values.max() < 96
    assert all(paper_results.title_of(row["dataset"]) for row in rows)
