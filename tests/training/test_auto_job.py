"""Auto: features first, a net where it fits or where features do badly, the better by labels that both held out."""

import json

import numpy as np
import pytest

from semiprune_core import cli, files, training
from semiprune_core.jobs import list_jobs
from semiprune_core.jobs.context import JobContext, run_job
from semiprune_core.learning.frozen import FrozenResult
from semiprune_core.learning.frozen.compare import compare
from semiprune_core.learning.quality import wilson
from semiprune_core.results import PseudoRun, latest_pseudo
from semiprune_core.training import AUTO, FROZEN, SCRATCH, TrainSettings, auto
from semiprune_core.training.answers import Answers
from tests.support.job_runs import run_queued
from tests.support.pools import ssl_settings
from tests.support.training_projects import label_drawn, small_project


@pytest.fixture
def project(with_features):
    return label_drawn(with_features)


@pytest.fixture
def without_features(workspace, tmp_path):
    return small_project(workspace, tmp_path)


def wanted(**changes):
    """Auto with a net of a few steps, which needs a second at most and learns little."""
    return TrainSettings(start=AUTO, preset="quick", ssl=ssl_settings(epochs=1).to_json(), **changes)


def train(project, settings=None):
    job = training.start_training(project, settings or wanted(), device="cpu", immediate=True)
    assert job.status().state == "done", (job.status().message, job.log_tail())
    return latest_pseudo(project)


def test_it_is_the_default():
    assert TrainSettings().start == AUTO and TrainSettings().budget == 180


def test_within_the_budget_both_are_tried_and_the_better_one_is_kept_with_the_comparison(project):
    run = train(project, wanted(budget=3600))
    facts = run.artifact.facts
    assert run.start == facts["start"] == FROZEN and run.encoder == "efficientnet_lite0"
    assert [candidate["start"] for candidate in facts["candidates"]] == [FROZEN, SCRATCH]
    frozen, scratch = (candidate["accuracy"] for candidate in facts["candidates"])
    assert frozen["n"] == 30 == run.quality()["accuracy"]["n"] and scratch["n"] == 3
    assert facts["comparison"]["n"] <= 3 and "a net from scratch" in facts["decision"]
    assert facts["decision"].startswith("Pretrained features taken.") and facts["provisional"] is False
    assert len(project.artifacts("pseudo")) == 1


def test_without_time_for_a_net_good_features_are_enough(project, monkeypatch):
    monkeypatch.setattr(auto, "AMBER_ACCURACY", 0.0)
    facts = train(project, wanted(budget=0)).artifact.facts
    assert [candidate["start"] for candidate in facts["candidates"]] == [FROZEN] and facts["comparison"] is None
    assert "From scratch was not tried: it would take more than" in facts["decision"]
    monkeypatch.setattr(auto, "FASTEST", float("inf"))  # nothing is known before the pre-flight
    facts = train(project, wanted(budget=0)).artifact.facts
    assert "From scratch was not tried: it would take about" in facts["decision"]


def test_poor_features_are_no_reason_to_end_whatever_the_budget(project, monkeypatch):
    monkeypatch.setattr(auto, "AMBER_ACCURACY", 1.1)
    facts = train(project, wanted(budget=0)).artifact.facts
    assert [candidate["start"] for candidate in facts["candidates"]] == [FROZEN, SCRATCH]


@pytest.mark.parametrize("budget, starts", [(0.0, [FROZEN]), (3600.0, [FROZEN, SCRATCH])])
def test_features_that_are_probably_good_enough_are_worth_a_few_budgets(project, monkeypatch, budget, starts):
    """Between the lower end of the interval and the estimate: too few labels to be sure."""
    share = train(project, TrainSettings(start=FROZEN)).quality()["accuracy"]
    monkeypatch.setattr(auto, "AMBER_ACCURACY", (share["low"] + share["value"]) / 2)
    facts = train(project, wanted(budget=budget)).artifact.facts
    assert [candidate["start"] for candidate in facts["candidates"]] == starts
    assert "of the labels may be wrong" in facts["decision"] or starts != [FROZEN]


