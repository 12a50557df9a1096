"""The report's text, section by section. A step that was not done is named as missing, not left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from semiprune_core import files, jobs, streams
from semiprune_core.coresets import nesting
from semiprune_core.coresets.score_view import bin_values
from semiprune_core.coresets.select_view import saved_error
from semiprune_core.evaluation import EvaluationRun
from semiprune_core.evaluation.gain import gain_of
from semiprune_core.evaluation.gain_bars import gain_html
from semiprune_core.evaluation.plot import svg_plot
from semiprune_core.evaluation.runs import TESTED_ON, WARNINGS, Evaluation
from semiprune_core.evaluation.view import RANKED_BY, Cell, EvaluationView
from semiprune_core.exporting.content import Content, open_content
from semiprune_core.labeling import has_store, open_store
from semiprune_core.labeling.agreement import agreement
from semiprune_core.labeling.classes import NEUTRAL, PALETTE
from semiprune_core.labeling.progress_report import labeling_time, progress
from semiprune_core.maps.embedding_map import maps_of
from semiprune_core.methods import METHODS
from semiprune_core.progress import Progress
from semiprune_core.project.artifacts import versions
from semiprune_core.project.pool import Pool
from semiprune_core.project.pool_view import pool_summary
from semiprune_core.project.workspace import Project
from semiprune_core.records import IntArray
from semiprune_core.refresh.freshness import evaluated_before
from semiprune_core.report import draw
from semiprune_core.results import CoresetRun, PseudoRun
from semiprune_core.results.search import OVER
from semiprune_core.scores import SCORES
from semiprune_core.selection import SELECTORS
from semiprune_core.streams import Purpose
from semiprune_core.training import trained_seconds
from semiprune_core.trust import Trust, judge, quality_report, stability_of
from semiprune_core.trust.quality_report import Report
from semiprune_core.trust.review import latest_score, ranks

N_CORESETS = 5
"""Up to this many coresets are all shown with pictures; of more, the latest of each method."""
N_LISTED = 30
N_POINTS = 3000
N_STEPS = 5
RAMP = ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9c514")
"""Five steps of viridis, the last one darkened for white paper."""
N_PICTURES = 24
N_CLASSES = 40
COMPUTING = {
    "ssl": "semi-supervised training",
    "dynamics": "training on the pseudo-labels",
    "map": "maps",
    "search": "search",
    "evaluate": "evaluation",
}
VERDICTS = {"green": "They are good enough to prune with.", "amber": "Prune with care; the reasons are below."}
TRUTHS = {"reference": "reference labels", "human": "human labels", "pseudo": "pseudo-labels"}


def write_report(project: Project, progress: Progress | None = None) -> Path:
    """Write the report to the project's exports, under a name that ends in its content hash."""
    data = build_report(project, progress).encode("utf-8")
    name = f"report-{project.name}-{hashlib.sha256(data).hexdigest()[:12]}.html"
    with files.named_disk_errors(project.exports_folder):
        project.exports_folder.mkdir(parents=True, exist_ok=True)
    files.write_bytes(project.exports_folder / name, data)
    return project.exports_folder / name


def build_report(project: Project, progress: Progress | None = None) -> str:
    """The report as HTML; nothing in it depends on when it is made."""
    pool = project.pool()
    artifact = project.latest("pseudo")
    pseudo = PseudoRun(artifact) if artifact is not None else None
    runs = [CoresetRun(coreset) for coreset in project.artifacts("coreset")]
    current = [run for run in runs if run.artifact.inputs["pool"] == pool.hash][-N_LISTED:]
    contents = []
    for number, run in enumerate(current, start=1):
        contents.append(open_content(project, run))
        if progress is not None:
            progress.report(number, len(current), unit="coresets")
    judged = _judged(project, pool, pseudo)
    last = max(artifact.manifest["created"] for artifact in project.artifacts())
    return draw.page(
        f"{project.title}: from pool to coreset",
        f"<header><h1>{draw.text(project.title)}</h1>",
        draw.paragraph(
            f"From pool to coreset with SemiPrune Studio. As of {last[:16].replace('T', ' ')} UTC.", faint=True
        ),
        draw.in_short(_in_short(project, pool, pseudo, judged, contents)),
        "</header>",
        _pool(project, pool),
        _labeling(project),
        _quality(pseudo, judged),
        _map(project, pool, pseudo),
        _scores(contents),
        _coresets(project, contents, current),
        _evaluation(project, pool),
        _cost(project, contents),
        _settings(project, [content.run for content in _pictured(contents)]),
    )


