"""Auto: pretrained features first; from scratch too where it fits the budget or where features do badly; the better.

The two are compared on labels that both held out. A label whose near-duplicate the net was trained on is left out of
the comparison: the folds of the head never saw one either. What was decided is kept in the job's folder, so that a run
that was killed goes on with what it had begun.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from semiprune_core import files, streams
from semiprune_core.embeddings.encoders import named_encoder
from semiprune_core.errors import InvalidDataError, InvalidSettingError, MissingStepError, SourceError
from semiprune_core.importing.follow_up import features_are_on
from semiprune_core.jobs import Job
from semiprune_core.learning.frozen.compare import Comparison, compare
from semiprune_core.learning.quality import AMBER_ACCURACY, AT_LEAST
from semiprune_core.progress import Stopped
from semiprune_core.records import UNLABELED, IntArray
from semiprune_core.results import latest_features
from semiprune_core.results.pseudo import FROZEN, SCRATCH
from semiprune_core.streams import Purpose
from semiprune_core.training import preflight
from semiprune_core.training.answers import Answers
from semiprune_core.training.data import training_data
from semiprune_core.training.runs import trained_seconds
from semiprune_core.training.settings import STARTS
from semiprune_core.training.task import Task, Told
from semiprune_core.training.trial import estimate, n_rounds, time_steps

PLAN, ONCE_MORE = "plan.json", "once-more.json"
LOOK_SECONDS = 0.5
"""How often the other processes of a run look whether the first one has decided."""
FASTEST = 10_000
"""Images that a core trains on in a second at the most; two reach 3,200 together with the smallest net."""
PATIENCE = 5
"""Budgets that a net may take where features are probably good enough and too few labels make sure of it."""
LEARNERS = {FROZEN: "a head on features", SCRATCH: "a net from scratch"}
"""What is compared, as words inside a sentence."""
FROM_ALL = "The net now learns once more, from all labels, those that compared it included."
UNUSABLE = (InvalidDataError, InvalidSettingError, MissingStepError, SourceError)
"""No weights, damaged ones, an encoder that cannot see these images: no reason to give up."""


@dataclass(frozen=True)
class Plan:
    """Whether a net is trained from scratch beside the head on features, and ``why``, for people."""

    goes_on: bool
    why: str
    seconds: float | None = None


def learn(task: Task, publish: Callable[[Answers], None]) -> Answers | None:
    """The answers of the better start, with ``candidates``, ``comparison`` and ``decision`` among their facts.

    ``publish`` gets the answers of the head as soon as they are there, where the run goes on after them: whoever stops
    it keeps these. None on every process but the first.
    """
    if task.context.rank:
        return _follow(task)
    task.context.report(0, 1, start=FROZEN, plan=None, first=None)
    first, problem = _on_features(task)
    plan = _plan(task, first, problem)
    if first is not None:
        told = _with_facts(first, FROZEN, [_candidate(task, first, FROZEN)], decision=_taken(FROZEN, plan.why))
        if not plan.goes_on:
            return told
        publish(told)
    task.context.log.info(plan.why)
    second = _from_scratch(task, _so_far(first, plan))
    assert second is not None
    net = _candidate(task, second, SCRATCH)
    if first is None:
        return _with_facts(second, SCRATCH, [net], decision=_taken(SCRATCH, plan.why))
    candidates = [_candidate(task, first, FROZEN), net]
    comparison = _compared(first, second, task.labels.learned)
    start, reason = choose(comparison)
    decision = _taken(start, reason)
    answers = {FROZEN: first, SCRATCH: second}[start]
    if _learns_once_more(task, start, first, _seconds_of(task.context.job, SCRATCH)):
        answers = _with_all_labels(task, second, {**_so_far(first, plan), "plan": f"{decision} {FROM_ALL}"})
    return _with_facts(answers, start, candidates, comparison, decision)


def choose(comparison: Comparison | None) -> tuple[str, str]:
    """(the start to take, why).

    The better one on the compared labels, be it by a hair: nothing else is known of the two that is as fair. Where they
    are level, or where it is a close call on very few labels, the head on features: its accuracy is known from all
    labels instead of a tenth, and every step after it takes seconds.
    """
    if comparison is None:
        return FROZEN, "Nothing was held out by both starts, so they could not be compared."
    better = FROZEN if comparison.difference >= 0 else SCRATCH
    sentence = comparison.sentence()
    sentence = f"{sentence[0].upper()}{sentence[1:]}"
    if not comparison.close_call:
        return better, sentence
    if better == SCRATCH and comparison.n < AT_LEAST:
        few = f"On fewer than {AT_LEAST} labels this is no reason to leave features, whose accuracy all labels measure."
        return FROZEN, f"{sentence} {few}"
    return better, sentence


def _taken(start: str, reason: str) -> str:
    return f"{STARTS[start]} taken. {reason}"


def _on_features(task: Task) -> tuple[Answers | None, str]:
    """The answers of a head on features, or None and why there are none."""
    from semiprune_core.training.frozen import learn_on_features

    project, settings = task.context.project, task.starting(FROZEN).settings
    try:
        if not features_are_on(project):
            latest_features(project, settings.encoder)  # those that are there may be used
        named_encoder(settings.encoder, guard=project.workspace.guard)
        return learn_on_features(task.context, settings, len(task.class_names), task.labels), ""
    except UNUSABLE as error:
        off = "" if features_are_on(project) else "Features are switched off. "
        return None, f"Pretrained features could not be used. {off}{error}"


def _plan(task: Task, first: Answers | None, problem: str) -> Plan:
    """Whether to go on after the head; decided once, and read again by an attempt after that."""
    path = task.folder / PLAN
    if path.is_file():
        return Plan(**files.read_json(path))
    plan = Plan(True, problem) if first is None else _weighed(task, first)
    files.write_json(path, asdict(plan))
    return plan


def _weighed(task: Task, first: Answers) -> Plan:
    data = training_data(task.context.project, task.pool, task.snapshot)
    if first.quality is None:
        return Plan(False, "Too few labels were drawn at random to measure it, or to compare it with a net.")
    if not data.n_held_out(task.settings.training):
        return Plan(False, "A net from scratch was not tried: no labels would be held out to compare it with.")
    share, budget = first.quality.accuracy, task.settings.budget
    is_poor, may_be_poor = share.value < AMBER_ACCURACY, share.low < AMBER_ACCURACY
    left = max(0.0, budget - trained_seconds(task.context.job))
    if not may_be_poor and (least := _least_seconds(task)) > left:
        return Plan(
            False, f"From scratch was not tried: it would take more than {span(least)}, and {_left(left, budget)}."
        )
    seconds = _estimated(task)
    takes = span(seconds)
    doubt = f"with features, as many as {1 - share.low:.0%} of the labels may be wrong"
    if is_poor or (may_be_poor and seconds <= PATIENCE * budget):
        return Plan(True, f"From scratch is tried too, about {takes}: {doubt}.", seconds)
    if seconds <= left:
        return Plan(True, f"From scratch is tried too: about {takes}, within the budget of {span(budget)}.", seconds)
    doubt = f" {doubt[0].upper()}{doubt[1:]}; more labels would tell." if may_be_poor else ""
    return Plan(
        False,
        f"From scratch was not tried: it would take about {takes}, and {_left(left, budget)}.{doubt}",
        seconds,
    )


def _left(seconds: float, budget: float) -> str:
    return f"{span(seconds)} of the budget of {span(budget)} were left"


def _least_seconds(task: Task) -> float:
    """What a net takes at the very least; it spares a pre-flight whose answer is known. On a GPU nothing is known."""
    if task.context.device != "cpu":
        return 0.0
    settings = task.settings.training.on_pool(len(task.pool))
    n_images = settings.n_steps * settings.batch_size * (1 + settings.unlabeled_ratio)
    return n_rounds(settings) * n_images / (FASTEST * (os.cpu_count() or 1))


def _estimated(task: Task) -> float:
    """How long a net would take, by the pre-flight of the page or by a few steps now."""
    settings, device = task.settings, task.context.device
    nproc = task.context.world_size
    key = preflight.trial_key(settings, device, task.pool.hash, len(task.class_names))
    job = preflight.find_trial(task.context.project, key)
    trial = preflight.trial_of(job) if job is not None else None
    if trial is None:
        quiet = Told(task.context, {"stage": "pre-flight"})
        trial = time_steps(task.starting(SCRATCH), device=device.split(",")[0], progress=quiet)
    data = training_data(task.context.project, task.pool, task.snapshot)
    return estimate(trial, settings.training, data, nproc=nproc).seconds


def _from_scratch(task: Task, facts: Mapping[str, Any]) -> Answers | None:
    from semiprune_core.training.net import learn_net

    return learn_net(task.starting(SCRATCH), Told(task.context, {"start": SCRATCH, **facts}))


def _learns_once_more(task: Task, start: str, first: Answers, seconds: float) -> bool:
    """Whether the net that was taken learns again from all labels: where features do badly, or time is left for it.

    Decided once, and read again by an attempt after that and by the other processes.
    """
    path = task.folder / ONCE_MORE
    if not path.is_file():
        is_poor = first.quality is not None and first.quality.accuracy.value < AMBER_ACCURACY
        fits = trained_seconds(task.context.job) + seconds <= task.settings.budget
        has_seen_all = n_rounds(task.settings.training) > 1
        files.write_json(path, {"goes_on": start == SCRATCH and not has_seen_all and (is_poor or fits)})
    return bool(files.read_json(path)["goes_on"])


def _with_all_labels(task: Task, measured: Answers, facts: Mapping[str, Any]) -> Answers:
    """The answers of a net that learned from all labels; how right it is, the one ``measured`` says, which held some
    out. Its own draws are others."""
    from semiprune_core.training.net import learn_net

    everything = task.settings.training.replace(held_out=0.0, refit=False)
    seed = streams.derived(task.settings.seed, Purpose.SSL_RUN, 1, bits=32)
    again = dataclasses.replace(
        task, settings=task.settings.replace(start=SCRATCH, ssl=everything.to_json(), seed=seed)
    )
    final = learn_net(again, Told(task.context, {"start": SCRATCH, **facts}), folder=task.folder / "all-labels")
    return measured if final is None else measured.refitted(final)


def _so_far(first: Answers | None, plan: Plan) -> dict[str, Any]:
    """What the page says of the head while the net learns."""
    share = first.quality.accuracy if first is not None and first.quality is not None else None
    return {"plan": plan.why, "first": asdict(share) if share is not None else None}


def _follow(task: Task) -> Answers | None:
    """The other processes of a run wait for what the first one decides."""
    if Plan(**_awaited(task, PLAN)).goes_on:
        measured = _from_scratch(task, {})
        if _awaited(task, ONCE_MORE)["goes_on"]:
            _with_all_labels(task, cast(Answers, measured), {})
    return None


def _awaited(task: Task, name: str) -> dict[str, Any]:
    path = task.folder / name
    while not path.is_file():
        if task.context.should_stop():
            raise Stopped
        time.sleep(LOOK_SECONDS)
    return dict(files.read_json(path))


def _candidate(task: Task, answers: Answers, start: str) -> dict[str, Any]:
    """A candidate as facts: where it began, how right it is on labels it held out, how long it took."""
    share = answers.quality.accuracy if answers.quality is not None else None
    return {
        "start": start,
        "accuracy": asdict(share) if share is not None else None,
        "n": share.n if share is not None else 0,
        "seconds": round(_seconds_of(task.context.job, start), 1),
    }


def _seconds_of(job: Job, start: str) -> float:
    """How long the reports of one start span, all attempts together."""
    spans: dict[int, list[float]] = {}
    for line in job.progress():
        if line.get("start", FROZEN) == start:
            ends = spans.setdefault(line["attempt"], [line["time"], line["time"]])
            ends[1] = line["time"]
    return sum(end - begin for begin, end in spans.values())


def _compared(first: Answers, second: Answers, labels: IntArray) -> Comparison | None:
    """The head and the net on the labels that both held out, near-duplicates included."""
    both = first.held_out_mask & second.held_out_mask
    groups = first.groups if first.groups is not None else np.arange(len(labels))
    trained = (labels != UNLABELED) & ~second.held_out_mask
    idx = np.flatnonzero(both & ~np.isin(groups, groups[trained]))
    if not len(idx):
        return None
    return compare(
        LEARNERS[FROZEN],
        first.held_out_answers[idx] == labels[idx],
        LEARNERS[SCRATCH],
        second.held_out_answers[idx] == labels[idx],
        groups=groups[idx],
    )


def _with_facts(
    answers: Answers,
    start: str,
    candidates: list[dict[str, Any]],
    comparison: Comparison | None = None,
    decision: str = "",
) -> Answers:
    facts = {
        "start": start,
        "candidates": candidates,
        "comparison": comparison.to_json() if comparison is not None else None,
        "decision": decision,
    }
    return dataclasses.replace(answers, facts={**answers.facts, **facts})


def span(seconds: float) -> str:
    """A time for people.

    >>> [span(seconds) for seconds in (0.4, 42.3, 194, 3600 * 2.5)]
    ['1 s', '42 s', '3 min', '2.5 h']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s" if seconds else "0 s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
