"""CSV, plain text, LaTeX, HTML and SVG of an evaluation."""

import io
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest

from semiprune_core.evaluation.files import (
    TEXT_NOTE,
    html_table,
    latex_table,
    latex_text,
    summary_csv,
    table_caption,
    text_table,
    trials_csv,
)
from semiprune_core.evaluation.plot import ACCURACY, CROWD, PlotStyle, nice_ticks, shown_first, svg_plot
from semiprune_core.evaluation.view import COLUMNS, half_interval, view_of
from tests.support.trial_tables import TITLES, fake_trials, table, trial

NAUGHTY = {"a": r"50% <b>&_#$~^{\}", "random": "Random"}
SVG = "{http://www.w3.org/2000/svg}"


def small(titles=TITLES):
    return view_of(
        table(
            ("full", 0.0, 0, 0.9),
            ("random", 0.5, 0, 0.70),
            ("random", 0.5, 1, 0.72),
            ("random", 0.9, 0, 0.3),
            ("a", 0.5, 0, 0.80),
            ("a", 0.5, 1, 0.80),
            ("b", 0.5, 0, 0.75),
            ("b", 0.5, 1, 0.75),
        ),
        titles=titles,
    )


def test_latex_marks_the_best_and_the_second_and_leaves_gaps():
    lines = latex_table(small()).splitlines()
    assert r"Random & 71.0 $\pm$ 1.4 & 30.0 \\" in lines
    assert r"a & \textbf{80.0} $\pm$ 0.0 & -- \\" in lines
    assert r"b & \underline{75.0} $\pm$ 0.0 & -- \\" in lines
    assert r"Pruning ratio & 50\% & 90\% \\" in lines
    assert [line for line in lines if line.startswith("\\") and "rule" in line] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]


def test_latex_says_every_special_character_literally():
    assert latex_text(NAUGHTY["a"]) == (
        r"50\% \textless{}b\textgreater{}\&\_\#\$\textasciitilde{}\textasciicircum{}\{\textbackslash{}\}"
    )
    assert "\n" not in latex_text("two\nlines")
    assert r"50\% \textless{}" in latex_table(small(NAUGHTY))


def test_latex_puts_the_paper_behind_ours_also_where_ours_is_missing():
    text = latex_table(small(), paper={("a", 0.5): 81.25, ("a", 0.9): 40.0})
    assert r"a & \textbf{80.0} $\pm$ 0.0 (81.2) & -- (40.0) \\" in text
    assert "In parentheses: the paper." in text


@pytest.mark.parametrize(
    "rows, words",
    [
        ([("random", 0.5, 0, 0.7)], "one seed"),
        ([("random", 0.5, 0, 0.7), ("random", 0.5, 1, 0.7)], "over 2 seeds"),
        ([("random", 0.5, 0, 0.7), ("random", 0.5, 1, 0.7), ("a", 0.5, 1, 0.7)], "over 1 to 2 seeds"),
    ],
)
def test_the_caption_says_over_how_many_seeds(rows, words):
    assert words in table_caption(view_of(table(*rows)))


def test_the_caption_says_when_methods_are_ranked_by_some_of_their_seeds():
    rows = [("random", 0.5, 0, 0.7), ("random", 0.5, 1, 0.7), ("a", 0.5, 0, 0.7)]
    assert "ranked by the seeds they share" in table_caption(view_of(table(*rows)))
    assert "ranked" not in table_caption(view_of(table(*rows, ("a", 0.5, 1, 0.7))))


def test_what_a_spread_is_over_is_said_wherever_one_is_shown():
    view, single = small(), view_of(table(("a", 0.5, 0, 0.8), ("random", 0.5, 0, 0.7)))
    for text in (table_caption(view), latex_table(view), svg_plot(view), TEXT_NOTE):
        assert "over coresets and trainings alone" in text
    assert not any("trainings alone" in text for text in (table_caption(single), svg_plot(single)))


def test_csv_reads_back_and_runs_nothing():
    trials = pd.DataFrame([trial("random", 0.5, 0, 0.7, note="=1+1")], columns=list(COLUMNS))
    back = pd.read_csv(io.StringIO(trials_csv(trials)))
    assert list(back) == list(COLUMNS) and back["note"][0] == "'=1+1" and back["test_accuracy"][0] == 0.7
    means = pd.read_csv(io.StringIO(summary_csv(small({"a": "@cmd"}))))
    assert means.loc[means["method"] == "a", "title"].tolist() == ["'@cmd"]
    assert means.loc[means["method"] == "a", "difference_to_random"].tolist() == pytest.approx([0.09])


