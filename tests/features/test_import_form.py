"""The import form's checkbox for features."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import jobs

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.mark.parametrize("wanted", [True, False])
def test_the_checkbox_decides_whether_features_follow(wanted, workspace, make_photos):
    app = AppTest.from_file(MAIN, default_timeout=60).run().switch_page("new.py")
    app.session_state["new_way"] = "folder"
    app.session_state["new_folder"] = str(make_photos())
    app.run()
    box = app.checkbox(key="new_features")
    assert box.value
    if not wanted:
        box.uncheck().run()
    next(button for button in app.button if button.label == "Import").click().run()
    assert not app.exception
    (job,) = jobs.list_jobs(workspace, "import")
    assert job.settings["features"] is wanted
