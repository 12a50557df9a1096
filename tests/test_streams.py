"""Random numbers: streams of different seeds, purposes or numbers have nothing in common, and nobody adds to a seed."""

import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import semiprune_core
from semiprune_core import streams
from semiprune_core.evaluation.studies import nested_labels, nested_parts
from semiprune_core.learning import ssl_run, supervised_run
from semiprune_core.learning.frozen import ssl_head
from semiprune_core.learning.frozen.fit import fit_frozen
from semiprune_core.learning.frozen.settings import FrozenSettings
from semiprune_core.learning.settings import SSLSettings, SupervisedSettings
from semiprune_core.methods import select_coreset
from semiprune_core.progress import Collected
from semiprune_core.records import Evidence
from semiprune_core.streams import Purpose
from semiprune_core.trials.run import train_trial
from tests.support.pools import make_pool

CORE = Path(semiprune_core.__file__).parent
SSL = SSLSettings(net="compact", steps_per_epoch=1, epochs=1, batch_size=8, unlabeled_ratio=1, cross_fit=3)
ONE_EPOCH = SupervisedSettings(net="compact", epochs=1, batch_size=32)


def test_the_rule_is_stable():
    assert streams.rng(0, Purpose.CORESET).integers(1 << 32, size=3).tolist() == [1105121465, 3396683340, 941791842]
    assert streams.derived(7, Purpose.TRIAL_RUN, 2) == 1372278240932279787


def test_no_two_purposes_seeds_or_numbers_share_a_stream():
    keys = [*product(range(4), Purpose, [(), (0,), (1,), (0, 1), (10,), (1, 0)])]
    drawn = {streams.rng(seed, purpose, *numbers).integers(1 << 63) for seed, purpose, numbers in keys}
    derived = {streams.derived(seed, purpose, *numbers) for seed, purpose, numbers in keys}
    assert len(drawn) == len(derived) == len(keys)
    assert streams.derived(0, Purpose.MAP, bits=32) < 1 << 32


def runs_of(seed, monkeypatch):
    """First weights, views and order of every net of a cross-fitted run."""
    begun = []

    class Watched(ssl_run.SSLRun):
        def train(self):
            weights = self.trainer.net.head.weight.detach().flatten().clone()
            views = torch.rand(8, generator=ssl_run.sampling.torch_rng(self.seed, Purpose.VIEWS, 0))
            order = [ssl_run.sampling.stream(30, 0, 30, seed=self.seed, purpose=purpose) for purpose in IN_ORDER]
            begun.append((weights.tolist(), views.tolist(), *(line.tolist() for line in order)))
            return super().train()

    monkeypatch.setattr(ssl_run, "SSLRun", Watched)
    images, truth = make_pool()
    labels = np.where(np.arange(len(truth)) < 30, truth, -1)
    ssl_run.train_ssl(images, labels, class_names="abc", settings=SSL, seed=seed, progress=Collected())
    return begun


IN_ORDER = (Purpose.LABELED, Purpose.POOL)


def test_cross_fit_runs_of_neighbouring_seeds_share_no_weights_views_or_order(monkeypatch):
    nets = [net for seed in (0, 1) for net in runs_of(seed, monkeypatch)]
    assert len(nets) == 6
    for facts in zip(*nets, strict=True):
        assert len({str(fact) for fact in facts}) == 6


def test_scoring_and_trial_nets_of_equal_seed_start_differently(monkeypatch):
    seeds = []
    given = supervised_run.SupervisedRun.__init__

    def watched(self, *args, **named):
        seeds.append(named["seed"])
        given(self, *args, **named)

    monkeypatch.setattr(supervised_run.SupervisedRun, "__init__", watched)
    images, truth = make_pool()
    train_trial(images, truth, images[:9], truth[:9], n_classes=3, settings=ONE_EPOCH, seed=0, progress=Collected())
    assert seeds == [streams.derived(0, Purpose.TRIAL_RUN)]
    assert purposes_of("train_supervised") == {
        "baselines/dynamics.py": "BASELINE_RUN",
        "dynamics/job.py": "SCORING_RUN",
        "evaluation/study_job.py": "SCORING_RUN",
        "library/line.py": "SCORING_RUN",
        "trials/run.py": "TRIAL_RUN",
    }


