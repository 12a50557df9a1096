"""Cost and gain of a coreset as a picture, with the team's own rates."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors
from semiprune_core.evaluation.gain import Gain, Rates, keep_rates, rates_of
from semiprune_core.evaluation.gain_bars import gain_html
from semiprune_core.project.workspace import Project


def draw(project: Project, gain: Gain, *, key: str) -> None:
    """The bars, and a place for what an hour costs."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**Cost and gain**", width="content")
        with st.popover("Rates", icon=":material/payments:"):
            _rates(project, key)
    bars(gain)


def bars(gain: Gain) -> None:
    st.html(gain_html(gain))


def _rates(project: Project, key: str) -> None:
    """Kept with the project: the other pages and the report use them, too."""
    known = rates_of(project)
    with st.form(f"{key}_rates", border=False):
        st.caption("What an hour costs your team. Kept with this project; 0 is not counted.")
        rates = Rates(
            label_hour=_number("An hour of labeling", known.label_hour, f"{key}_label_hour"),
            training_hour=_number("An hour of training (the machine)", known.training_hour, f"{key}_training_hour"),
            seconds_per_label=_number(
                "Seconds per label, where none was timed", known.seconds_per_label, f"{key}_seconds"
            ),
            currency=st.text_input("Currency", known.currency, max_chars=8, key=f"{key}_currency").strip(),
        )
        if st.form_submit_button("Keep"):
            errors.attempt(lambda: keep_rates(project, rates))


def _number(words: str, value: float, key: str) -> float:
    return float(st.number_input(words, 0.0, 1e6, value, key=key))
