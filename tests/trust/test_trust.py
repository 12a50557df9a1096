"""The trust check: each reason at its threshold, and a red that says what is safer."""

from types import SimpleNamespace

import pytest

from semiprune_core.learning.quality import Bin, wilson
from semiprune_core.trust import SAFER, Stability, judge, seed_twins
from semiprune_core.trust.quality_report import ClassRow, HeldOut


def row(name, n_human=20, verdict=""):
    return ClassRow(name, 0 if verdict == "none" else 100, n_human, 100, 60, 140, None, verdict)


def report(right=95, n=100, rows=None, ece=0.02, per_class=None):
    rows = rows or [row("a"), row("b")]
    names = tuple(one.name for one in rows)
    held = HeldOut(
        wilson(right, n), per_class or (None,) * len(rows), ece, (Bin(0.9, 1, n, 0.95 + ece, 0.95),), "labels."
    )
    return SimpleNamespace(held_out=held, classes=tuple(rows), class_names=names)


def test_good_labels_are_green():
    assert judge(report(), Stability((0.9,), {"aum": 0.95, "dual": 0.9})).level == "green"


@pytest.mark.parametrize("right, level", [(95, "green"), (80, "amber"), (55, "red")])
def test_the_lower_end_of_the_interval_decides(right, level):
    assert judge(report(right)).level == level


def test_red_says_that_random_is_safer_and_why():
    judged = judge(report(40))
    assert judged.verdict.startswith(SAFER) and "40%" in judged.verdict


@pytest.mark.parametrize(
    "rows, level, words",
    [
        ([row("a"), row("b", verdict="none")], "red", "Class b got no pseudo-label"),
        ([row("a"), row("b", n_human=0, verdict="none")], "amber", "Class b has no label, so no image could get it"),
        ([row("a"), row("b", n_human=3)], "amber", "fewer than 4 human labels"),
        ([row("a"), row("b", verdict="too many")], "amber", "too many"),
    ],
)
def test_classes_are_named(rows, level, words):
    judged = judge(report(rows=rows))
    assert judged.level == level
    assert any(words in reason.sentence for reason in judged.reasons)


def test_a_class_that_is_surely_mostly_wrong_is_amber():
    judged = judge(report(per_class=(wilson(2, 20), wilson(19, 20))))
    assert judged.level == "amber" and "Class a is wrong more often" in judged.reasons[0].sentence


def test_a_class_with_most_of_a_few_labels_wrong_is_named_with_its_counts():
    judged = judge(report(per_class=(wilson(1, 6), wilson(19, 20))), Stability((0.9,)))
    assert judged.level == "amber" and "Class a (1 of 6 right) was mostly wrong" in judged.reasons[0].sentence
    assert not any("Every class" in reason.sentence for reason in judged.reasons)


def test_what_nobody_knows_is_grey_and_stands_before_what_is_good():
    judged = judge(report(per_class=(None, wilson(19, 20))))
    assert judged.level == "green"
    grey = [reason for reason in judged.reasons if reason.level == "grey"]
    assert ["Class a has too few held-out labels" in grey[0].sentence, "No other seed" in grey[1].sentence] == [
        True
    ] * 2
    assert [reason.level for reason in judged.reasons] == ["grey", "grey", "green", "green"]
    assert {reason.word for reason in grey} == {"unknown"}


def test_a_class_without_any_label_is_not_said_to_be_unmeasured_too():
    judged = judge(report(rows=[row("a"), row("b", n_human=0, verdict="none")], per_class=(wilson(19, 20), None)))
    assert sum("Class b" in reason.sentence for reason in judged.reasons) == 1


@pytest.mark.parametrize("agreements, level", [([], "green"), ([0.9], "green"), ([0.9, 0.7], "amber"), ([0.5], "red")])
def test_stability_over_runs(agreements, level):
    assert judge(report(), Stability(tuple(agreements))).level == level


@pytest.mark.parametrize("aum, level", [(0.95, "green"), (0.7, "green"), (0.6, "amber")])
def test_scores_that_depend_on_the_seed_are_told(aum, level):
    judged = judge(report(), Stability((0.9,), {"aum": aum, "dual": 0.9, "el2n": 0.1}))
    assert judged.level == level
    assert any(f"AUM {aum:.2f}, DUAL 0.90" in reason.sentence for reason in judged.reasons)


def test_only_a_run_that_differs_in_nothing_but_the_seed_tells_about_seeds():
    def run(seed=0, labels="now", start="scratch", **settings):
        said = {"algorithm": "fixmatch", "seed": seed, **settings}
        artifact = SimpleNamespace(settings=said, inputs={"labels": labels}, manifest={"seed": seed})
        return SimpleNamespace(artifact=artifact, start=start)

    others = [run(), run(seed=1), run(seed=1, labels="fewer"), run(seed=1, algorithm="flexmatch"), run(seed=2)]
    others.append(run(seed=3, start="frozen"))  # Auto took another start
    assert seed_twins(run(), others) == [others[1], others[4]]


def test_bad_calibration_and_no_measure_are_amber():
    assert judge(report(ece=0.2)).level == "amber"
    blind = report()
    blind.held_out = None
    assert judge(blind).level == "amber"
