"""Find at a gallery: what is missing is said, what is looked for is named, and the way out leads back."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.find_panel import Query
from semiprune_core.find import like_image
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import show_id
from tests.support.features import add_features
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")
KEY = "pool_gallery_found"


@pytest.fixture
def project(class_folder, import_into):
    return import_into(SourceSpec("folder", str(class_folder)))[0]


def opened(project, query=None):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    if query is not None:
        app.session_state[KEY] = query
    app.run().switch_page("pool.py").run()
    assert not app.exception
    return app


def said(app):
    return " ".join(part.value for part in (*app.caption, *app.markdown)).replace("\\", "")


def test_without_features_it_says_how_to_get_them(project):
    assert "Find needs features." in said(opened(project))


def test_what_is_looked_for_is_named_and_can_be_cleared(project):
    add_features(project)
    everything = project.everything()
    image_id = show_id(everything.ids[3])
    likeness = like_image(project, everything, int(everything.ids[3]))
    app = opened(project, Query("003.png", project.name, everything.hash, likeness, image_id))
    assert "Most like **003.png** first" in said(app)
    app.button(key="pool_gallery_find_clear").click().run()
    assert not app.exception and KEY not in app.session_state and "Most like" not in said(app)


def test_a_query_of_other_images_is_forgotten(project):
    add_features(project)
    app = opened(project, Query("old.png", project.name, "another hash", np.zeros(20, np.float32)))
    assert KEY not in app.session_state and "Most like" not in said(app)


def test_words_say_what_they_need(project):
    add_features(project)
    assert "--encoder clip" in said(opened(project))