def _judged(project: Project, pool: Pool, pseudo: PseudoRun | None) -> tuple[Report, Trust] | None:
    """The quality of the newest pseudo-labels, and whether to prune with them."""
    if pseudo is None:
        return None
    quality = quality_report.report(pool, pseudo, store=open_store(project) if has_store(project) else None)
    others = [PseudoRun(other) for other in project.artifacts("pseudo") if other.id != pseudo.artifact.id]
    return quality, judge(quality, stability_of(project, pseudo, others))


def _in_short(
    project: Project,
    pool: Pool,
    pseudo: PseudoRun | None,
    judged: tuple[Report, Trust] | None,
    contents: list[Content],
) -> list[str]:
    """The story, one sentence for each step that was done."""
    sentences = [f"The pool has {len(pool):,} images."]
    if pseudo is not None:
        n_human = int(pseudo.artifact.facts["n_human"])
        sentences[0] = f"People labeled {n_human:,} of {len(pool):,} images ({n_human / max(1, len(pool)):.1%})."
    if judged is not None:
        held_out, trust = judged[0].held_out, judged[1]
        accuracy = (
            f"Held-out labels put the pseudo-labels at {held_out.accuracy.value:.0%} accuracy. " if held_out else ""
        )
        sentences.append(accuracy + (trust.verdict if trust.level == "red" else VERDICTS[trust.level]))
    if contents:
        sizes = [len(content.kept_idx) for content in contents]
        images = f"{sizes[0]:,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
        sentences.append(f"{len(sizes):,} coreset{'s' if len(sizes) > 1 else ''} of {images} images.")
    view = _evaluated(project)
    if view is not None and view.cells:
        sentences.append(" ".join([view.sentence(), *_evaluated_before(project, pool)]))
    return sentences


def _pool(project: Project, pool: Pool) -> str:
    summary = pool_summary(project.everything())
    values = {
        "images": f"{summary.n_pool:,}",
        "for testing": f"{summary.n_test:,}",
        "duplicates": f"{summary.n_duplicates:,}",
        **({"also in the tests": f"{summary.n_shared:,}"} if summary.n_test else {}),
        "problems": f"{summary.n_problems:,}",
        "original files": f"{summary.file_bytes / 1e6:,.1f} MB",
    }
    if summary.sizes:
        width, height = summary.sizes[0][:2]
        values["most common size"] = f"{width} x {height}"
    some = np.unique(np.linspace(0, len(pool) - 1, N_PICTURES).astype(int))
    return draw.section("The pool", draw.numbers(values), _gallery(pool, some))


def _gallery(pool: Pool, positions: IntArray) -> str:
    return draw.pictures((pool.thumb(position), pool.path(position)) for position in positions[:N_PICTURES].tolist())


def _labeling(project: Project) -> str:
    title = "Labeling"
    if not has_store(project):
        return draw.section(title, draw.paragraph("No image has been labeled yet."))
    store = open_store(project)
    done, agreed = progress(store), agreement(store)
    seconds = _labeling_seconds(project)
    values = {
        "drawn": f"{done.n_drawn:,}",
        "labeled": f"{done.labeled:,}",
        "skipped": f"{done.skipped:,}",
        "measured time": f"{seconds / 60:,.1f} min" if seconds else "not measured",
    }
    if agreed.raw is not None:
        values["agreement"] = f"{agreed.raw:.1%}"
    words = (
        f"{agreed.n_images:,} images were labeled by two or more people ({agreed.kind} kappa {agreed.kappa:.2f})."
        if agreed.kappa is not None
        else "No image was labeled by two people, so their agreement is unknown."
    )
    rows = list(done.per_class.items())[:N_CLASSES]
    return draw.section(
        title,
        draw.numbers(values),
        draw.paragraph(words),
        draw.table(["class", "labels#"], [(n, f"{c:,}") for n, c in rows]),
    )


def _labeling_seconds(project: Project) -> float:
    """Time spent labeling, as the browser measured it."""
    return labeling_time(open_store(project)).seconds if has_store(project) else 0.0


