"""An evaluation as tables for others: CSV of trials and of means, plain text, LaTeX, and HTML for the page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd

from semiprune_core.evaluation.settings import RANDOM
from semiprune_core.evaluation.view import RANKED_BY, Cell, EvaluationView, percent, points, summary
from semiprune_core.paths import shown
from semiprune_core.project.spreadsheet import safe_cell
from semiprune_core.results.search import OVER

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
    "…": r"\ldots{}",
}


# --- CSV -----------------------------------------------------------------------------------------------------------


def trials_csv(trials: pd.DataFrame, tested_by: str = "") -> str:
    """Every training as one row, with the kind of test; texts that a spreadsheet would run get an apostrophe."""
    return _csv(trials.assign(tested_by=tested_by) if tested_by else trials)


def summary_csv(view: EvaluationView) -> str:
    """One row per method and ratio: mean, spread, difference to Random, minutes."""
    return _csv(summary(view))


def _csv(table: pd.DataFrame) -> str:
    safe = table.copy()
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = [safe_cell(str(value)) if pd.notna(value) else "" for value in safe[name]]
    return safe.to_csv(index=False, float_format="%.6g", lineterminator="\n")


# --- plain text ----------------------------------------------------------------------------------------------------

TEXT_NOTE = (
    "Difference from Random in percentage points, paired by seed, ± half its 95% interval. Minutes are per training.\n"
    f"{OVER}"
)


def text_table(view: EvaluationView) -> str:
    """One line per method and ratio for a terminal, full data first, then ratio by ratio; "–" where it is not known."""
    cells = [view.full] if view.full else []
    measured = [view.cell(method, ratio) for ratio in view.ratios for method in view.methods]
    cells += [cell for cell in measured if cell is not None]
    rows = [("Method", view.axis, "Mean", "SD", "Vs Random", "Minutes")]
    rows += [
        (
            shown(view.title(cell.method), 60),
            percent(cell.pruning_ratio) if cell is not view.full else "–",
            f"{cell.shown:.1f}%",
            points(cell.sd) if cell.sd is not None else "–",
            _signed(cell),
            f"{cell.minutes:.1f}",
        )
        for cell in cells
    ]
    first, *others = [max(map(len, column)) for column in zip(*rows)]
    lines = [
        "  ".join([row[0].ljust(first), *(text.rjust(width) for text, width in zip(row[1:], others))]) for row in rows
    ]
    return "\n".join([*([f"Test: {view.tested_by.lower()}"] if view.tested_by else []), *lines])


def _signed(cell: Cell) -> str:
    difference = cell.difference
    if difference is None:
        return "–"
    return f"{100 * difference.mean:+.1f}" + (f" ± {points(difference.half)}" if difference.half is not None else "")


# --- LaTeX ---------------------------------------------------------------------------------------------------------


def latex_text(text: str) -> str:
    r"""Any text, literally, for LaTeX.

    >>> latex_text("50% of a_b")
    '50\\% of a\\_b'
    """
    return "".join(LATEX.get(char, char) for char in shown(text, 1000))


def latex_table(
    view: EvaluationView, *, caption: str = "", paper: Mapping[tuple[str, float], float] | None = None
) -> str:
    """Methods by ratios in percent, best bold, second underlined, as the paper has it; needs booktabs.

    ``paper`` has the paper's own percentages by (method, ratio): they stand behind ours in parentheses.
    """
    paper = paper or {}
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}[t]",
        r"\centering",
        f"\\caption{{{latex_text(caption or table_caption(view, paper=bool(paper)))}}}",
        f"\\begin{{tabular}}{{l{'c' * len(view.ratios)}}}",
        r"\toprule",
        " & ".join([latex_text(view.axis), *(latex_text(percent(ratio)) for ratio in view.ratios)]) + r" \\",
        r"\midrule",
    ]
    for method in view.methods:
        cells = [_latex_cell(view, method, ratio, paper.get((method, ratio))) for ratio in view.ratios]
        lines.append(" & ".join([latex_text(view.title(method)), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _latex_cell(view: EvaluationView, method: str, ratio: float, theirs: float | None) -> str:
    behind = f" ({theirs:.1f})" if theirs is not None else ""
    cell = view.cell(method, ratio)
    if cell is None:
        return f"--{behind}"
    number = f"{cell.shown:.1f}"
    command = {"best": "textbf", "second": "underline"}.get(view.marks(ratio).get(method, ""))
    number = f"\\{command}{{{number}}}" if command else number
    spread = f" $\\pm$ {points(cell.sd)}" if cell.sd is not None else ""
    return f"{number}{spread}{behind}"


def table_caption(view: EvaluationView, *, paper: bool = False) -> str:
    """What the numbers of the table are, as its caption."""
    counts = sorted({cell.n for cell in view.cells.values()})
    over = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds" if counts else "no seeds"
    kind = f" ({view.tested_by.lower()})" if view.tested_by else ""
    words = f"Test accuracy{kind} in percent by {view.axis.lower()}"
    words += ", one seed." if counts == [1] else f", mean ± standard deviation over {over}."
    words += f" {OVER}" if view.has_spread else ""
    if view.full is not None:
        words += f" All images: {100 * view.full.mean:.1f}."
    if view.has_uneven_seeds:
        words += f" {RANKED_BY}"
    if view.caveat:
        words += f" {view.caveat}"
    return words + (" In parentheses: the paper." if paper else "")


# --- HTML ----------------------------------------------------------------------------------------------------------


def html_table(
    view: EvaluationView, *, content: str = "accuracy", paper: Mapping[tuple[str, float], float] | None = None
) -> str:
    """The table as it stands on the page, every text escaped.

    ``content``: ``accuracy`` (mean ± sd, best bold, second underlined), ``difference`` (points above Random, with its
    95% interval; what lies beyond it in bold) or ``minutes`` (of one training).
    """
    paper = paper or {}
    head = "".join(f"<th>{percent(ratio)}</th>" for ratio in view.ratios)
    rows = []
    for method in view.methods:
        if content == "difference" and method == RANDOM:
            continue
        cells = "".join(
            f"<td>{_html_cell(view, method, ratio, content, paper.get((method, ratio)))}</td>" for ratio in view.ratios
        )
        rows.append(f"<tr><th>{escape(shown(view.title(method), 60))}</th>{cells}</tr>")
    if content != "difference" and view.full is not None and view.ratios:
        value = _spread(view.full) if content == "accuracy" else f"{view.full.minutes:.1f}"
        rest = f'<td colspan="{len(view.ratios) - 1}"></td>' if len(view.ratios) > 1 else ""
        rows.append(f'<tr class="full"><th>Full data</th><td>{value}</td>{rest}</tr>')
    frame = '<div class="studio-evaluation" role="region" aria-label="Table" tabindex="0">'
    return (
        f"{frame}<table><thead><tr><th>{escape(view.axis)}</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _spread(cell: Cell) -> str:
    behind = f' <span class="spread">± {points(cell.sd)}</span>' if cell.sd is not None else ""
    return f"{cell.shown:.1f}{behind}"


def _html_cell(view: EvaluationView, method: str, ratio: float, content: str, theirs: float | None) -> str:
    cell = view.cell(method, ratio)
    behind = f'<span class="paper">{theirs:.1f}</span>' if theirs is not None and content == "accuracy" else ""
    if cell is None:
        return f'<span class="none">–</span>{behind}'
    if content == "minutes":
        return f"{cell.minutes:.1f}"
    if content == "difference":
        difference = cell.difference
        if difference is None:
            return '<span class="none">–</span>'
        half = f' <span class="spread">± {points(difference.half)}</span>' if difference.half is not None else ""
        number = f"{100 * difference.mean:+.1f}".replace("-", "−")
        return f"<b>{number}</b>{half}" if difference.verdict in ("above", "below") else f"{number}{half}"
    number = f"{cell.shown:.1f}"
    number = {"best": f"<b>{number}</b>", "second": f"<u>{number}</u>"}.get(view.marks(ratio).get(method, ""), number)
    half = f' <span class="spread">± {points(cell.sd)}</span>' if cell.sd is not None else ""
    return f"{number}{half}{behind}"
