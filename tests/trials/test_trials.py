"""Trials and the book they are written into."""

import json

import pytest

from semiprune_core.errors import InvalidSettingError, WorkspaceError
from semiprune_core.learning.presets import SUPERVISED_PRESETS, supervised_preset
from semiprune_core.records import coreset_size
from semiprune_core.trials import ProbeSettings, Trial, TrialBook
from semiprune_core.trials.kinds import for_full

ONE = Trial(method="random", pruning_ratio=0.5, seed=0)
TWO = Trial(method="semi_aum_cutoff", pruning_ratio=0.5, seed=0, knobs={"cutoff": 0.1})


def test_a_book_gives_back_what_was_written(tmp_path):
    book = TrialBook(tmp_path / "b.jsonl")
    assert len(book) == 0 and ONE not in book
    book.add(ONE, {"n_correct": 3})
    book.add(TWO, {"n_correct": 4, "note": "größer\nals"})
    again = TrialBook(book.path)
    assert list(again) == [(ONE, {"n_correct": 3}), (TWO, {"n_correct": 4, "note": "größer\nals"})]
    assert again[TWO]["n_correct"] == 4 and TWO in again and list(again.results) == [ONE.key, TWO.key]


def test_equal_trials_have_equal_keys():
    a = Trial(method="x", pruning_ratio=0.5, seed=1, knobs={"a": 1, "b": 2})
    b = Trial.from_json(json.loads(json.dumps(a.to_json())))
    c = Trial(method="x", pruning_ratio=0.5, seed=1, knobs={"b": 2, "a": 1})
    assert a.key == b.key == c.key != a.replace(seed=2).key
    with pytest.raises(InvalidSettingError, match="pruning_ratio"):
        Trial(method="x", pruning_ratio=1.0, seed=0)


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path, cut):
    book = TrialBook(tmp_path / "b.jsonl")
    book.add(ONE, {"n_correct": 3})
    book.add(TWO, {"n_correct": 4})
    data = book.path.read_bytes()
    book.path.write_bytes(data[:-cut])
    torn = TrialBook(book.path)
    assert list(torn.results) == [ONE.key]
    assert len(book.path.read_bytes()) == len(data) - cut, "reading must not change the file"
    torn.add(TWO, {"n_correct": 4})
    assert book.path.read_bytes() == data


def test_a_last_line_of_rubbish_is_torn_too_but_one_in_the_middle_is_damage(tmp_path):
    book = TrialBook(tmp_path / "b.jsonl")
    book.add(ONE, {"n_correct": 3})
    whole = book.path.read_bytes()
    book.path.write_bytes(whole + b"\0\0\0\0\n")
    assert len(TrialBook(book.path)) == 1
    book.path.write_bytes(b"\0\0\n" + whole)
    with pytest.raises(WorkspaceError, match="line 1"):
        TrialBook(book.path)


@pytest.mark.parametrize("name", list(SUPERVISED_PRESETS))
@pytest.mark.parametrize("n_images", [97, 6000])
def test_the_full_data_is_never_trained_on_for_less_than_a_coreset(name, n_images):
    ratios = (0.3, 0.5, 0.7, 0.8, 0.9)
    training = supervised_preset(name)
    full = for_full(training, ratios, n_images)
    for ratio in ratios:
        coreset = training.for_coreset(ratio)
        assert full.epochs >= coreset.epochs
        assert steps(full, n_images) >= steps(coreset, coreset_size(n_images, ratio))
    assert full == training.replace(epochs=full.epochs) and for_full(training, (), n_images) == training


def steps(training, n_images):
    return training.epochs * -(-n_images // training.batch_size)


def test_a_probe_is_exact_and_not_trained_longer():
    probe = ProbeSettings(encoder="e", features="f")
    assert for_full(probe, (0.9,), 1000) is probe
