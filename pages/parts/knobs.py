"""Drawing what a registered function lets a person set: one control for each knob, as its signature declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from semiprune_core.knobs import PRUNING_RATIO, SCORE_NAMES, Knob
from semiprune_core.scores import SCORES

FIELD_WIDTH = 160


def draw(
    knobs: Mapping[str, Knob],
    *,
    key: str,
    start: Mapping[str, Any],
    around: Mapping[str, Any],
    scores: Sequence[str] = (),
) -> dict[str, Any]:
    """A control for each knob; what was chosen, by name.

    ``start`` holds values to begin with (their defaults otherwise), ``around`` what limits name: the pruning ratio,
    the run's length, other settings. ``scores`` are those to choose from.
    """
    ordered = sorted(knobs, key=lambda name: knobs[name].choices != SCORE_NAMES)  # what it goes by comes first
    return {
        name: _control(knobs[name], f"{key}_{name}", start.get(name, knobs[name].default), around, scores)
        for name in ordered
    }


def _control(knob: Knob, key: str, value: Any, around: Mapping[str, Any], scores: Sequence[str]) -> Any:
    help_text = knob.help or None
    if knob.choices == SCORE_NAMES:
        place = scores.index(value) if value in scores else 0
        return st.selectbox(knob.words, scores, place, format_func=SCORES.title, key=key)
    if knob.choices:
        return st.segmented_control(
            knob.words, list(knob.choices), default=value, required=True, key=key, help=help_text
        )
    if knob.kind is bool:
        return st.checkbox(knob.words, bool(value), key=key, help=help_text)
    if knob.kind is str:
        return st.text_input(knob.words, str(value), key=key, help=help_text)
    return _number(knob, key, value, around)


def _number(knob: Knob, key: str, value: Any, around: Mapping[str, Any]) -> Any:
    low, high = knob.limits(around)
    kind = knob.kind
    if value is None:
        value = high if high is not None else low or 0
    lowest, highest = (None if limit is None else kind(limit) for limit in (low, high))
    held = st.session_state.get(key, value)
    st.session_state[key] = kind(
        max(held if lowest is None else lowest, held if highest is None else min(held, highest))
    )
    is_slider = lowest is not None and highest is not None and (kind is float or isinstance(knob.high, str))
    if is_slider and lowest == highest:
        st.session_state.pop(key)
        return lowest
    step = knob.step or (1 if kind is int else 0.01)
    if is_slider:
        chosen = st.slider(knob.words, lowest, highest, step=kind(step), key=key, help=knob.help or None)
    else:
        chosen = st.number_input(
            knob.words, lowest, highest, step=kind(step), key=key, help=knob.help or None, width=FIELD_WIDTH
        )
    ratio = around.get(PRUNING_RATIO)
    if knob.high == PRUNING_RATIO and ratio is not None and chosen > ratio:
        st.caption(f"Held at the pruning ratio, {ratio:g}.")
        return kind(ratio)
    return kind(chosen)