def _quality(pseudo: PseudoRun | None, judged: tuple[Report, Trust] | None) -> str:
    title = "Pseudo-labels"
    if pseudo is None or judged is None:
        return draw.section(title, draw.paragraph("No model has been trained yet."))
    facts, quality = pseudo.artifact.facts, pseudo.quality()
    values = {"from the model": f"{facts['n_images'] - facts['n_human']:,}", "from people": f"{facts['n_human']:,}"}
    report, trust = judged
    if report.reference is not None:
        values["reference accuracy"] = f"{report.reference.accuracy:.1%}"
    reasons = draw.bullets(f"{reason.word}: {reason.sentence}" for reason in trust.reasons)
    verdict = [draw.heading("Good enough to prune with?"), draw.paragraph(trust.verdict), reasons]
    if not quality:
        words = draw.paragraph("No labels were held out, so their accuracy is unknown.")
        return draw.section(title, draw.numbers(values), words, *verdict)
    share = quality["accuracy"]
    interval = f"{100 * share['low']:.0f} to {share['high']:.0%}"
    values = {"accuracy": f"{share['value']:.1%}", "95% interval": interval, **values}
    rows = [
        (name, f"{right['value']:.1%}", _interval(right), f"{right['n']:,}") if right else (name, "too few", "", "")
        for name, right in zip(pseudo.class_names, quality["per_class"], strict=False)
    ]
    words = " ".join(part for part in (f"Measured on {quality['measured_on']}", facts.get("decision")) if part)
    header = ["class", "accuracy#", "95% interval#", "labels#"]
    table = draw.table(header, rows[:N_CLASSES])
    return draw.section(title, draw.numbers(values), draw.paragraph(words), *verdict, draw.heading("By class"), table)


def _interval(share: dict[str, Any]) -> str:
    return f"{100 * share['low']:.1f} to {share['high']:.1%}"


def _map(project: Project, pool: Pool, pseudo: PseudoRun | None) -> str:
    """The newest map, a random part of it, coloured by class or, with many classes, by AUM."""
    title = "Map"
    newest = next(iter(maps_of(project)), None)
    if newest is None:
        return draw.section(title, draw.paragraph("No map has been made yet."))
    points = np.asarray(newest.points(), dtype=np.float64)
    placed = np.flatnonzero(np.isfinite(points).all(1))
    some = np.sort(np.random.default_rng(0).permutation(placed)[:N_POINTS])
    groups, coloured = _coloured(project, pseudo, some, len(points))
    words = f"{newest.title}. Images that look alike to the model lie close together{coloured}."
    if len(some) < len(placed):
        words += f" {len(some):,} of {len(placed):,} images, drawn at random."
    return draw.section(title, draw.paragraph(words), draw.scatter(points[some], groups, newest.title))


def _coloured(
    project: Project, pseudo: PseudoRun | None, some: IntArray, n: int
) -> tuple[list[tuple[str, str, np.ndarray]], str]:
    """Groups of points by name and colour, and what the colours mean."""
    if pseudo is not None and len(pseudo.class_names) <= len(PALETTE) and pseudo.artifact.facts["n_images"] >= n:
        labels = pseudo.labels().labels[some]
        names = enumerate(zip(pseudo.class_names, PALETTE))
        return [(name, colour, labels == code) for code, (name, colour) in names], "; coloured by label"
    aum = latest_score(project, "aum", n)
    if aum is None:
        return [("images", NEUTRAL, np.ones(len(some), dtype=bool))], ""
    step = np.minimum((ranks(aum)[some] * N_STEPS).astype(int), N_STEPS - 1)
    ends = ("hardest fifth", "", "middle fifth", "", "easiest fifth")
    return [(ends[at] or "·", RAMP[at], step == at) for at in range(N_STEPS)], "; coloured by AUM"


def _scores(contents: list[Content]) -> str:
    title = "Scores"
    if not contents:
        return draw.section(title, draw.paragraph("No coreset has been selected from the scores of this pool yet."))
    content = contents[-1]
    mask = content.coreset.mask
    charts = []
    for name, values in content.scores.columns.items():
        edges, place = bin_values(values)
        kept, dropped = (np.bincount(place[part], minlength=len(edges) - 1) for part in (mask, ~mask))
        heading = f"{SCORES.title(name)} (higher is {SCORES.facts(name)['higher_is']})" if name in SCORES else name
        charts.append(draw.histogram(edges, kept, dropped, heading))
    words = (
        f"How hard each image was for the model. {content.run.artifact.id} keeps the coloured part and drops the grey."
    )
    return draw.section(title, draw.paragraph(words), f'<div class="charts">{"".join(charts)}</div>')


