"""The other way: a plain Streamlit page with one button per class, as one writes it in ten minutes."""

import os

import streamlit as st

from semiprune_core.project.workspace import Workspace


@st.cache_resource
def pool():
    return Workspace.open(os.environ["SEMIPRUNE_HOME"]).project(os.environ["BENCH_PROJECT"]).pool()


st.session_state.setdefault("at", 0)
st.session_state.setdefault("labels", {})


def label(number: int) -> None:
    st.session_state.labels[st.session_state.at] = number
    st.session_state.at += 1


images = pool()
st.image(images.original(st.session_state.at % len(images)), width=400)
for column, (number, name) in zip(st.columns(10), enumerate(images.class_names), strict=False):
    column.button(name, key=f"{st.session_state.at}_{number}", on_click=label, args=(number,))