def test_heads_of_neighbouring_seeds_share_no_draws(monkeypatch):
    drawn = []

    def watched(seed, purpose, number):
        drawn.append((seed, purpose, number))
        return torch.Generator().manual_seed(0)

    monkeypatch.setattr(ssl_head, "torch_rng", watched)
    rows = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    labels = np.where(np.arange(40) < 24, np.arange(40) % 2, -1)
    settings = FrozenSettings(head="ssl", n_steps=1, n_folds=2)
    for seed in (0, 1):
        fit_frozen(rows, labels, settings=settings, seed=seed)
    assert drawn == [(seed, Purpose.HEAD, number) for seed in (0, 1) for number in (1, 2, 0)]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_random_coreset_at_ninety_percent_is_not_the_labeled_tenth(seed):
    (given,) = nested_labels(np.zeros(600, int), np.arange(600), (0.1,), seed)
    (part,) = nested_parts(np.arange(600), (0.1,), seed)
    coreset = select_coreset(Evidence(600), "random", pruning_ratio=0.9, seed=seed).indices
    tenths = [set(coreset.tolist()), set(np.flatnonzero(given >= 0).tolist()), set(part.tolist())]
    assert [len(tenth) for tenth in tenths] == [60, 60, 60]
    assert max(len(tenths[a] & tenths[b]) for a, b in ((0, 1), (0, 2), (1, 2))) < 20


def test_a_coreset_of_an_older_version_can_be_chosen_once_more():
    evidence = Evidence(100)
    now, before = (select_coreset(evidence, "random", pruning_ratio=0.9, seed=0, rule=rule).indices for rule in (2, 1))
    assert sorted(before) == sorted(np.random.default_rng(0).permutation(100)[:10])
    assert set(before) != set(now) == set(select_coreset(evidence, "random", pruning_ratio=0.9, seed=0).indices)


# --- nobody draws any other way ------------------------------------------------------------------------------------


def purposes_of(function):
    """By module: the purpose from which the seed of its calls of ``function`` is derived."""
    purposes = {}
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if is_call(node, function):
                (seed,) = (word.value for word in node.keywords if word.arg == "seed")
                assert is_call(seed, "derived"), path
                purposes[path.relative_to(CORE).as_posix()] = seed.args[1].attr
    return purposes


def is_seed(node):
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name == "seed" or name.endswith("_seed")


def faults(source):
    """Lines that do sums with a seed (but for a range of seeds), or make a generator of one on their own."""
    tree = ast.parse(source)
    ranges = {id(part) for node in ast.walk(tree) if is_call(node, "range") for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and any(map(is_seed, (node.left, node.right))) and id(node) not in ranges:
            yield node.lineno
        constant = isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant)
        if any(is_call(node, name) for name in ("default_rng", "SeedSequence", "manual_seed")) and not constant:
            yield node.lineno


def is_call(node, name):
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", "")) == name


HOMES = {CORE / "streams.py", CORE / "learning" / "sampling.py"}
STORED = {CORE / "trials" / "apart.py", CORE / "importing" / "corruptions.py"}
"""They repeat what older versions drew, to know it again, or what is kept with an image."""


def test_nobody_adds_to_a_seed_or_seeds_a_generator_on_his_own():
    found = [
        f"{path.relative_to(CORE)}:{line}"
        for path in sorted(CORE.rglob("*.py"))
        if path not in HOMES | STORED
        for line in faults(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line, is_fault",
    [
        ("run(seed=seed + number)", True),
        ("run(self.seed * 2)", True),
        ("rng = np.random.default_rng(seed)", True),
        ("torch.manual_seed(weights_seed)", True),
        ("range(seed, seed + 3)", False),
        ("np.random.default_rng(0)", False),
        ("streams.rng(seed, Purpose.MAP)", False),
    ],
)
def test_the_search_for_such_lines_finds_them(line, is_fault):
    assert bool([*faults(line)]) == is_fault
