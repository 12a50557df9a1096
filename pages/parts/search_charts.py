"""The figure of a search: accuracy over the values tried, one line per ratio, Random dashed beside it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from pages.parts.charts import LEGEND, calm, faint
from semiprune_core.labeling.classes import PALETTE
from semiprune_core.search import Curve


def accuracy_over_values(curves: Sequence[Curve], *, knob: str, tested_by: str) -> go.Figure:
    """Points are means over the seeds, bars their deviation; the band is Random's."""
    figure = go.Figure()
    left, right = _ends(curves)
    for curve, colour in zip(curves, PALETTE, strict=False):
        name = f"ratio {curve.pruning_ratio:g}"
        if curve.random is not None:
            mean, spread = curve.random
            quiet = {"mode": "lines", "hoverinfo": "skip", "showlegend": False, "legendgroup": name}
            edge = {"color": colour, "width": 0}
            figure.add_trace(go.Scatter(x=[left, right], y=[mean + spread] * 2, line=edge, **quiet))
            figure.add_trace(
                go.Scatter(
                    x=[left, right], y=[mean - spread] * 2, line=edge, fill="tonexty", fillcolor=faint(colour), **quiet
                )
            )
            quiet["hoverinfo"] = "text"
            dashed = {"color": colour, "width": 1.5, "dash": "dash"}
            words = f"Random at {curve.pruning_ratio:g}: {mean:.1%} ± {spread:.1%}"
            figure.add_trace(go.Scatter(x=[left, right], y=[mean] * 2, line=dashed, text=words, **quiet))
        figure.add_trace(
            go.Scatter(
                x=[point[0] for point in curve.points],
                y=[point[1] for point in curve.points],
                error_y={"type": "data", "array": [point[2] for point in curve.points], "thickness": 1, "width": 3},
                mode="lines+markers",
                name=name,
                legendgroup=name,
                line={"color": colour, "width": 2},
                marker={"size": 7},
                hovertemplate=f"{knob} %{{x:g}}: %{{y:.1%}}<extra>{name}</extra>",
            )
        )
    figure = calm(figure, height=360)
    figure.update_layout(showlegend=True, legend=LEGEND, uirevision="steady")
    figure.update_xaxes(title=knob)
    figure.update_yaxes(tickformat=".0%", title=f"Accuracy on held-out pseudo-labels ({tested_by.lower()})")
    return figure


def _ends(curves: Sequence[Curve]) -> tuple[float, float]:
    """Where Random's lines begin and end: a little beyond the values."""
    values = [point[0] for curve in curves for point in curve.points] or [0.0]
    margin = 0.05 * (max(values) - min(values) or 1.0)
    return min(values) - margin, max(values) + margin
