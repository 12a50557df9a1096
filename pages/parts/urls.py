"""Addresses of our own routes, below the app's base path."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st


def base() -> str:
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}/studio" if path else "/studio"


def home() -> str:
    """The app's first page."""
    return f"{base().removesuffix('/studio')}/"


def picture(project: str, image_id: str, size: str = "thumb") -> str:
    return f"{base()}/projects/{quote(project)}/images/{image_id}/{size}"


def problems(project: str) -> str:
    return f"{base()}/projects/{quote(project)}/problems.csv"


def export(project: str, name: str) -> str:
    return f"{base()}/projects/{quote(project)}/exports/{quote(name)}"


def labels(project: str, form: str) -> str:
    return f"{base()}/projects/{quote(project)}/labels/export/{quote(form)}"
