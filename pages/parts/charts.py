"""Plotly figures in one quiet style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import streamlit as st


def accent() -> str:
    dark = st.context.theme.type == "dark"
    return "#2dd4bf" if dark else "#0f766e"


def calm(figure: go.Figure, *, height: int = 300) -> go.Figure:
    """Small margins, no legend unless asked, nothing that shouts."""
    figure.update_layout(
        height=height, margin={"l": 10, "r": 10, "t": 10, "b": 10}, showlegend=False, bargap=0.25, hovermode="closest"
    )
    return figure


def class_bars(counts: Mapping[str, int]) -> go.Figure:
    """One bar per class, the most frequent on top beyond a dozen classes, in class order before."""
    names = list(counts) if len(counts) <= 12 else sorted(counts, key=counts.__getitem__, reverse=True)
    figure = go.Figure(
        go.Bar(
            x=[counts[name] for name in names],
            y=list(range(len(names))),
            orientation="h",
            marker_color=accent(),
            text=[f"{counts[name]:,}" for name in names],
            textposition="auto",
            hovertemplate="%{x:,} images<extra></extra>",
        )
    )
    labels = [_safe(name) for name in names]
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=labels, autorange="reversed")
    figure.update_xaxes(title="Images")
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


def _safe(name: str) -> str:
    """Plotly reads a little HTML in labels: make user text literal."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
