"""Plotly figures in one quiet style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import streamlit as st

from semiprune_core.training import Curves

QUIET = {"displayModeBar": False}
"""For charts that need no tools, or are redrawn while somebody looks."""
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None, "traceorder": "normal"}


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def accent() -> str:
    return "#2dd4bf" if is_dark() else "#0f766e"


def text_colour() -> str:
    return "#e6eaea" if is_dark() else "#1c2526"


def literal_label(name: str, limit: int | None = None) -> str:
    """Plotly reads a little HTML in labels: make user text literal, and at most ``limit`` characters long."""
    short = name if limit is None or len(name) <= limit else name[: limit - 1] + "…"
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def calm(figure: go.Figure, *, height: int = 300) -> go.Figure:
    """Small margins, no legend unless asked, nothing that shouts."""
    figure.update_layout(
        height=height, margin={"l": 10, "r": 10, "t": 10, "b": 10}, showlegend=False, bargap=0.25, hovermode="closest"
    )
    return figure


def class_bars(counts: Mapping[str, int], *, shares: bool = False) -> go.Figure:
    """One bar per class, the most frequent on top beyond a dozen classes, in class order before.

    With ``shares`` as parts of the whole: for counts that are no numbers of images.
    """
    unit, number = ("Share", ".0%") if shares else ("Images", ",")
    values = {name: count / sum(counts.values()) for name, count in counts.items()} if shares else counts
    names = list(counts) if len(counts) <= 12 else sorted(counts, key=counts.__getitem__, reverse=True)
    figure = go.Figure(
        go.Bar(
            x=[values[name] for name in names],
            y=list(range(len(names))),
            orientation="h",
            marker_color=accent(),
            text=[format(values[name], number) for name in names],
            textposition="auto",
            hovertemplate="%{x:.1%}<extra></extra>" if shares else "%{x:,} images<extra></extra>",
        )
    )
    labels = [literal_label(name) for name in names]
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=labels, autorange="reversed")
    figure.update_xaxes(title=unit, tickformat=number)
    return calm(figure, height=max(160, min(1400, 40 + 26 * len(names))))


def size_scatter(sizes: Sequence[tuple[int, int, int]]) -> go.Figure:
    """Width against height; the area of a dot is its share of the images."""
    total = sum(number for *_, number in sizes) or 1
    figure = go.Figure(
        go.Scatter(
            x=[width for width, *_ in sizes],
            y=[height for _, height, _ in sizes],
            mode="markers",
            marker={
                "size": [6 + 30 * (number / total) ** 0.5 for *_, number in sizes],
                "color": accent(),
                "opacity": 0.55,
                "line": {"width": 0},
            },
            customdata=[number for *_, number in sizes],
            hovertemplate="%{x} x %{y} px: %{customdata:,} images<extra></extra>",
        )
    )
    figure.update_xaxes(title="Width", rangemode="tozero")
    figure.update_yaxes(title="Height", rangemode="tozero")
    return calm(figure)


def second_colours() -> tuple[str, str]:
    """A second colour and a quiet grey that are readable on the current background."""
    return ("#f0b35a", "#8b9696") if is_dark() else ("#b45309", "#6b7676")


def loss_curve(curves: Curves) -> go.Figure:
    """The loss over the steps, and of what it is made."""
    other, grey = second_colours()
    figure = go.Figure()
    for name, title, colour in (
        ("unsupervised_loss", "unlabeled", grey),
        ("supervised_loss", "labeled", other),
        ("loss", "total", accent()),
    ):
        points = curves.lines[name]
        if points and (name == "loss" or curves.lines["unsupervised_loss"]):
            figure.add_trace(_line(points, title, colour))
    figure.update_yaxes(rangemode="tozero")
    return _over_steps(figure)


def accuracy_curve(curves: Curves) -> go.Figure:
    """Held-out accuracy with its 95% interval as a band; reference accuracy beside it where it is known."""
    other, _ = second_colours()
    figure = go.Figure()
    held = curves.checks["held_out"]
    if held:
        steps = [point[0] for point in held]
        band = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        figure.add_trace(go.Scatter(x=steps, y=[point[3] for point in held], **band))
        fill = faint(accent())
        figure.add_trace(go.Scatter(x=steps, y=[point[2] for point in held], fill="tonexty", fillcolor=fill, **band))
        figure.add_trace(
            go.Scatter(
                x=steps,
                y=[point[1] for point in held],
                name="held-out labels",
                mode="lines+markers",
                line={"color": accent(), "width": 2},
                marker={"size": 5},
                customdata=[point[2:] for point in held],
                hovertemplate="%{y:.1%} (%{customdata[0]:.0%} to %{customdata[1]:.0%})<extra></extra>",
            )
        )
    reference = curves.checks["reference"]
    if reference:
        trace = _line([point[:2] for point in reference], "reference labels", other)
        trace.update(line={"color": other, "width": 2, "dash": "dot"}, hovertemplate="%{y:.1%}<extra></extra>")
        figure.add_trace(trace)
    figure.update_yaxes(tickformat=".0%")
    return _over_steps(figure)


def single_curve(points: Sequence[tuple[int, float]], *, share: bool = False) -> go.Figure:
    """One quantity over the steps."""
    figure = go.Figure(_line(points, "", accent()))
    if share:
        figure.update_yaxes(tickformat=".0%", range=[0, 1])
    else:
        figure.update_yaxes(rangemode="tozero")
    return _over_steps(figure, height=170)


def _line(points: Sequence[tuple[int, float]], title: str, colour: str) -> go.Scatter:
    return go.Scatter(
        x=[step for step, _ in points],
        y=[value for _, value in points],
        name=title,
        mode="lines",
        line={"color": colour, "width": 1.8},
        hovertemplate="%{y:.3g}<extra></extra>",
    )


def _over_steps(figure: go.Figure, *, height: int = 260) -> go.Figure:
    figure = calm(figure, height=height)
    figure.update_layout(
        showlegend=sum(bool(trace.name) for trace in figure.data) > 1,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        hovermode="x unified",
        uirevision="steady",
    )
    figure.update_xaxes(title="Step", rangemode="tozero")
    return figure


def faint(colour: str, opacity: float = 0.16) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