def test_a_better_net_takes_the_place_of_the_features(project, monkeypatch):
    monkeypatch.setattr(auto, "choose", lambda comparison: (SCRATCH, "Because."))
    run = train(project, wanted(budget=3600))
    assert run.start == SCRATCH and run.encoder is None
    assert run.artifact.facts["decision"] == "From scratch taken. Because."
    assert run.artifact.path("model.safetensors").is_file() and run.held_out_mask().sum() == 3
    assert len(project.artifacts("pseudo")) == 1  # the first candidate is gone
    (listed,) = training.list_runs(project)
    assert listed.title == "Auto: from scratch, seed 0" and listed.settings.is_auto


@pytest.mark.parametrize("amber, rounds", [(0.0, [1]), (1.1, [1, 2])])
def test_a_net_that_was_taken_learns_again_from_all_labels_where_features_are_poor(project, monkeypatch, amber, rounds):
    monkeypatch.setattr(auto, "choose", lambda comparison: (SCRATCH, "Because."))
    monkeypatch.setattr(auto, "_plan", lambda task, first, problem: auto.Plan(True, "As asked."))
    monkeypatch.setattr(auto, "AMBER_ACCURACY", amber)
    monkeypatch.setattr(auto, "_seconds_of", lambda job, start: 60.0)  # no time is left for it
    run = train(project, wanted(budget=1))
    assert list(dict.fromkeys(entry["round"] for entry in run.history())) == rounds
    assert run.held_out_mask().sum() == 3  # of the first net: it alone measures
    assert ("second one trained on all labels" in run.quality()["measured_on"]) == (len(rounds) == 2)
    blind = run.artifact.path("held_out_positions.npy")
    assert blind.is_file() == (len(rounds) == 2)


def test_the_first_answer_is_there_while_the_net_learns_and_a_stop_keeps_it(project, monkeypatch):
    job = training.start_training(project, wanted(budget=3600), device="cpu", immediate=False)
    seen = []

    class Stopping(JobContext):
        def should_stop(self):
            if not seen and (artifacts := project.artifacts("pseudo")):
                seen.append(PseudoRun(artifacts[0]))
            return bool(seen)

    stop(job, Stopping)
    assert job.status().state == "stopped" and seen[0].start == FROZEN and seen[0].labels().labels.min() >= 0
    (run,) = training.list_runs(project)
    assert run.is_provisional and run.status.is_resumable
    assert run.artifact.facts["decision"].startswith("Pretrained features taken. From scratch is tried too")
    again(job)
    (run,) = training.list_runs(project)
    assert not run.is_provisional and run.facts["comparison"] is not None
    assert train(project, wanted(budget=3600)).artifact.hash == run.artifact.hash  # to the bit


def stop(job, context):
    with job.lease() as mine:
        assert mine
        run_job(context(job))


def again(job):
    job.resume()
    with job.lease() as mine:
        assert mine
        assert run_job(JobContext(job)).state == "done"


def test_a_killed_run_goes_on_as_it_was_decided(project, monkeypatch):
    monkeypatch.setattr("semiprune_core.training.net.train_ssl", killed)
    job = training.start_training(project, wanted(budget=3600), device="cpu")
    with pytest.raises(KeyboardInterrupt), job.lease():
        run_job(JobContext(job))
    monkeypatch.undo()
    plan = files.read_json(job.work_folder / auto.PLAN)
    assert plan["goes_on"]
    monkeypatch.setattr(auto, "_weighed", None)  # nothing is timed a second time
    again(job)
    assert latest_pseudo(project).artifact.facts["comparison"] is not None


def killed(*arguments, **more):
    raise KeyboardInterrupt


