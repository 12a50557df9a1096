"""The chart of an evaluation: accuracy against pruning ratio, with bands."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from pages.parts.charts import calm
from pages.parts.score_charts import is_dark, literal_label
from semiprune_core.evaluation_plot import band_of, colours_of, symbols_of
from semiprune_core.evaluation_view import RANDOM, Cell, EvaluationView, percent, seeds


def config(name: str) -> dict[str, Any]:
    """One tool only: save the picture, by the browser itself."""
    return {
        "displaylogo": False,
        "displayModeBar": True,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": "png", "filename": name, "scale": 3},
    }


def accuracy_plot(view: EvaluationView, *, band: str = "sd") -> go.Figure:
    """Every method as a line with its band, Random grey and dashed, the full data as a line across."""
    dark = is_dark()
    colours, symbols = colours_of(view, on_dark=dark), symbols_of(view)
    figure = go.Figure()
    ratios = list(view.ratios)
    if view.full is not None and ratios:
        ends = [ratios[0], ratios[-1]] if len(ratios) > 1 else [ratios[0] - 0.05, ratios[0] + 0.05]
        figure.add_trace(
            go.Scatter(
                x=ends,
                y=[100 * view.full.mean] * 2,
                name="Full data",
                mode="lines",
                line={"color": "#e6eaea" if dark else "#1c2526", "width": 1.2, "dash": "dot"},
                hovertemplate=f"Full data: {100 * view.full.mean:.1f}%<extra></extra>",
            )
        )
    drawn = [(method, view.row(method)) for method in view.methods if view.row(method)]
    for method, row in drawn:
        if band != "none" and len(row) > 1 and any(band_of(cell, band) for cell in row):
            figure.add_trace(_band(row, band, colours[method], method))
    for method, row in drawn:
        figure.add_trace(_line(view, method, row, colours[method], symbols[method]))
    figure = calm(figure, height=400 + 10 * len(drawn))  # a narrow screen puts the legend in one column
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0, "title": None, "traceorder": "normal"},
        margin={"l": 10, "r": 10, "t": 34, "b": 10},
        uirevision="steady",
    )
    figure.update_xaxes(title=view.axis, tickmode="array", tickvals=ratios, ticktext=[percent(one) for one in ratios])
    if ratios:  # the whole plan, also while only some ratios have results
        margin = max(0.04 * (ratios[-1] - ratios[0]), 0.02)
        figure.update_xaxes(range=[ratios[0] - margin, ratios[-1] + margin])
    figure.update_yaxes(title="Test accuracy (%)")
    return figure


def _band(row: list[Cell], band: str, colour: str, method: str) -> go.Scatter:
    x = [cell.pruning_ratio for cell in row]
    upper = [100 * (cell.mean + band_of(cell, band)) for cell in row]
    lower = [100 * (cell.mean - band_of(cell, band)) for cell in row]
    return go.Scatter(
        x=x + x[::-1],
        y=upper + lower[::-1],
        fill="toself",
        fillcolor=_thin(colour),
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=method,
    )


def _line(view: EvaluationView, method: str, row: list[Cell], colour: str, symbol: str) -> go.Scatter:
    return go.Scatter(
        x=[cell.pruning_ratio for cell in row],
        y=[100 * cell.mean for cell in row],
        name=literal_label(view.title(method)),
        legendgroup=method,
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": "dash" if method == RANDOM else "solid"},
        marker={"size": 8, "symbol": symbol, "color": colour},
        customdata=[_words(cell) for cell in row],
        hovertemplate="%{fullData.name}: %{y:.1f}%{customdata}<extra></extra>",
    )


def _words(cell: Cell) -> str:
    """What stands behind a point: its spread, its seeds and its lead over Random."""
    said = f"% ± {100 * cell.sd:.1f}" if cell.sd is not None else "%"
    said += f" ({seeds(cell.n)}), {cell.n_train:,} images"
    if cell.difference is not None:
        half = f" ± {100 * cell.difference.half:.1f}" if cell.difference.half is not None else ""
        said += f"<br>{100 * cell.difference.mean:+.1f}{half} points to Random"
    return said


def _thin(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.13)"
