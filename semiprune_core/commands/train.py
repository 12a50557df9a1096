"""``train``: a semi-supervised run from the command line, the same job that the page starts."""

from __future__ import annotations

import argparse
from typing import Any

from semiprune_core import training
from semiprune_core.commands.base import COMMANDS, Command, Console, Outcome, assignments
from semiprune_core.errors import JobError
from semiprune_core.jobs import DONE, RESUMABLE, RUNNING, STOPPED, Job, JobStatus, commands, supervise, wait
from semiprune_core.learning.presets import SSL_PRESETS
from semiprune_core.learning.settings import SSLSettings
from semiprune_core.learning.ssl import ALGORITHMS
from semiprune_core.progress import Stopped
from semiprune_core.project.workspace import Project, Workspace
from semiprune_core.tracking import TRACKERS, keep_trackers, parse_trackers
from semiprune_core.training import TrainSettings, preflight
from semiprune_core.training.settings import BUDGET, PACKAGED_ENCODER, asked_settings


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project")
    parser.add_argument(
        "--start",
        choices=tuple(training.STARTS),
        help="where learning begins: on pretrained features, in seconds; with a pretrained net's weights; from "
        "scratch; or on features and, where it pays, from scratch, the better by held-out labels (default: auto; "
        "scratch where an algorithm, a preset or several processes are asked for)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=training.BUDGET,
        metavar="SECONDS",
        help=f"what --start auto may take in all before only poor features make it go on (default: {BUDGET:.0f})",
    )
    parser.add_argument("--encoder", help=f"whose features or weights, but from scratch (default: {PACKAGED_ENCODER})")
    parser.add_argument("--algorithm", help=f"{ALGORITHMS.listed()} (default: fixmatch)")
    presets = f"{', '.join(SSL_PRESETS)} (default: quick; finetune with --start finetuned)"
    parser.add_argument("--preset", help=presets)
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: 0)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda:0, mps (default: auto)")
    parser.add_argument("--nproc", type=int, default=1, help="processes that share every batch (default: 1)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting, such as lr=0.05; repeatable",
    )
    parser.add_argument(
        "--track",
        metavar="TRACKERS",
        help=f"from now on let these follow all runs of the workspace, such as tensorboard,mlflow=URL; off ends it. "
        f"{TRACKERS.listed()} (default: none)",
    )
    parser.add_argument("--background", action="store_true", help="queue it and return at once")
    parser.add_argument("--resume", action="store_true", help="resume the project's last interrupted run")
    parser.add_argument("--estimate", action="store_true", help="time a few steps and estimate the whole run")


def settings_from(args: argparse.Namespace) -> TrainSettings:
    return asked_settings(
        start=args.start,
        algorithm=args.algorithm,
        preset=args.preset,
        encoder=args.encoder,
        seed=args.seed,
        budget=args.budget,
        nproc=args.nproc,
        changes=assignments("--set", args.set, "lr=0.05"),
    )


def _run(args: argparse.Namespace, workspace: Workspace, console: Console) -> Outcome:
    project = workspace.project(args.name)
    if args.track is not None:
        keep_trackers(workspace, parse_trackers(args.track))
    if args.resume:
        job = _interrupted(project)
        training.resume(job)
    else:
        settings = settings_from(args)
        if args.estimate:
            return _estimate(args, project, settings, console)
        job = training.start_training(project, settings, device=args.device, nproc=args.nproc)
    if args.background:
        supervise(workspace)
        return Outcome(commands.summary(job), f"{job.title}: {job.id} ({job.status().state})")
    return _watch(job, console)


def _interrupted(project: Project) -> Job:
    for run in training.list_runs(project):
        if run.job is not None and run.status.state in RESUMABLE:
            return run.job
    raise JobError(f"Project '{project.name}' has no interrupted run to resume.", code="NO_JOB")


def _watch(job: Job, console: Console) -> Outcome:
    """Wait for the job; the first Ctrl+C stops it with a checkpoint."""
    waits, plan = False, None

    def watch(status: JobStatus) -> None:
        nonlocal waits, plan
        if status.facts.get("plan") != plan:
            plan = status.facts["plan"]
            console.say(f"{_share('Pretrained features', status.facts.get('first'))}{plan}")
        if console.should_stop() and not status.stop_requested:
            job.stop()
        if status.state == RUNNING and status.total:
            console.report(status.done, status.total, **_facts(status))
        elif status.state == "queued" and not waits:
            waits = True
            console.say(f"{job.title}: {job.id}")

    status = wait(job, watch=watch)
    if status.state == STOPPED:
        again = f"semiprune train {job.project_name} --resume"
        kept = "The result on pretrained features is kept. " if _has_result(job) else ""
        console.say(f"Stopped after {status.done:,} of {status.total:,} steps. {kept}Resume: {again}")
        raise Stopped
    if status.state != DONE:
        raise JobError(status.message, code=status.error_code)
    console.report(status.done, status.total)
    result = job.result() or {}
    return Outcome({"job": job.id, **result}, _sentence(result))


def _has_result(job: Job) -> bool:
    return any(run.job == job and run.artifact is not None for run in training.list_runs(job.project))


def _share(name: str, share: dict[str, Any] | None) -> str:
    return f"{name}: {share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%}). " if share else ""


def _facts(status: JobStatus) -> dict[str, float]:
    names = {"loss": "loss", "held_out_accuracy": "accuracy", "mask_share": "mask"}
    return {word: float(status.facts[name]) for name, word in names.items() if status.facts.get(name) is not None}


def _sentence(result: dict[str, Any]) -> str:
    sentence = f"{result['artifact']}: {result['n_images']:,} images labeled from {result['n_labels']:,} labels"
    share, reference = result["accuracy"], result["reference"]
    if share:
        interval = f"95% interval {share['low']:.1%} to {share['high']:.1%}, n = {share['n']}"
        sentence += f", accuracy {share['value']:.1%} ({interval})"
    if reference:
        sentence += f", reference accuracy {reference['value']:.1%} (n = {reference['n']:,})"
    parts = [f"{sentence}.", result.get("decision", "")]
    if missing := result["missing_classes"]:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        parts.append(f"No label of {', '.join(missing[:5])}{more}: no image got it.")
    return " ".join(part for part in parts if part)


def _estimate(args: argparse.Namespace, project: Project, settings: TrainSettings, console: Console) -> Outcome:
    data = training.training_data(project)
    job = preflight.start_trial(project, settings, data, device=args.device)

    def watch(status: JobStatus) -> None:
        if console.should_stop():
            job.stop()

    status = wait(job, watch=watch)
    if status.state == STOPPED:
        raise Stopped
    trial = preflight.trial_of(job)
    if trial is None:
        raise JobError(status.message, code=status.error_code)
    estimate = preflight.estimate(trial, SSLSettings.from_json(settings.ssl), data, nproc=args.nproc)
    text = (
        f"About {estimate.seconds / 60:.1f} min for {estimate.n_steps:,} steps "
        f"at {estimate.images_per_s:,.0f} images/s; "
        f"{estimate.ram_bytes / 1e9:.1f} GB of memory, {estimate.disk_bytes / 1e6:.0f} MB of disk."
    )
    return Outcome(vars(estimate), text)


COMMANDS.register("train")(Command("train on the labeled and the unlabeled images", _configure, _run))
