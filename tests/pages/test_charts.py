"""Charts that could say something untrue."""

from pages.parts import charts


def test_answers_that_count_each_look_are_shown_as_shares_not_as_images():
    bars = charts.class_bars({"ketch": 5_350, "lotus": 1_070, "crab": 4_280}, shares=True)
    assert sum(bars.data[0].x) == 1 and bars.data[0].text == ("50%", "10%", "40%")
    assert bars.layout.xaxis.title.text == "Share" and "images" not in bars.data[0].hovertemplate


def test_images_are_shown_as_counts():
    bars = charts.class_bars({"ketch": 5_350, "crab": 1})
    assert bars.data[0].x == (5350, 1) and bars.data[0].text == ("5,350", "1")
