"""What a coreset saves: counted from labels, measured times and an evaluation, never more than that."""

import dataclasses

import pytest

from semiprune_core.errors import SemiPruneError
from semiprune_core.evaluation.gain import Gain, Rates, keep_rates, rates_of
from semiprune_core.evaluation.gain_bars import gain_html
from semiprune_core.evaluation.not_relabeled import SUFFIX, with_twin
from semiprune_core.evaluation.plot import colours_of, svg_plot
from semiprune_core.evaluation.view import Cell, view_of
from semiprune_core.labeling.progress_report import LabelingTime
from tests.support.trial_tables import table


def cell(method, mean, minutes):
    return Cell(method, 0.5, {0: mean - 0.01, 1: mean + 0.01}, minutes, 2 * minutes, 500, 200, ())


@pytest.fixture
def gain():
    """1,000 images, 100 labeled, 500 kept of which 60 have a label: 540 labels are needed."""
    time = LabelingTime(100, 200.0)
    return Gain(
        1000, 500, 100, 60, Rates(), time, cell("dual", 0.88, 3.0), cell("random", 0.86, 3.0), cell("full", 0.9, 4.0)
    )


def test_labels_that_were_drawn_and_labels_that_are_missing_both_count(gain):
    assert (gain.labels_needed, gain.labels_saved) == (540, 460)
    assert gain.hours_saved == pytest.approx(460 * 2 / 3600)


def test_a_speed_that_was_not_measured_is_the_typed_one_or_none(gain):
    untimed = dataclasses.replace(gain, time=LabelingTime(9, 18.0))
    assert untimed.seconds_per_label is None and "Type a speed" in gain_html(untimed)
    typed = dataclasses.replace(untimed, rates=Rates(seconds_per_label=4.0))
    assert typed.hours_saved == pytest.approx(460 * 4 / 3600) and "as typed in" in gain_html(typed)


def test_money_is_labels_and_one_training_at_the_teams_rates(gain):
    assert gain.money_saved is None
    paid = dataclasses.replace(gain, rates=Rates(label_hour=36.0, training_hour=60.0, currency="<EUR>"))
    assert paid.money_saved == pytest.approx(36 * 460 * 2 / 3600 + 60 * 1 / 60)
    assert "10 &lt;EUR&gt;" in gain_html(paid)


def test_what_was_not_evaluated_is_said_to_be_unknown(gain):
    unknown = dataclasses.replace(gain, coreset=None, random=None, full=None)
    assert unknown.minutes is None
    assert gain_html(unknown).count("Not measured at this ratio") == 2
    assert "88.0%" in gain_html(gain) and "25% less" in gain_html(gain)


def test_rates_are_kept_with_the_project_and_checked(workspace):
    project = workspace.create("Costs")
    assert rates_of(project) == Rates()
    keep_rates(project, Rates(label_hour=25.0, currency="EUR"))
    assert rates_of(workspace.project("costs")) == Rates(label_hour=25.0, currency="EUR")
    with pytest.raises(SemiPruneError):
        Rates(label_hour=-1.0)


def test_coresets_that_nobody_relabels_are_a_curve_of_their_own():
    true, pseudo = (view_of(table(("aum", 0.5, 0, mean), ("aum", 0.5, 1, mean + 0.02))) for mean in (0.8, 0.7))
    both = with_twin(true, pseudo)
    assert both.methods == ("aum", f"aum{SUFFIX}") and both.title(f"aum{SUFFIX}") == "aum, not relabeled"
    assert both.cell("aum", 0.5) == true.cell("aum", 0.5)
    assert both.cell(f"aum{SUFFIX}", 0.5).mean == pseudo.cell("aum", 0.5).mean
    assert both.leader(0.5) == "aum" and both.marks(0.5) == true.marks(0.5)
    assert colours_of(both)["aum"] == colours_of(both)[f"aum{SUFFIX}"]
    assert "not relabeled" in svg_plot(both)