def test_plain_text_is_read_ratio_by_ratio_with_half_the_interval():
    view = view_of(
        table(
            ("full", 0.0, 0, 0.9),
            *[
                (name, ratio, seed, 0.5 + up * (1 + seed))
                for name, up in (("a", 0.01), ("random", 0.0))
                for ratio in (0.9, 0.5)
                for seed in (0, 1)
            ],
            ("b", 0.9, 5, 0.4),
        ),
        titles={"a": "A\x1b[2J"},
    )
    head, *lines = text_table(view).splitlines()
    assert head.split() == ["Method", "Pruning", "ratio", "Mean", "SD", "Vs", "Random", "Minutes"]
    assert [line.split()[1] for line in lines if not line.startswith("Full")] == ["50%"] * 2 + ["90%"] * 3
    assert lines[0].split() == ["Full", "data", "–", "90.0%", "–", "–", "1.0"]
    assert lines[2].split()[1:] == ["50%", "51.5%", "0.7", "+1.5", "±", "6.4", "1.0"]  # 12.706 x 0.5 points
    assert lines[-1].split() == ["b", "90%", "40.0%", "–", "–", "1.0"] and "\x1b" not in lines[2]


def test_html_shows_names_as_text_only():
    text = html_table(small({"a": "<script>alert(1)</script>"}))
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "<b>80.0</b>" in text and "<u>75.0</u>" in text and "<th>Full data</th><td>90.0</td>" in text


def test_html_of_differences_is_bold_beyond_the_interval_only():
    view = view_of(
        table(
            *[("random", 0.5, seed, 0.5 + 0.01 * seed) for seed in range(3)],
            *[("a", 0.5, seed, 0.55 + 0.011 * seed) for seed in range(3)],
            *[("b", 0.5, seed, 0.5 + 0.03 * (1 - seed)) for seed in range(3)],
        )
    )
    text = html_table(view, content="difference")
    assert (
        "<b>+5.1</b>" in text
        and "<th>random</th>" not in text
        and "<b>−" not in text
        and "−" not in text.split("</thead>")[0]
    )


def test_svg_is_whole_names_everything_and_is_the_same_each_time():
    view = view_of(fake_trials(), titles=TITLES)
    text = svg_plot(view)
    assert text == svg_plot(view_of(fake_trials(), titles=TITLES))
    root = ElementTree.fromstring(text)
    words = {element.text for element in root.iter(f"{SVG}text")}
    assert {"Full data", "Random", "Semi-AUM+Cutoff", "Semi-DUAL+Beta", "30%", "90%", "Pruning ratio"} <= words
    assert len(list(root.iter(f"{SVG}polyline"))) == 3
    dashed = [line for line in root.iter(f"{SVG}polyline") if line.get("stroke-dasharray")]
    assert len(dashed) == 1


def test_svg_bands_are_as_wide_as_asked():
    view = view_of(fake_trials(), titles=TITLES)
    bands = {
        band: [
            p.get("points")
            for p in ElementTree.fromstring(svg_plot(view, PlotStyle(band=band))).iter(f"{SVG}polygon")
            if p.get("fill-opacity")
        ]
        for band in ("none", "sd", "interval")
    }
    assert bands["none"] == [] and len(bands["sd"]) == len(bands["interval"]) == 3 and bands["sd"] != bands["interval"]


def spreads(view, look=ACCURACY):
    """How many areas and bars a picture has, and where across it the bars stand."""
    root = ElementTree.fromstring(svg_plot(view, look))
    areas = [one for one in root.iter(f"{SVG}polygon") if one.get("fill-opacity")]
    bars = [one for one in root.iter(f"{SVG}line") if one.get("stroke-opacity")]
    assert all(float(bar.get("y1")) > float(bar.get("y2")) for bar in bars)
    return len(areas), len({bar.get("x1") for bar in bars})


def test_one_ratio_alone_shows_its_spread_as_bars_side_by_side():
    rows = [(name, 0.8, seed, level + 0.01 * seed) for name, level in (("random", 0.5), ("a", 0.51)) for seed in (0, 1)]
    assert spreads(view_of(table(*rows))) == (0, 2)
    assert spreads(view_of(table(*rows)), PlotStyle(band="none")) == (0, 0)
    assert spreads(view_of(table(*rows[::2]))) == (0, 0), "one seed has no spread"


