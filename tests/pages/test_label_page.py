"""The label page's states, as the script draws them: name, drawing, classes, deck, complete."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from semiprune_core import steps
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import Event, open_store
from semiprune_core.labeling.drawing import ranks
from tests.conftest import make_class_folder
from tests.support.fake_model import give_model
from tests.support.features import add_features
from tests.support.waiting import PATIENCE

MAIN = str(Path(__file__).resolve().parents[2] / "pages" / "main.py")


@pytest.fixture
def project(class_folder, import_into):
    return import_into(SourceSpec("folder", str(class_folder)))[0]


@pytest.fixture
def store(project):
    return open_store(project)


def opened(project, *, annotator="ada", view=None):
    app = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    app.session_state["project"] = project.name
    if annotator:
        app.session_state["annotator"] = annotator
    if view:
        app.session_state["label_view"] = view
    app.run()
    app.switch_page("label.py").run()
    assert not app.exception
    return app


def test_a_class_without_labels_can_be_looked_for(project, store):
    draw(project, store, fraction=0.5)
    store.classes.add(["cat", "dog", "owl"], annotator="ada")
    add_features(project, np.eye(len(project.pool())))
    ids = store.drawings.latest().ids
    store.append([Event(event_id=f"e{i}", annotator="ada", action="label", image_id=int(i), class_id=0) for i in ids])
    app = opened(project)
    assert any("2 classes have no label yet:** dog, owl" in text.value for text in app.markdown)
    app.button(key="draw_unlike").click().run()
    assert not app.exception
    drawing = store.drawings.latest()
    assert (drawing.method, drawing.uniform, len(drawing)) == ("unlike", False, 10)
    assert not set(drawing.ids.tolist()) & set(ids.tolist())


def draw(project, store, **how):
    pool = project.pool()
    how = how or {"fraction": 1.0}
    return store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, annotator="ada", **how
    )


def label_all(project, store, annotator="ada"):
    pool = project.pool()
    store.classes.add(pool.class_names, annotator=annotator)
    numbers = {one.name: one.class_id for one in store.classes.all()}
    names = [pool.class_names[number] for number in pool.reference_labels]
    store.append(
        [
            Event(event_id=f"{annotator}-{place}", annotator=annotator, action="label", image_id=int(image), class_id=c)
            for place, (image, c) in enumerate(zip(pool.ids, (numbers[name] for name in names), strict=True))
        ]
    )


def words(app):
    found = [*app.markdown, *app.caption, *app.success, *app.warning, *app.error, *app.info]
    return " ".join(str(one.value) for one in found)


def button(app, text):
    return next(one for one in app.button if text in one.label)


def test_the_name_is_asked_first_and_checked(project):
    app = opened(project, annotator=None)
    app.text_input(key="annotator_field").set_value("   ")
    button(app, "Start").click().run()
    assert "annotator's name" in app.error[0].value
    app.text_input(key="annotator_field").set_value("Ada ")
    button(app, "Start").click().run()
    assert not app.exception
    assert app.session_state["annotator"] == "Ada"
    assert "draw the images to label" in words(app)


def test_after_images_were_added_the_draw_is_extended_over_the_whole_pool(project, store, tmp_path, import_into):
    draw(project, store, fraction=0.5)
    store.classes.add(["cat", "dog"], annotator="ada")
    ids = store.drawings.latest().ids
    store.append([Event(event_id=f"e{i}", annotator="ada", action="label", image_id=int(i), class_id=0) for i in ids])
    assert "The subset is complete" in words(opened(project))
    import_into(SourceSpec("folder", str(make_class_folder(tmp_path / "more", n=40, seed=9))), project)
    app = opened(project)
    assert "40 images were added since the draw" in words(app)
    assert "The subset is complete" not in words(app)
    before = store.drawings.latest()
    app.button(key="label_extend").click().run()
    assert not app.exception and "were added since" not in words(app)
    drawing = store.drawings.latest()
    assert drawing.uniform and drawing.extends == before.drawing_id and len(drawing) >= 30  # half of sixty
    assert drawing.ids[: len(before)].tolist() == before.ids.tolist()
    lowest = np.sort(ranks(project.pool().ids, drawing.seed))[: len(drawing)]
    assert np.array_equal(np.sort(ranks(drawing.ids, drawing.seed)), lowest)  # all up to one rank: uniform


def test_a_colour_is_picked_and_saved_at_once(project, store):
    draw(project, store)
    store.classes.add(["cat", "dog"], annotator="ada")
    app = opened(project, view="classes")
    assert [picker.label for picker in app.color_picker] == ["cat", "dog"]
    app.color_picker[1].set_value("#123456").run()
    assert not app.exception and [one.colour for one in store.classes.all()][1] == "#123456"


def test_anybody_may_practice_on_labeled_images_without_a_name(project, store):
    draw(project, store)
    label_all(project, store)
    app = opened(project, annotator=None)
    app.button(key="label_practice").click().run()
    assert not app.exception and "Nothing is saved" in words(app)
    app.button(key="label_practice_end").click().run()
    assert not app.exception and app.text_input(key="annotator_field")


def test_ten_percent_is_offered_and_drawn(project, store):
    app = opened(project)
    assert app.number_input(key="draw_percent").value == 10.0
    button(app, "Draw 2 images").click().run()
    assert not app.exception
    assert len(store.drawings.latest()) == 2


def test_a_count_and_a_seed_are_drawn_as_asked(project, store):
    app = opened(project)
    app.segmented_control(key="draw_by").set_value("Count").run()
    app.number_input(key="draw_count").set_value(7)
    app.number_input(key="draw_seed").set_value(5).run()
    button(app, "Draw 7 images").click().run()
    drawing = store.drawings.latest()
    assert (len(drawing), drawing.seed, drawing.uniform) == (7, 5, True)


def test_another_way_to_draw_is_marked_as_departing_from_the_paper(project, store):
    app = opened(project)
    app.radio(key="draw_method").set_value("coverage").run()
    assert "departs from the paper" in app.warning[0].value
    button(app, "Draw").click().run()
    assert not app.exception
    assert not store.drawings.latest().uniform


def test_the_models_doubts_are_drawn_once_there_is_a_model(project, store):
    assert "uncertainty" not in opened(project).radio(key="draw_method").options
    give_model(project, pool_hash=project.pool().hash)
    app = opened(project)
    app.radio(key="draw_method").set_value("uncertainty").run()
    button(app, "Draw 2 images").click().run()
    assert not app.exception
    assert store.drawings.latest().ids.tolist() == project.pool().ids[[-1, -2]].tolist()
    assert not store.drawings.latest().uniform


def test_classes_come_before_the_deck(project, store):
    draw(project, store)
    app = opened(project)
    assert "Now add the classes" in words(app)
    button(app, "reference class").click().run()
    assert not app.exception
    assert store.classes.names() == ("cat", "dog")
    assert "Now add the classes" not in words(app)


def test_a_name_with_a_line_break_cannot_become_a_class(project, store):
    draw(project, store)
    app = opened(project, view="classes")
    app.text_area(key="classes_text").set_value("owl\n\n  newt  \n" + "x" * 256)
    button(app, "Add").click().run()
    assert "256 bytes" in app.error[0].value
    assert len(store.classes) == 0  # all or nothing
    app.text_area(key="classes_text").set_value("owl\n\n  newt  ")
    button(app, "Add").click().run()
    assert store.classes.names() == ("owl", "newt")


def test_classes_are_merged_and_removed(project, store):
    draw(project, store)
    store.classes.add(["cat", "kitten", "dog"], annotator="ada")
    app = opened(project, view="classes")
    app.selectbox(key="classes_from").set_value(1).run()
    app.selectbox(key="classes_into").set_value(0).run()
    button(app, "Merge").click().run()
    assert store.classes.names() == ("cat", "dog")
    app.selectbox(key="classes_unwanted").set_value(2).run()
    button(app, "Remove").click().run()
    assert store.classes.names() == ("cat",)


def test_reference_labels_complete_the_subset_and_the_step(project, store):
    draw(project, store)
    assert next(place for place in steps.standing(project) if place.step.key == "label").state == "next"
    app = opened(project, view="exchange")
    button(app, "Use reference labels").click().run()
    assert not app.exception
    assert "Imported 20 of 20 labels" in words(app)
    assert "The subset is complete" in words(app)
    assert next(place for place in steps.standing(project) if place.step.key == "label").state == "done"


def test_the_subset_view_warns_of_thin_classes_and_extends(project, store):
    draw(project, store, fraction=0.2)
    store.classes.add(["cat", "dog"], annotator="ada")
    first = store.drawings.latest().ids
    store.append(
        [Event(event_id="1", annotator="ada", action="label", image_id=int(first[0]), class_id=0)],
    )
    app = opened(project, view="subset")
    assert "Fewer than 4 labels" in words(app)
    app.number_input(key="draw_percent").set_value(50.0).run()
    button(app, "Draw 6 more images").click().run()
    assert store.drawings.latest().ids[:4].tolist() == first.tolist()


def test_agreement_of_two_annotators_is_shown(project, store):
    draw(project, store)
    app = opened(project, view="agreement")
    assert "No image has been labeled by two people yet" in words(app)
    label_all(project, store, "ada")
    label_all(project, store, "bob")
    app = opened(project, view="agreement")
    assert {metric.label: metric.value for metric in app.metric}["Agreement"] == "100.0%"
    assert "Nothing to settle" in words(app)


@pytest.mark.parametrize("view", ["deck", "grid", "classes", "subset", "agreement", "exchange"])
def test_every_view_opens_with_hostile_names(project, store, view):
    draw(project, store)
    store.classes.add(["<script>x</script>", "[a](javascript:x)", ":red[x]", "$x$", "\u202eabc"], annotator="ada")
    image = int(project.pool().ids[0])
    store.append([Event(event_id="1", annotator="*b*", action="label", image_id=image, class_id=0)])
    app = opened(project, annotator="[me](https://evil.example)", view=view)
    for text in (*app.markdown, *app.caption, *app.warning, *app.success):
        assert "](https" not in text.value
        assert "<script>" not in text.value
