"""The line that says how good the labels are: it comes by itself, nothing moves when it does, and no page is rerun."""

import re
import shutil

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.label_support import DeckPage
from tests.support.features import add_features, clouds_of
from tests.support.training_projects import label

pytestmark = pytest.mark.browser


def test_the_line_comes_with_the_twentieth_label_and_nothing_moves(studio, context):
    project = studio.project("t-live", n=60)
    truth = np.arange(60) % 3
    add_features(project, clouds_of(truth))
    places = project.pool().positions(DeckPage(studio, project, context).store.drawings.latest().ids)
    deck = DeckPage(studio, project, context).open()
    now, stage = deck.page.locator(".live .now"), deck.page.locator(".stage")
    expect(now).to_have_text("Accuracy appears here after 20 labels drawn at random; 0 so far.")
    before = stage.bounding_box()
    for place in places[:20]:
        deck.ready()
        deck.press(str(truth[place] + 1))
    expect(now).to_contain_text(re.compile(r"Accuracy \d+% \(\d+% to \d+%\)"))
    expect(deck.page.locator(".live .outlook")).to_have_text("Too early to say what more labels would bring.")
    label(project, {int(place): ("cat", "dog", "owl")[truth[place]] for place in places[:45]})
    expect(deck.page.locator(".growth .past")).to_be_visible()
    expect(deck.page.locator(".live .outlook")).to_contain_text("more labels")
    assert stage.bounding_box() == before
    shutil.rmtree(project.folder)  # ends the process that follows the labels