@pytest.mark.parametrize(
    "n_seeds, areas, bars",
    [((2, 2, 2), 1, 0), ((1, 1, 1), 0, 0), ((2, 2, 1), 1, 0), ((2, 1, 2), 0, 2), ((1, 2, 1), 0, 1), ((2, 0, 2), 1, 0)],
)
def test_a_band_ends_where_there_is_one_seed(n_seeds, areas, bars):
    counts = dict(zip((0.5, 0.7, 0.9), n_seeds, strict=True))
    rows = [("random", ratio, seed, 0.5 + 0.1 * seed) for ratio, n in counts.items() for seed in range(n)]
    assert spreads(view_of(table(*rows))) == (areas, bars)


def test_differences_of_one_seed_have_no_bar():
    rows = [(name, ratio, 0, 0.5) for name in ("random", "a") for ratio in (0.5, 0.9)]
    more = [(name, 0.9, 1, 0.6 + 0.1 * (name == "a")) for name in ("random", "a")]
    assert spreads(view_of(table(*rows)), PlotStyle("difference", "interval")) == (0, 0)
    assert spreads(view_of(table(*rows, *more)), PlotStyle("difference", "interval")) == (0, 1)


def test_svg_of_differences_has_random_as_its_line_across_and_paired_intervals():
    rows = [("random", r, s, 0.5 + 0.1 * s) for r in (0.7, 0.9) for s in range(3)]
    rows += [("a", r, s, 0.6 + 0.1 * s) for r in (0.7, 0.9) for s in range(3)]  # always 10 points above, wherever it is
    rows += [("full", 0.0, 0, 0.9), ("b", 0.9, 7, 0.8)]  # b shares no seed with Random
    view = view_of(table(*rows))
    look = PlotStyle("difference", "interval")
    assert [(p.at, round(p.height, 6)) for p in look.points(view.row("a"))] == [(0.7, 10.0), (0.9, 10.0)]
    half = 100 * half_interval([0.1, 0.1, 0.1], resolution=0.001)  # of 1,000 test images
    assert look.points(view.row("a"))[0].half == pytest.approx(half) and look.points(view.row("b")) == []
    assert [p.half for p in PlotStyle("difference", "none").points(view.row("a"))] == [None, None]
    root = ElementTree.fromstring(svg_plot(view, look))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert "Points above Random" in words and {"random", "a"} <= set(words) and not {"Full data", "b"} & set(words)
    assert len(list(root.iter(f"{SVG}polyline"))) == 1
    zero = next(e for e in root.iter(f"{SVG}text") if e.text == "0")
    (across,) = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray") and line.get("x1") == "58.0"]
    assert float(across.get("y1")) == pytest.approx(float(zero.get("y")) - 4)


def test_of_many_methods_random_the_papers_and_the_best_are_drawn_first():
    names = ["z_worst", "b", "c", "d", "e", "semi_dual_beta", "f", "random", "g_best"]
    rows = [(name, ratio, 0, 0.5 + 0.01 * n) for n, name in enumerate(names) for ratio in (0.5, 0.9)]
    first = shown_first(view_of(table(*rows)), ("semi_dual_beta", "semi_aum_cutoff"))
    assert len(first) == CROWD and first == ["random", "c", "d", "e", "semi_dual_beta", "f", "g_best"]
    few = view_of(table(*rows[:8]))
    assert shown_first(few, ()) == names[:4]


@pytest.mark.parametrize(
    "rows",
    [[], [("full", 0.0, 0, 0.9)], [("random", 0.5, 0, 0.7)], [("random", 0.5, 0, 0.0), ("random", 0.9, 0, 1.0)]],
)
def test_svg_and_tables_survive_the_edges(rows):
    view = view_of(table(*rows), titles={"random": "<&>"})
    assert ElementTree.fromstring(svg_plot(view, PlotStyle("difference")))
    root = ElementTree.fromstring(svg_plot(view))
    assert all("nan" not in (value or "") for element in root.iter() for value in element.attrib.values())
    assert "studio-evaluation" in html_table(view) and latex_table(view) and summary_csv(view)


@pytest.mark.parametrize("low, high", [(0, 100), (41.3, 88), (79.96, 80.01), (0, 0.5), (-3, 4)])
def test_ticks_cover_the_numbers(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high and 2 <= len(ticks) <= 12
