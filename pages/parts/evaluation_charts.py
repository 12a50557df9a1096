"""The chart of an evaluation: accuracy or the lead over Random against pruning ratio, with bands."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from pages.parts.charts import calm, faint, is_dark, literal_label, text_colour
from semiprune_core.evaluation.plot import TWIN, PlotStyle, Point, colours_of, shown_first, side_by_side, symbols_of
from semiprune_core.evaluation.view import RANDOM, Cell, EvaluationView, percent, seeds

FAVOURITES = ("semi_aum_cutoff", "semi_dual_beta")
"""The methods of the paper, always drawn."""


def config(name: str) -> dict[str, Any]:
    """One tool only: save the picture, by the browser itself."""
    return {
        "displaylogo": False,
        "displayModeBar": True,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": "png", "filename": name, "scale": 3},
    }


def line_plot(view: EvaluationView, look: PlotStyle) -> go.Figure:
    """Every method as a line with its band; of many, some wait in the legend. Random is grey and dashed, a line across
    is the full data, or Random where differences to it are shown."""
    dark = is_dark()
    colours, symbols = colours_of(view, on_dark=dark), symbols_of(view)
    figure = go.Figure()
    ratios = list(view.ratios)
    ends = [ratios[0], ratios[-1]] if len(ratios) > 1 else [ratio + side for ratio in ratios for side in (-0.05, 0.05)]
    if ratios and look.content == "difference":
        figure.add_trace(_across(ends, 0.0, view.title(RANDOM), {"color": colours[RANDOM], "dash": "dash"}))
    elif ratios and view.full is not None:
        ink = {"color": text_colour(), "width": 1.2, "dash": "dot"}
        figure.add_trace(_across(ends, 100 * view.full.mean, "Full data", ink))
    drawn = {method: look.points(view.row(method)) for method in view.methods}
    drawn = {method: points for method, points in drawn.items() if points}
    first = shown_first(view, FAVOURITES)
    apart = side_by_side({method: drawn[method] for method in drawn if method in first}, ratios)
    placed = drawn | apart if look.has_whiskers or len(ratios) == 1 else drawn
    for method, points in drawn.items():
        for part in look.areas(points):
            figure.add_trace(_band(part, colours[method], method))
    for method, points in drawn.items():
        bars = look.bars(placed[method])
        if bars:
            figure.add_trace(_bars(bars, colours[method], method))
        line = _line(view, method, points, colours[method], symbols[method])
        line.x = [point.at for point in placed[method]]
        figure.add_trace(line)
    for trace in figure.data:
        if trace.legendgroup in drawn and trace.legendgroup not in first:
            trace.visible = "legendonly"
    figure = calm(figure, height=400 + 10 * len(drawn))  # a narrow screen puts the legend in one column
    figure.update_layout(
        showlegend=True,
        legend={
            "orientation": "h",
            "yref": "container",  # below the axis title however low a narrow screen makes the plot
            "y": 0,
            "yanchor": "bottom",
            "x": 0,
            "title": None,
            "traceorder": "normal",
        },
        margin={"l": 10, "r": 10, "t": 34, "b": 10},
        uirevision=look.content,
    )
    figure.update_xaxes(
        title=view.axis, tickmode="array", tickvals=ratios, ticktext=[percent(ratio) for ratio in ratios]
    )
    if ratios:  # the whole plan, also while only some ratios have results
        margin = max(0.04 * (ratios[-1] - ratios[0]), 0.02)
        figure.update_xaxes(range=[ratios[0] - margin, ratios[-1] + margin])
    figure.update_yaxes(title=look.axis_of(view), zeroline=False)
    return figure


def _across(ends: list[float], height: float, name: str, line: dict[str, Any]) -> go.Scatter:
    hover = f"{name}: {height:.1f}%" if height else name
    return go.Scatter(
        x=ends, y=[height] * 2, name=name, mode="lines", line=line, hovertemplate=f"{hover}<extra></extra>"
    )


def _band(points: list[Point], colour: str, method: str) -> go.Scatter:
    x = [point.at for point in points]
    lower, upper = ([point.ends[side] for point in points] for side in (0, 1))
    return go.Scatter(
        x=x + x[::-1],
        y=upper + lower[::-1],
        fill="toself",
        fillcolor=faint(colour, 0.13),
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=method,
    )


def _bars(points: list[Point], colour: str, method: str) -> go.Scatter:
    """Of their own, as a bar without height below a line's marker would still have its two ends drawn."""
    return go.Scatter(
        x=[point.at for point in points],
        y=[point.height for point in points],
        error_y={"array": [point.half for point in points], "thickness": 1, "width": 3, "color": colour},
        mode="markers",
        marker={"opacity": 0, "color": colour},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=method,
    )


def _line(view: EvaluationView, method: str, points: list[Point], colour: str, symbol: str) -> go.Scatter:
    cells = {cell.pruning_ratio: cell for cell in view.row(method)}
    return go.Scatter(
        x=[point.at for point in points],
        y=[point.height for point in points],
        name=literal_label(view.title(method)),
        legendgroup=method,
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": dash_of(method)},
        marker={"size": 8, "symbol": symbol, "color": colour},
        customdata=[_words(cells[point.at]) for point in points],
        hovertemplate="%{fullData.name}: %{customdata}<extra></extra>",
    )


def dash_of(method: str) -> str:
    """Random is dashed, what nobody relabeled dotted."""
    return "dash" if method == RANDOM else "dot" if method.endswith(TWIN) else "solid"


def _words(cell: Cell) -> str:
    """What stands behind a point: its spread, its seeds and its lead over Random."""
    words = f"{100 * cell.mean:.1f}%" + (f" ± {100 * cell.sd:.1f}" if cell.sd is not None else "")
    words += f" ({seeds(cell.n)}), {cell.n_train:,} images"
    if cell.difference is not None:
        lead = 100 * cell.difference.mean
        half = f" ± {100 * cell.difference.half:.1f}" if cell.difference.half is not None else ""
        words += f"<br>{abs(lead):.1f}{half} points {'below' if lead < 0 else 'above'} Random"
    return words
