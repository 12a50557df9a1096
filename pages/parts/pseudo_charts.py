"""Figures of the page Pseudo-labels, in the quiet style of ``charts``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.parts.charts import accent, calm, literal_label, text_colour
from semiprune_core.learning.quality import Bin, Share
from semiprune_core.trust.quality_report import ClassRow

GREY = "#8a8f98"
ORANGE = "#d55e00"
MOST_ROWS = 40


def accuracy_per_class(names: Sequence[str], shares: Sequence[Share | None], overall: Share) -> go.Figure:
    """One dot per class with its 95% interval; the band is the interval of all classes together."""
    rows = [(name, share) for name, share in zip(names, shares, strict=True) if share is not None]
    if len(rows) > 12:
        rows = sorted(rows, key=lambda row: row[1].value)[:MOST_ROWS]
    figure = go.Figure(
        go.Scatter(
            x=[share.value for _, share in rows],
            y=list(range(len(rows))),
            mode="markers",
            marker={"size": 9, "color": accent()},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [share.high - share.value for _, share in rows],
                "arrayminus": [share.value - share.low for _, share in rows],
                "color": accent(),
                "thickness": 1.5,
            },
            customdata=[(share.low, share.high, share.n) for _, share in rows],
            hovertemplate="%{x:.0%}, %{customdata[0]:.0%} to %{customdata[1]:.0%}, n = %{customdata[2]}<extra></extra>",
        )
    )
    figure.add_vrect(x0=overall.low, x1=overall.high, fillcolor=GREY, opacity=0.18, line_width=0)
    figure.update_xaxes(range=[-0.01, 1.02], tickformat=".0%", title="Accuracy on held-out labels")
    _class_axis(figure, [name for name, _ in rows])
    return calm(figure, height=max(170, 60 + 26 * len(rows)))


def _class_axis(figure: go.Figure, names: Sequence[str]) -> None:
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[literal_label(name, 22) for name in names],
        autorange="reversed",
    )


def reliability(bins: Sequence[Bin]) -> go.Figure:
    """Accuracy against confidence; on the dotted line confidence can be taken at its word."""
    figure = go.Figure()
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"dash": "dot", "color": GREY})
    most = max((bin_.n for bin_ in bins), default=1)
    figure.add_scatter(
        x=[bin_.confidence for bin_ in bins],
        y=[bin_.accuracy for bin_ in bins],
        mode="lines+markers",
        line={"color": accent(), "width": 1.5},
        marker={"color": accent(), "size": [6 + 16 * (bin_.n / most) ** 0.5 for bin_ in bins]},
        customdata=[bin_.n for bin_ in bins],
        cliponaxis=False,
        hovertemplate="says %{x:.0%}, is right %{y:.0%}, n = %{customdata}<extra></extra>",
    )
    figure.update_xaxes(range=[0, 1.02], tickformat=".0%", title="Confidence")
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%", title="Accuracy")
    return calm(figure, height=290)


def confidences(values: np.ndarray) -> go.Figure:
    """How sure the model is of its answers."""
    counts, edges = np.histogram(values, bins=40, range=(0, 1))
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            width=1 / 42,
            marker_color=accent(),
            hovertemplate="%{x:.0%}: %{y:,} images<extra></extra>",
        )
    )
    figure.update_xaxes(range=[0, 1], tickformat=".0%", title="Confidence")
    figure.update_yaxes(title="Images")
    return calm(figure, height=290)


def distribution(rows: Sequence[ClassRow]) -> go.Figure:
    """Per class: images by pseudo-label, what the random labels lead us to expect, and the reference where known."""
    if len(rows) > 12:
        rows = sorted(rows, key=lambda row: (row.verdict == "", -row.n_pseudo))[:MOST_ROWS]
    places = list(range(len(rows)))
    figure = go.Figure(
        go.Bar(
            x=[row.n_pseudo for row in rows],
            y=places,
            orientation="h",
            name="Pseudo-labels",
            marker_color=[ORANGE if row.verdict else accent() for row in rows],
            opacity=0.55,
            hovertemplate="%{x:,} images<extra>Pseudo-labels</extra>",
        )
    )
    if all(row.expected is not None for row in rows):
        figure.add_scatter(
            x=[row.expected for row in rows],
            y=places,
            mode="markers",
            name="Expected from human labels, 95%",
            marker={"color": text_colour(), "size": 8, "symbol": "line-ns-open"},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [row.high - row.expected for row in rows],  # type: ignore[operator]
                "arrayminus": [row.expected - row.low for row in rows],  # type: ignore[operator]
                "color": text_colour(),
                "thickness": 1.5,
            },
            hovertemplate="%{x:,.0f} expected<extra>Human labels</extra>",
        )
    if any(row.n_reference for row in rows):
        figure.add_scatter(
            x=[row.n_reference for row in rows],
            y=places,
            mode="markers",
            name="Reference",
            marker={"color": ORANGE, "size": 9, "symbol": "diamond-open", "line": {"width": 2}},
            hovertemplate="%{x:,} images<extra>Reference</extra>",
        )
    _class_axis(figure, [row.name for row in rows])
    figure.update_xaxes(title="Images", rangemode="tozero")
    calm(figure, height=max(200, 90 + 28 * len(rows)))
    return figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