def _coresets(project: Project, contents: list[Content], runs: list[CoresetRun]) -> str:
    title = "Coresets"
    if not contents:
        return draw.section(title, draw.paragraph("None yet."))
    rows = [
        (
            content.run.artifact.id,
            _method(content.coreset.method),
            f"{content.coreset.pruning_ratio:.0%}",
            f"{len(content.kept_idx):,}",
            f"{content.n_human:,}",
            saved_error(project, content.run).interval,
            ", ".join(content.vanished()[:3]) or "none",
        )
        for content in contents
    ]
    parts = [
        draw.table(["coreset", "method", "pruned#", "kept#", "human labels#", "wrong labels", "lost classes"], rows),
        draw.paragraph(
            "Wrong labels: among the kept pseudo-labels, estimated from held-out labels, with its 95% interval.",
            faint=True,
        ),
        *(draw.paragraph(words) for words in _nestings(runs)),
    ]
    for content in _pictured(contents):
        mask, order = content.coreset.mask, content.best_first_idx
        dropped = np.flatnonzero(~mask)
        some = streams.rng(content.coreset.seed, Purpose.REPORT_SAMPLE).permutation(dropped)[:N_PICTURES]
        before = np.bincount(content.labels.labels, minlength=len(content.class_names))
        after = np.bincount(content.labels.labels[mask], minlength=len(content.class_names))
        parts += [
            draw.heading(
                f"{content.run.artifact.id}: {_method(content.coreset.method)} at {content.coreset.pruning_ratio:g}"
            ),
            draw.paragraph("Kept, in the order chosen", faint=True),
            _gallery(content.pool, order),
            draw.paragraph("Dropped, a random sample", faint=True),
            _gallery(content.pool, some),
            draw.balance(content.class_names[:N_CLASSES], before[:N_CLASSES].tolist(), after[:N_CLASSES].tolist()),
        ]
        if len(content.class_names) > N_CLASSES:
            parts.append(draw.paragraph(f"The first {N_CLASSES} of {len(content.class_names):,} classes.", faint=True))
    return draw.section(title, *parts)


def _nestings(runs: list[CoresetRun]) -> list[str]:
    """For each method with several coresets, whether they are nested."""
    sentences = []
    for method in dict.fromkeys(str(run.artifact.settings["method"]) for run in runs):
        same = [run for run in runs if run.artifact.settings["method"] == method]
        if len(same) > 1:
            sentences.append(f"{_method(method)}. {nesting(same)}")
    return sentences


def _pictured(contents: list[Content]) -> list[Content]:
    if len(contents) <= N_CORESETS:
        return contents
    return [*{content.coreset.method: content for content in contents}.values()][-N_CORESETS:]


def _method(name: str) -> str:
    return (METHODS if name in METHODS else SELECTORS).title(name)


def _evaluated(project: Project) -> EvaluationView | None:
    artifact = project.latest("evaluation")
    if artifact is None:
        return None
    return Evaluation(artifact.settings, artifact=artifact).view()


def _evaluated_before(project: Project, pool: Pool) -> list[str]:
    """A sentence where the newest evaluation is out of date."""
    artifact = project.latest("evaluation")
    sentence = "" if artifact is None else evaluated_before(project, artifact, pool)
    return [sentence] if sentence else []


def _evaluation(project: Project, pool: Pool) -> str:
    artifact, view = project.latest("evaluation"), _evaluated(project)
    if artifact is None or view is None:
        return draw.section("Evaluation", draw.paragraph("No coreset has been evaluated yet."))
    if not view.cells:
        return draw.section("Evaluation", draw.paragraph("No run of the evaluation has finished yet."))
    rows, strong = [], set()
    for at, method in enumerate(view.methods):
        cells = [view.cell(method, ratio) for ratio in view.ratios]
        rows.append([view.title(method), *("" if cell is None else _spread(cell) for cell in cells)])
        strong |= {(at, column) for column, r in enumerate(view.ratios, 1) if view.marks(r).get(method) == "best"}
    n_seeds = EvaluationRun(artifact).trials()["seed"].nunique()
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
    words = [
        f"Test accuracy ({view.tested_by.lower()}), mean and standard deviation over {seeds}; "
        "the best at each ratio is bold."
    ]
    words += [RANKED_BY] if view.has_uneven_seeds else []
    words += [OVER] if view.has_spread else []
    if view.full is not None:
        words.append(f"All images: {_spread(view.full)}.")
    labels = TRUTHS.get(str(artifact.facts.get("truth")), "the labels at hand")
    tests = TESTED_ON.get(str(artifact.facts.get("test")), "images that were not trained on")
    words.append(f"Coresets were trained with {labels} and tested on {artifact.facts['n_test']:,} images ({tests}).")
    words += filter(None, [view.caveat, artifact.facts.get("copies_words")])
    return draw.section(
        "Evaluation",
        *map(draw.paragraph, _evaluated_before(project, pool)),
        draw.paragraph(view.sentence()),
        *map(draw.paragraph, filter(None, map(artifact.facts.get, WARNINGS))),
        f'<figure class="plot">{svg_plot(view, inline=True)}</figure>',
        draw.table(["method", *(f"{ratio:.0%} pruned#" for ratio in view.ratios)], rows, strong=strong),
        draw.paragraph(" ".join(words), faint=True),
    )


