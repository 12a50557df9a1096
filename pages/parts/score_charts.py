"""Figures of the Scores and Select pages. Numbers come counted from the core; here they only get their looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pages.parts.charts import LEGEND, accent, calm, is_dark, literal_label
from semiprune_core.coresets.score_view import Groups, ImageStory, Plane
from semiprune_core.coresets.select_view import Density, Preview
from semiprune_core.labeling.classes import PALETTE

PICKING = {"displaylogo": False, "modeBarButtons": [["select2d", "zoom2d", "resetScale2d"]]}
TOOLS_HEIGHT = 30
"""Pixels on top of a chart for Plotly's tools, so that they lie over neither data nor legend."""
MANY_CLASSES = 20


def grey() -> str:
    return "#4b5656" if is_dark() else "#c9d0d0"


def warm() -> str:
    """The one colour beside the accent: what is wrong, or where to look."""
    return "#f0b35a" if is_dark() else "#c2620a"


def group_colours(groups: Groups) -> list[str]:
    if groups.kind == "class" and len(groups.names) > 2:
        return list(PALETTE[: len(groups.names)])
    return {1: [accent()], 2: [grey(), accent()]}[len(groups.names)] if groups.kind != "right" else [warm(), accent()]


def score_histogram(edges: np.ndarray, counts: np.ndarray, groups: Groups, *, title: str) -> go.Figure:
    """Stacked bars; each carries (bin, group) so that a click can be traced to its images."""
    figure = go.Figure()
    centres, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
    for number, (name, colour) in enumerate(zip(groups.names, group_colours(groups), strict=True)):
        figure.add_trace(
            go.Bar(
                x=centres,
                y=counts[number],
                width=width,
                name=literal_label(name),
                marker={"color": colour, "line": {"width": 0}},
                customdata=np.stack([np.arange(len(centres)), np.full(len(centres), number)], axis=1),
                hovertemplate="%{x:.3f}: %{y:,} images<extra>" + literal_label(name) + "</extra>",
            )
        )
    figure = calm(figure, height=270 + TOOLS_HEIGHT)
    figure.update_layout(
        margin_t=2 * TOOLS_HEIGHT,  # the legend has the lower one
        barmode="stack",
        bargap=0,
        dragmode="select",
        selectdirection="h",
        showlegend=len(groups.names) > 1,
        legend=LEGEND,
        clickmode="event+select",
    )
    figure.update_xaxes(title=title)
    figure.update_yaxes(title="Images")
    return figure


def plane(points: Plane, *, title: str) -> go.Figure:
    """Mean probability against deviation, coloured by a score; points carry their id."""
    size = 5 if not points.is_density else 7
    extra = "" if points.counts is None else "<br>%{text:,} images"
    figure = go.Figure(
        go.Scattergl(
            x=points.x.astype(np.float32),
            y=points.y.astype(np.float32),
            mode="markers",
            customdata=points.ids.astype(np.int32),
            text=points.counts,
            marker={
                "size": size,
                "symbol": "square" if points.is_density else "circle",
                "color": points.value.astype(np.float32),
                "colorscale": "Cividis",
                "opacity": 0.9 if points.is_density else 0.7,
                "line": {"width": 0},
                "colorbar": {"title": {"text": title, "side": "right"}, "thickness": 10, "outlinewidth": 0},
            },
            hovertemplate="mean %{x:.2f}, deviation %{y:.2f}<br>"
            + title
            + " %{marker.color:.3f}"
            + extra
            + "<extra></extra>",
        )
    )
    figure = calm(figure, height=420 + TOOLS_HEIGHT)
    figure.update_layout(margin_t=TOOLS_HEIGHT, dragmode="select", clickmode="event+select")
    figure.update_xaxes(title="Prediction mean", range=[-0.02, 1.02])
    figure.update_yaxes(title="Prediction deviation", rangemode="tozero")
    return figure


def trajectory(story: ImageStory) -> go.Figure:
    """The label's probability over the epochs, with mean and deviation of each window as a band at its middle."""
    epochs = np.arange(1, len(story.target_prob) + 1)
    figure = go.Figure()
    if len(story.window_mean) > 1:
        middle = np.arange(len(story.window_mean)) + (story.window + 1) / 2
        band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        low, high = story.window_mean - story.window_deviation, story.window_mean + story.window_deviation
        figure.add_trace(go.Scatter(x=middle, y=np.clip(high, 0, 1), **band))
        fill = "rgba(45, 212, 191, 0.18)" if is_dark() else "rgba(15, 118, 110, 0.14)"
        figure.add_trace(go.Scatter(x=middle, y=np.clip(low, 0, 1), fill="tonexty", fillcolor=fill, **band))
        figure.add_trace(
            go.Scatter(
                x=middle,
                y=story.window_mean,
                mode="lines",
                name=f"mean of {story.window} epochs",
                line={"color": accent(), "width": 1, "dash": "dot"},
                customdata=story.window_deviation,
                hovertemplate="window mean %{y:.2f}, deviation %{customdata:.2f}<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=epochs,
            y=story.margin,
            mode="lines",
            name="margin",
            line={"color": grey(), "width": 1.5},
            hovertemplate="margin %{y:.2f}<extra></extra>",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=epochs,
            y=story.target_prob,
            mode="lines+markers",
            name="probability of the label",
            line={"color": accent(), "width": 2},
            marker={"size": 4},
            hovertemplate="probability %{y:.2f}<extra></extra>",
        )
    )
    figure = calm(figure, height=260)
    figure.update_layout(showlegend=True, legend=LEGEND, hovermode="x unified")
    figure.update_xaxes(title="Epoch")
    figure.update_yaxes(range=[-1.05 if story.margin.min() < -0.05 else -0.05, 1.05])
    return figure


