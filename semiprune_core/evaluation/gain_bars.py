"""The picture of a gain: for labels, hours, training and accuracy a bar of the coreset below one of the whole pool."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from semiprune_core.evaluation.gain import Gain
from semiprune_core.evaluation.view import Cell

STYLE = """<style>
.studio-gain { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem 1.6rem;
  margin: .3rem 0 .6rem; }
.studio-gain h5 { font-size: .95rem; font-weight: 600; margin: 0 0 .3rem; padding: 0; }
.studio-gain .row { display: grid; grid-template-columns: 4.2rem 1fr; align-items: center; gap: .5rem;
  font-size: .85rem; font-variant-numeric: tabular-nums; margin: .15rem 0; }
.studio-gain .track { position: relative; height: 1.45rem; }
.studio-gain i { position: absolute; inset: 0 auto 0 0; border-radius: 4px; min-width: 3px;
  background: color-mix(in srgb, currentColor 22%, transparent); }
.studio-gain .kept i { background: #0f766e; background: color-mix(in srgb, #14a394 62%, transparent); }
.studio-gain b { position: relative; display: block; font-weight: 600; line-height: 1.45rem; padding-left: .45rem;
  white-space: nowrap; }
.studio-gain p { font-size: .85rem; margin: .25rem 0 0; opacity: .85; }
</style>"""


class Bar(NamedTuple):
    """``share`` in [0, 1] is its length, ``words`` stand on it."""

    name: str
    share: float
    words: str
    is_coreset: bool = False


class Comparison(NamedTuple):
    title: str
    bars: tuple[Bar, ...]
    note: str


def gain_html(gain: Gain) -> str:
    """The bars, as HTML that reads without a script and in both themes."""
    return f'{STYLE}<div class="studio-gain">{"".join(map(_drawn, comparisons(gain)))}</div>'


def comparisons(gain: Gain) -> Iterator[Comparison]:
    """What there is to compare; what is not known says how to know it."""
    yield _labels(gain)
    yield _hours(gain)
    yield _training(gain)
    yield _accuracy(gain)


def _labels(gain: Gain) -> Comparison:
    share = gain.labels_needed / max(1, gain.n_pool)
    return Comparison(
        "Labels that people give",
        (Bar("All", 1.0, f"{gain.n_pool:,}"), Bar("Coreset", share, f"{gain.labels_needed:,}", True)),
        f"{gain.labels_saved:,} not needed. Counted are the {gain.n_labeled:,} that there are and the "
        f"{gain.n_kept - gain.n_kept_labeled:,} that the coreset still lacks.",
    )


def _hours(gain: Gain) -> Comparison:
    each = gain.seconds_per_label
    if each is None:
        return Comparison("Hours of labeling", (), "No label was timed in the browser. Type a speed under Rates.")
    of_all, of_coreset = (n * each / 3600 for n in (gain.n_pool, gain.labels_needed))
    speed = f"{each:.1f} s per label, "
    speed += f"measured on {gain.time.n:,}." if gain.time.seconds_per_label else "as typed in."
    return Comparison(
        "Hours of labeling",
        (Bar("All", 1.0, hours(of_all)), Bar("Coreset", of_coreset / max(of_all, 1e-9), hours(of_coreset), True)),
        f"{hours(of_all - of_coreset)} saved. {speed}{_money(gain)}",
    )


def _money(gain: Gain) -> str:
    if gain.money_saved is None:
        return ""
    amount = f"{gain.money_saved:,.0f} {gain.rates.currency}".strip()
    return f" At your rates that and one training save {amount}."


def _training(gain: Gain) -> Comparison:
    title = "One training"
    if gain.minutes is None:
        return Comparison(title, (), "Not measured at this ratio. Evaluate trains on both.")
    coreset, full = gain.minutes
    longest = max(coreset, full)
    change = f"{1 - coreset / full:.0%} less" if coreset <= full else f"{coreset / full - 1:.0%} more"
    return Comparison(
        title,
        (Bar("All", full / longest, minutes(full)), Bar("Coreset", coreset / longest, minutes(coreset), True)),
        f"{change}, as measured. Small coresets are trained for more epochs, so time falls less than size.",
    )


def _accuracy(gain: Gain) -> Comparison:
    title = "Accuracy"
    if gain.coreset is None:
        return Comparison(title, (), "Not measured at this ratio. Evaluate says what is kept, with its interval.")
    named = (("All", gain.full), ("Coreset", gain.coreset), ("Random", gain.random))
    bars = tuple(Bar(name, cell.mean, in_words(cell), cell is gain.coreset) for name, cell in named if cell is not None)
    return Comparison(
        title, bars, f"Mean of {gain.coreset.n} seeds ± half the 95% interval, coreset relabeled by people."
    )


def in_words(cell: Cell) -> str:
    """Such as "88.9% ± 1.4"."""
    return f"{cell.mean:.1%}" + (f" ± {100 * cell.half:.1f}" if cell.half is not None else ", one seed")


def hours(value: float) -> str:
    return f"{60 * value:,.0f} min" if value < 1.5 else f"{value:,.1f} h"


def minutes(value: float) -> str:
    return f"{60 * value:.0f} s" if value < 1.5 else f"{value:,.1f} min" if value < 90 else f"{value / 60:,.1f} h"


def _drawn(comparison: Comparison) -> str:
    rows = "".join(
        f'<div class="row{" kept" if bar.is_coreset else ""}"><span>{escape(bar.name)}</span>'
        f'<div class="track"><i style="width:{100 * bar.share:.1f}%"></i><b>{escape(bar.words)}</b></div></div>'
        for bar in comparison.bars
    )
    return f"<div><h5>{escape(comparison.title)}</h5>{rows}<p>{escape(comparison.note)}</p></div>"