def test_without_a_usable_encoder_it_learns_from_scratch_and_says_why(without_features, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_FEATURES", "on")
    run = train(without_features, wanted(encoder="nonesuch"))
    decision = run.artifact.facts["decision"]
    assert run.start == SCRATCH and "nonesuch" in decision
    assert decision.startswith("From scratch taken. Pretrained features could not be used.")


def test_without_weights_it_learns_from_scratch_and_says_why(without_features, monkeypatch):
    monkeypatch.setenv("SEMIPRUNE_FEATURES", "on")
    monkeypatch.setattr("semiprune_core.embeddings.encoders.packaged_file", lambda name: None)
    run = train(without_features)
    assert run.start == SCRATCH and "are not installed here" in run.artifact.facts["decision"]


def test_where_features_are_switched_off_none_are_computed(without_features):
    run = train(without_features)
    assert run.start == SCRATCH and "Features are switched off" in run.artifact.facts["decision"]
    assert without_features.artifacts("features") == []


def test_labels_that_measure_nothing_leave_the_features_and_say_so(project, monkeypatch):
    fit = FrozenResult.__init__

    def unmeasured(self, *arguments, **more):
        fit(self, *arguments, **{**more, "quality": None})

    monkeypatch.setattr(FrozenResult, "__init__", unmeasured)
    run = train(project)
    assert run.start == FROZEN and run.quality() is None
    assert "Too few labels were drawn at random" in run.artifact.facts["decision"]


def right(n, wrong):
    return np.arange(n) >= wrong


@pytest.mark.parametrize(
    "n, wrong, start, close",
    [
        (60, (30, 2), SCRATCH, False),
        (60, (2, 30), FROZEN, False),
        (60, (10, 8), SCRATCH, True),  # the better one, be it by a hair
        (60, (8, 8), FROZEN, True),
        (40, (10, 8), FROZEN, True),  # too few labels to leave the features for a hair
        (40, (30, 2), SCRATCH, False),
    ],
)
def test_the_better_one_is_taken_and_a_close_call_is_called_so(n, wrong, start, close):
    comparison = compare("a head", right(n, wrong[0]), "a net", right(n, wrong[1]))
    taken, reason = auto.choose(comparison)
    assert (taken, reason.startswith("A close call")) == (start, close) and reason[0] == "A"


def test_near_duplicates_of_what_the_net_saw_do_not_compare():
    labels = np.zeros(6, dtype=int)
    held = np.array([True, True, True, False, False, False])
    first = answers(np.ones(6, bool), np.array([0, 0, 1, 0, 0, 0]), groups=np.array([0, 1, 2, 0, 4, 5]))
    second = answers(held, np.array([0, 1, 1, -1, -1, -1]))
    comparison = auto._compared(first, second, labels)
    assert (comparison.n, comparison.only_first, comparison.only_second) == (2, 1, 0)


def answers(held, said, groups=None):
    empty = np.zeros(len(held))
    return Answers(
        empty.astype(int), empty, empty, held, np.where(held, said, -1), empty[:, None], None, {}, groups=groups
    )


def test_settings_come_back_from_the_artifact_and_from_older_jobs(project):
    run = train(project, wanted(budget=7.0, seed=3))
    listed = training.Run(None, run.artifact)
    asked = wanted(budget=7.0, seed=3)
    assert (listed.settings.training, listed.settings.head) == (asked.training, asked.head)
    assert (listed.settings.start, listed.settings.budget, listed.settings.seed) == (AUTO, 7.0, 3)
    assert listed.title == "Auto: pretrained features, seed 3"
    table = training.side_by_side([listed])
    assert table["start"] == [AUTO] and table["budget"] == [7.0]
    assert TrainSettings.from_job({"ssl": {}, "preset": "quick", "seed": 0}).start == SCRATCH


def test_the_command_prints_what_was_compared(project, capsys, monkeypatch):
    monkeypatch.setattr("semiprune_core.jobs.supervisor.supervise", run_queued)
    words = [word for pair in ("epochs=1", "steps_per_epoch=2", "batch_size=8") for word in ("--set", pair)]
    home = ["--home", str(project.workspace.root), "--device", "cpu"]
    assert cli.main(["train", project.name, "--budget", "600", *words, *home, "--json"]) == 0
    out = capsys.readouterr()
    said = json.loads(out.out)
    assert said["start"] == FROZEN and len(said["candidates"]) == 2 and said["comparison"]["sentence"]
    assert "From scratch is tried too" in out.err
    assert [job.settings["budget"] for job in list_jobs(project, "ssl")] == [600]


def test_the_share_of_a_candidate_has_its_interval(project):
    facts = train(project, wanted(budget=0)).artifact.facts
    share = facts["candidates"][0]["accuracy"]
    assert share["low"] < share["value"] <= share["high"] and share["value"] >= wilson(20, 30).value