def kept_and_dropped(preview: Preview, *, title: str) -> go.Figure:
    """The pool's histogram, what is kept in colour; for Beta sampling its density as a line."""
    centres, width = (preview.edges[:-1] + preview.edges[1:]) / 2, float(preview.edges[1] - preview.edges[0])
    figure = go.Figure()
    for name, counts, colour in (("kept", preview.kept, accent()), ("dropped", preview.dropped, grey())):
        figure.add_trace(
            go.Bar(
                x=centres,
                y=counts,
                width=width,
                name=name,
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate="%{x:.3f}: %{y:,} " + name + "<extra></extra>",
            )
        )
    if preview.density is not None and preview.score == "mean_prob":
        figure.add_trace(_density_line(preview.density))
    figure = calm(figure, height=300)
    figure.update_layout(
        barmode="stack",
        bargap=0,
        showlegend=True,
        legend=LEGEND,
        uirevision="steady",
        yaxis2={"overlaying": "y", "side": "right", "visible": False, "rangemode": "tozero"},
    )
    figure.update_xaxes(title=title)
    figure.update_layout(yaxis={"title": "Images"})
    return figure


def _density_line(density: Density) -> go.Scatter:
    return go.Scatter(
        x=density.x,
        y=density.y,
        yaxis="y2",
        mode="lines",
        name=f"Beta({density.alpha:.1f}, {density.beta:.1f})",
        line={"color": warm(), "width": 2},
        hovertemplate="density %{y:.2f}<extra></extra>",
    )


def class_balance(names: Sequence[str], before: np.ndarray, after: np.ndarray) -> go.Figure:
    """Each class's share of the pool and of the coreset; many classes as a sorted curve, without names."""
    share_before, share_after = before / max(before.sum(), 1), after / max(after.sum(), 1)
    figure = go.Figure()
    if len(names) > MANY_CLASSES:
        order = np.argsort(-before, kind="stable")
        rank = np.arange(1, len(names) + 1)
        hover = [literal_label(names[i]) for i in order]
        for word, share, colour, width in (
            ("coreset", share_after, accent(), 1.2),
            ("pool", share_before, "#8b9696", 2.5),
        ):
            figure.add_trace(
                go.Scatter(
                    x=rank,
                    y=share[order],
                    mode="lines",
                    name=word,
                    line={"color": colour, "width": width},
                    text=hover,
                    hovertemplate="%{text}: %{y:.2%} of the " + word + "<extra></extra>",
                )
            )
        figure = calm(figure, height=300)
        figure.update_xaxes(title="Classes, by size in the pool")
        figure.update_yaxes(tickformat=".1%", rangemode="tozero", title="Share")
        figure.update_layout(showlegend=True, legend=LEGEND, uirevision="steady")
        return figure
    labels = [literal_label(name) for name in names]
    for word, share, counts, colour in (
        ("pool", share_before, before, grey()),
        ("coreset", share_after, after, accent()),
    ):
        figure.add_trace(
            go.Bar(
                y=list(range(len(names))),
                x=share,
                orientation="h",
                name=word,
                marker_color=colour,
                customdata=counts,
                hovertemplate="%{customdata:,} images, %{x:.1%} of the " + word + "<extra></extra>",
            )
        )
    figure = calm(figure, height=max(200, 60 + 30 * len(names)))
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=labels, autorange="reversed")
    figure.update_xaxes(tickformat=".0%", title="Share")
    figure.update_layout(showlegend=True, legend=LEGEND, bargap=0.3, bargroupgap=0.05, uirevision="steady")
    return figure


def training_curve(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy against the pseudo-labels and on the test images, epoch by epoch, with the loss behind them."""
    figure = go.Figure()
    for name, title, colour, axis in (
        ("train_loss", "loss", "#8b9696", "y2"),
        ("train_accuracy", "agreement with the labels", accent(), "y"),
        ("test_accuracy", "test accuracy", warm(), "y"),
    ):
        points = [(epoch["epoch"], epoch[name]) for epoch in history if epoch.get(name) is not None]
        if points:
            x, y = zip(*points, strict=True)
            figure.add_trace(
                go.Scatter(
                    x=x,
                    y=y,
                    mode="lines+markers",
                    marker={"size": 4},
                    name=title,
                    yaxis=axis,
                    line={"color": colour, "width": 1 if axis == "y2" else 2},
                    hovertemplate="%{y:.3f}" if axis == "y2" else "%{y:.1%}",
                )
            )
    figure = calm(figure, height=240)
    figure.update_layout(
        showlegend=True,
        legend=LEGEND,
        hovermode="x unified",
        uirevision="steady",
        yaxis={"tickformat": ".0%", "title": "Accuracy"},
        yaxis2={"overlaying": "y", "side": "right", "showgrid": False, "rangemode": "tozero", "title": "Loss"},
    )
    figure.update_xaxes(title="Epoch")
    return figure