def _spread(cell: Cell) -> str:
    return f"{cell.mean:.1%}" + (f" ± {100 * cell.sd:.1f}" if cell.sd is not None else "")


def _cost(project: Project, contents: list[Content]) -> str:
    """The receipt: what was measured, and what the coreset saves."""
    spent = {kind: _job_minutes(project, kind) for kind in COMPUTING}
    seconds, pool = _labeling_seconds(project), project.pool()
    each = ", ".join(f"{COMPUTING[kind]} {minutes:,.1f}" for kind, minutes in spent.items() if minutes)
    rows = [
        ("Labeling, measured in the browser", f"{seconds / 3600:.2f} h" if seconds else "not measured"),
        (f"Computing{f' ({each})' if each else ''}", f"{sum(spent.values()):,.1f} min"),
    ]
    if contents:
        content = contents[-1]
        n_labels = int(content.labels.human_mask.sum())
        rows += [
            ("Images that nobody had to label", f"{len(pool) - n_labels:,} of {len(pool):,}"),
            (
                f"Training on {content.run.artifact.id} instead of the pool, for as many epochs",
                f"{1 - len(content.kept_idx) / max(1, len(pool)):.0%} less time per epoch",
            ),
        ]
        kept = len(content.kept_idx) / max(1, len(pool))
        runs = project.artifacts("trajectory")
        if runs and spent["dynamics"]:
            whole = spent["dynamics"] / len(runs)
            words = f"Training on {content.run.artifact.id} like the measured run, estimated"
            rows.append((words, f"{whole * kept:,.1f} instead of {whole:,.1f} min"))
    return draw.section("Cost and gain", _gain(project, contents), draw.table(["item", "amount#"], rows))


def _gain(project: Project, contents: list[Content]) -> str:
    """The newest coreset against labeling and training on everything, as a picture."""
    if not contents:
        return ""
    content = contents[-1]
    settings = content.run.artifact.settings
    human = content.labels.human_mask
    gain = gain_of(
        project,
        method=settings["method"],
        pruning_ratio=settings["pruning_ratio"],
        n_kept=len(content.kept_idx),
        n_kept_labeled=int(human[content.kept_idx].sum()),
        n_labeled=int(human.sum()),
    )
    words = f"{content.run.artifact.id}, {_method(settings['method'])}, against all {gain.n_pool:,} images."
    return draw.paragraph(words) + gain_html(gain)


def _job_minutes(project: Project, kind: str) -> float:
    """How long the jobs of a kind that are over have worked, all attempts together."""
    over = [job for job in jobs.list_jobs(project, kind) if job.status().is_over]
    return sum(max(trained_seconds(job), job.status().seconds or 0) for job in over) / 60


def _settings(project: Project, runs: list[CoresetRun]) -> str:
    parts = []
    newest = [artifact for kind in ("pseudo", "scores") if (artifact := project.latest(kind)) is not None]
    for artifact in [*newest, *(run.artifact for run in runs)]:
        seed = artifact.manifest["seed"]
        parts += [
            draw.heading(artifact.id if seed is None else f"{artifact.id}, seed {seed}"),
            draw.settings(dict(_flat(artifact.settings))),
            draw.paragraph(f"SHA-256 of its content: {artifact.hash}", faint=True),
        ]
    parts.append(draw.paragraph(", ".join(f"{name} {number}" for name, number in versions().items()), faint=True))
    return draw.section("Settings and versions", *parts)


def _flat(settings: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as ``outer.inner``."""
    for name, value in sorted(settings.items()):
        if isinstance(value, Mapping):
            yield from _flat(value, f"{within}{name}.")
        else:
            shown = f"{value:.6g}" if isinstance(value, float) else files.canonical_json(value).strip('"')
            yield f"{within}{name}", "none" if value is None else shown
