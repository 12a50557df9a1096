"""The label routes: batches, refusals, conflicts, queues, leases; hostile requests answered with a sentence."""

import collections
import io
import json
import shutil
import threading
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from semiprune_core import live
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import LabelStore, open_store
from semiprune_core.labeling import database as databases
from semiprune_core.progress import Collected
from semiprune_core.project import artifacts
from semiprune_core.project.pool import PoolSettings, export_id, read_id, show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import browser_token
from semiprune_core.server import labels as label_routes
from semiprune_core.server.routes import studio_routes
from tests.support.fake_model import give_model
from tests.support.team import event
from tests.support.waiting import wait_until

HOST = "http://localhost:8501"


def pictures_of(workspace):
    """Beside the workspace, of which nothing is imported."""
    return workspace.root.with_name(f"{workspace.root.name}-pictures")


def import_folder(project, folder):
    settings = ImportSettings(source=SourceSpec("folder", str(folder)).to_json(), n_workers=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEMIPRUNE_ROOTS", str(folder))
        import_source(project, settings, Collected())


def make_project(workspace, name, *, n=12, seed=0):
    """A project of ``n`` small pictures in two class folders."""
    folder = pictures_of(workspace) / name
    rng = np.random.default_rng(seed)
    for number in range(n):
        path = folder / ("cat", "dog")[number % 2] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    project = workspace.create(name, pool=PoolSettings(size=28))
    import_folder(project, folder)
    store, pool = open_store(project), project.pool()
    store.classes.add(["cat", "dog"], annotator="ada")
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=1.0, annotator="ada"
    )
    return project


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with two projects, made once; tests use annotators of their own."""
    home = tmp_path_factory.mktemp("home")
    workspace = Workspace.open(home)
    make_project(workspace, "one")
    make_project(workspace, "two", seed=1)
    return workspace


class Browser:
    """What our page does: posts JSON with the token, from the same origin."""

    def __init__(self, workspace, project="one"):
        self.workspace = workspace
        self.project = project
        self.name = f"annotator {uuid.uuid4().hex[:8]}"
        self.client = TestClient(
            Starlette(routes=studio_routes(workspace)), base_url=HOST, raise_server_exceptions=True
        )

    @property
    def store(self):
        return open_store(self.workspace.project(self.project))

    @property
    def ids(self):
        return [show_id(one) for one in self.workspace.project(self.project).pool().ids]

    def post(self, path, body, *, project=None, headers=None, raw=None):
        head = {"x-semiprune-token": browser_token(self.workspace), "origin": HOST} | (headers or {})
        data = raw if raw is not None else json.dumps({"annotator": self.name, **body}).encode()
        return self.client.post(f"/studio/projects/{project or self.project}/labels{path}", content=data, headers=head)

    def send(self, *events):
        answer = self.post("", {"events": list(events)})
        assert answer.status_code == 200, answer.text
        return answer.json()["acks"]

    def held(self, image_id):
        rounds = {one.round: one for one in self.store.held([int(image_id, 16)], annotator=self.name)}
        return rounds.get("label")


@pytest.fixture
def browser(made):
    return Browser(made)


def test_a_label_is_saved_and_acknowledged(browser):
    one = event(browser.ids[0], 1, lead_time_ms=420)
    [ack] = browser.send(one)
    assert (ack["event_id"], ack["status"]) == (one["event_id"], "saved")
    assert browser.held(browser.ids[0]).class_id == 1


def test_sending_a_batch_again_changes_nothing(browser):
    batch = [event(image_id, 0) for image_id in browser.ids[:5]]
    assert {ack["status"] for ack in browser.send(*batch)} == {"saved"}
    before = browser.store.last_seq
    assert {ack["status"] for ack in browser.send(*batch)} == {"already"}
    assert browser.store.last_seq == before


def test_a_stale_tab_is_told_who_when_and_what(browser):
    first, second = event(browser.ids[0], 0), event(browser.ids[0], 1)
    browser.send(first)
    [ack] = browser.send(second)
    assert ack["status"] == "conflict"
    assert (ack["current"]["annotator"], ack["current"]["class_id"]) == (browser.name, 0)
    assert ack["version"] == first["event_id"]
    assert browser.held(browser.ids[0]).class_id == 0
    [ack] = browser.send(event(browser.ids[0], 1, expected_version=ack["version"]))
    assert ack["status"] == "saved"


def test_undo_takes_a_group_back_whole(browser):
    group = uuid.uuid4().hex
    batch = [event(image_id, 0, group_id=group) for image_id in browser.ids[:4]]
    browser.send(*batch)
    [ack] = browser.send({"event_id": uuid.uuid4().hex, "action": "undo", "target": batch[2]["event_id"]})
    assert len(ack["touched"]) == 4
    assert all(browser.held(image_id).action is None for image_id in browser.ids[:4])


def test_one_bad_event_does_not_stop_the_others(browser):
    good, unknown_class, unknown_image = event(browser.ids[0]), event(browser.ids[1], 77), event("0" * 16)
    acks = browser.send(unknown_image, good, unknown_class, "nonsense")
    assert [ack["status"] for ack in acks] == ["refused", "saved", "refused", "refused"]
    assert "no such image" in acks[0]["reason"]


def test_an_image_of_another_project_is_refused(made):
    other = Browser(made, "two").ids[0]
    [ack] = Browser(made, "one").send(event(other))
    assert ack["status"] == "refused"


@pytest.mark.parametrize(
    "change",
    [
        {"image_id": 12},
        {"image_id": "../../etc/passwd"},
        {"image_id": None},
        {"action": "drop table"},
        {"action": ["label"]},
        {"class_id": "0"},
        {"class_id": True},
        {"class_id": -1},
        {"class_id": 1e300},
        {"class_id": 0.5},
        {"class_id": [0]},
        {"expected_version": 3},
        {"expected_version": None},
        {"force": "yes"},
        {"source": "reference"},
        {"source": ["person"]},
        {"annotator": "somebody else"},
        {"saved_ms": 1},
        {"lead_time_ms": -1},
        {"made_ms": "now"},
        {"event_id": ""},
        {"event_id": "x" * 65},
        {"event_id": "a\nb"},
        {"event_id": "\ud800"},
        {"event_id": {"$ne": 1}},
        {"group_id": "x" * 100},
        {"group_id": 7},
        {"__proto__": {}},
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_hostile_field_is_refused_with_a_reason(browser, change):
    [ack] = browser.send(event(browser.ids[0]) | change)
    assert ack["status"] == "refused"
    assert ack["reason"].endswith(".")
    assert browser.held(browser.ids[0]) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"annotator": "a", "events": ' + b"1" * 5000 + b"}",
        b'{"annotator": "a"}',
        b'{"annotator": "a", "events": {}}',
        b'{"annotator": "a", "events": "all"}',
        b'{"events": []}',
        b'{"annotator": 3, "events": []}',
        b'{"annotator": "", "events": []}',
        b'{"annotator": " a", "events": []}',
        b'{"annotator": "a\\nb", "events": []}',
        b'{"annotator": "\\ud800", "events": []}',
        json.dumps({"annotator": "a" * 65, "events": []}).encode(),
        json.dumps({"annotator": "a", "events": [1] * 501}).encode(),
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_a_hostile_body_is_answered_with_400_and_a_sentence(browser, raw):
    answer = browser.post("", {}, raw=raw)
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "error"}
    assert "Traceback" not in answer.text


def test_a_huge_body_is_cut_off(browser):
    answer = browser.post("", {}, raw=b" " * ((4 << 20) + 1))
    assert (answer.status_code, answer.json()["code"]) == (400, "TOO_LARGE")


@pytest.mark.parametrize("path", ["", "/queue", "/leases", "/classes", "/similar"])
@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"x-semiprune-token": "0" * 64}]
)
def test_every_write_needs_our_origin_and_token(browser, path, headers):
    before = browser.store.last_seq
    answer = browser.post(path, {"events": [event(browser.ids[0])], "name": "new"}, headers=headers)
    assert answer.status_code == 403
    assert browser.store.last_seq == before


@pytest.mark.parametrize("project", ["three", "One", "..", "one%2f..%2ftwo", "%00"])
def test_an_unknown_project_is_not_found(browser, project):
    assert browser.post("", {"events": []}, project=project).status_code in (404, 405)


def test_the_queue_gives_what_is_open_and_the_latest_decisions(browser):
    first = browser.post("/queue", {"n": 4, "latest": True}).json()
    assert len(first["items"]) == 4
    assert first["latest"] == []
    assert [one["name"] for one in first["classes"]] == ["cat", "dog"]
    assert all(item["suggestion"] is None for item in first["items"])  # drawn images are labeled blind
    done = first["items"][0]["id"]
    browser.send(event(done, 1))
    again = browser.post("/queue", {"n": 4, "latest": True}).json()
    assert done not in [item["id"] for item in again["items"]]
    assert [(item["id"], item["class_id"]) for item in again["latest"]] == [(done, 1)]
    browser.post("/leases", {"release": True})


def test_two_annotators_get_different_images_until_released(made):
    ada, bob = Browser(made, "two"), Browser(made, "two")
    mine = {item["id"] for item in ada.post("/queue", {"n": 6}).json()["items"]}
    theirs = {item["id"] for item in bob.post("/queue", {"n": 6}).json()["items"]}
    assert len(mine) == len(theirs) == 6
    assert not mine & theirs
    assert set(ada.post("/leases", {"renew": sorted(mine)}).json()["held"]) == mine
    ada.post("/leases", {"release": True})
    bob.post("/leases", {"release": True})
    carol = Browser(made, "two")
    assert {item["id"] for item in carol.post("/queue", {"n": 6}).json()["items"]} & (mine | theirs)
    carol.post("/leases", {"release": True})


def test_likeness_is_the_models_once_it_has_seen_this_pool(workspace):
    project = make_project(workspace, "alike", n=6)
    browser = Browser(workspace, "alike")
    first, *others = browser.ids
    plain = browser.post("/similar", {"image_id": first, "ids": others}).json()["ids"]
    backwards = np.array([[0.0], [5], [4], [3], [2], [1]])
    give_model(project, pool_hash="of another pool", features=backwards)
    assert browser.post("/similar", {"image_id": first, "ids": others}).json()["ids"] == plain
    give_model(project, pool_hash=project.pool().hash, features=backwards)
    assert browser.post("/similar", {"image_id": first, "ids": others}).json()["ids"] == others[::-1]


def test_some_images_are_given_back(browser):
    mine = [item["id"] for item in browser.post("/queue", {"n": 4}).json()["items"]]
    browser.post("/leases", {"release": mine[1:]})
    assert browser.post("/leases", {"renew": mine}).json()["held"] == mine[:1]
    assert browser.post("/leases", {"release": "all of them"}).status_code == 400
    browser.post("/leases", {"release": True})


def test_skipped_and_flagged_images_come_as_queues_of_their_own(browser):
    skipped, flagged = browser.ids[8], browser.ids[9]
    browser.send(
        event(skipped, None, action="skip"), {"event_id": uuid.uuid4().hex, "action": "flag", "image_id": flagged}
    )
    [one] = [item for item in browser.post("/queue", {"queue": "skipped"}).json()["items"] if item["id"] == skipped]
    assert one["action"] == "skip"
    [one] = [item for item in browser.post("/queue", {"queue": "flagged"}).json()["items"] if item["id"] == flagged]
    assert one["flagged"]


def test_practice_shows_labeled_images_as_open_with_their_answers_and_leases_nothing(browser):
    browser.send(event(browser.ids[10], 1))
    queue = browser.post("/queue", {"queue": "practice"}).json()
    items = {item["id"]: item for item in queue["items"]}
    assert queue["round"] == "practice" and queue["elsewhere"] == 0
    assert items[browser.ids[10]]["answer"] == 1
    assert all(item["action"] is None and item["version"] == "" for item in items.values())


def test_disagreements_come_as_a_queue_and_are_settled(made):
    ada, bob = Browser(made), Browser(made)
    image_id = ada.ids[11]
    ada.send(event(image_id, 0))
    bob.send(event(image_id, 1))
    queue = ada.post("/queue", {"queue": "disputed"}).json()
    [item] = [item for item in queue["items"] if item["id"] == image_id]
    assert queue["round"] == "settle"
    assert {(vote["annotator"], vote["class_id"]) for vote in item["votes"]} >= {(ada.name, 0), (bob.name, 1)}
    [ack] = ada.send(event(image_id, 1, action="settle", expected_version=item["version"]))
    assert ack["status"] == "saved"
    left = ada.post("/queue", {"queue": "disputed"}).json()["items"]
    assert image_id not in [item["id"] for item in left]


@pytest.mark.parametrize(
    "body",
    [
        {"n": 0},
        {"n": 501},
        {"n": "all"},
        {"n": True},
        {"queue": "passwords"},
        {"queue": None},
        {"queue": ["drawn"]},
        {"ids": ["x"]},
        {"ids": "0" * 16},
        {"ids": ["0" * 16] * 501},
        {"ids": [], "round": "secret"},
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_hostile_queue_request_is_refused(browser, body):
    answer = browser.post("/queue", body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize(
    "path, body, sentence",
    [
        ("", {}, "A request needs events: a list of at most 500 label events."),
        ("", {"events": {}}, "events must be a list of at most 500 label events, got {}."),
        ("", {"events": [], "tab": 1}, "A request has no field 'tab'. Its fields: annotator, events."),
        ("/queue", {"n": 501}, "n must be a whole number from 1 to 500, got 501."),
        ("/queue", {"n": True}, "n must be a whole number from 1 to 500, got True."),
        ("/queue", {"latest": "yes"}, "latest must be true or false, got 'yes'."),
        ("/queue", {"ids": [], "round": 3}, "round must be one of label, review, settle, got 3."),
        ("/queue", {"ids": [7]}, "ids must be a list of at most 500 image ids, got [7]."),
        ("/queue", {"N": 3}, "A request has no field 'N'. Its fields: annotator, ids, latest, n, queue, round, tab."),
        ("/leases", {}, "Name the images to renew or to release."),
        ("/leases", {"release": False}, "release must be true, or a list of at most 500 image ids, got False."),
        ("/classes", {}, "A request needs name: text."),
        ("/classes", {"name": 3}, "name must be text, got 3."),
        ("/similar", {"ids": []}, "A request needs image_id: an image id, 16 hex digits in quotes."),
        ("/similar", {"ids": [], "image_id": 9}, "image_id must be an image id, 16 hex digits in quotes, got 9."),
        ("/queue", {"annotator": None}, "annotator must be the annotator's name, got None."),
        ("/queue", {"queue": [["a"] * 9] * 9}, "queue must be 1 to 40 printable characters, got "),
    ],
    ids=str,
)
def test_a_wrong_a_missing_and_an_unknown_field_are_named_in_one_form(browser, path, body, sentence):
    answer = browser.post(path, body)
    assert answer.status_code == 400 and answer.json()["error"].startswith(sentence)


def test_a_class_is_added_while_labeling_and_only_once(made):
    browser = Browser(made, make_project(made, "classes", n=4).name)
    name = "=HYPERLINK(<b>)"
    first = browser.post("/classes", {"name": name}).json()
    assert first["class"]["name"] == name
    assert browser.post("/classes", {"name": f" {name} "}).json()["class"] == first["class"]
    names = browser.client.get("/studio/projects/classes/labels/classes").json()["classes"]
    assert [one["name"] for one in names] == ["cat", "dog", name]


@pytest.mark.parametrize(
    "name",
    ["", "  ", "a\nb", "a\x00b", "\u2028", "x" * 256, "\ud800", None, 3, ["a"]],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_class_name_is_refused(browser, name):
    answer = browser.post("/classes", {"name": name})
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_similar_images_come_nearest_first(browser):
    ids = browser.ids
    said = browser.post("/similar", {"image_id": ids[3], "ids": ids}).json()
    assert said["ids"][0] == ids[3]
    assert sorted(said["ids"]) == sorted(ids)
    assert said["distances"] == sorted(said["distances"])
    assert browser.post("/similar", {"image_id": "f" * 16, "ids": ids}).status_code == 400
    assert browser.post("/similar", {"image_id": None, "ids": ids}).status_code == 400


def test_progress_counts_by_class(made):
    browser = Browser(made, make_project(made, "progress", n=4).name)
    address = f"/studio/projects/progress/labels/progress?annotator={browser.name}"
    assert browser.client.get(address).json()["left"] == 4
    browser.send(*[event(image_id, 1) for image_id in browser.ids[:3]])
    said = browser.client.get(address).json()
    assert (said["labeled"], said["left"], said["complete"]) == (3, 1, False)
    assert said["per_class"] == {"0": 0, "1": 3}


@pytest.mark.parametrize("form, start", [("csv", "image_id,path"), ("exact", "image_id,path"), ("label-studio", "[")])
def test_labels_leave_as_a_file_with_its_own_name(browser, form, start):
    browser.send(event(browser.ids[0]))
    answer = browser.client.get(f"/studio/projects/one/labels/export/{form}")
    assert answer.status_code == 200
    assert answer.text.startswith(start)
    assert f"one-{browser.store.last_seq}-" in answer.headers["content-disposition"]


def test_the_drawn_images_leave_with_what_is_still_unlabeled_and_their_pictures(browser):
    browser.send(event(browser.ids[0]))
    listed = browser.client.get("/studio/projects/one/labels/export/drawn").text.splitlines()
    assert listed[0] == "image_id,path,state,label"
    states = {row.split(",")[0]: row.split(",")[2] for row in listed[1:]}
    drawn = {export_id(one) for one in browser.store.drawings.latest().ids}
    assert set(states) == drawn
    unlabeled = {image_id for image_id, state in states.items() if state != "labeled"}
    answer = browser.client.get("/studio/projects/one/labels/export/drawn-tasks")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        tasks = json.loads(archive.read("one-drawn/tasks.json"))
        assert {task["data"]["image_id"] for task in tasks} == unlabeled
        pool = browser.workspace.project("one").pool()
        for task in tasks:
            data = archive.read(task["data"]["image"].partition("?d=")[2])
            assert data == pool.original(int(pool.positions([read_id(task["data"]["image_id"])])[0]))
        assert "<Choices" in archive.read("one-drawn/interface.xml").decode()


def test_an_unknown_export_is_refused(browser):
    assert browser.client.get("/studio/projects/one/labels/export/secret").status_code == 400


@pytest.fixture
def counted(monkeypatch):
    """How often the label routes look at the mounts, connect to SQLite and read a manifest."""
    counts = collections.Counter()

    def count(name, place, attribute):
        work = getattr(place, attribute)

        def counting(*args, **kwargs):
            counts[name] += 1
            return work(*args, **kwargs)

        monkeypatch.setattr(place, attribute, counting)

    count("mounts", databases, "read_mounts")
    count("connections", databases, "_prepare_sqlite")
    count("manifests", artifacts, "open_artifact")
    return counts


def test_a_press_opens_one_connection_and_checks_nothing_twice(tmp_path, counted):
    workspace = Workspace.open(tmp_path)
    make_project(workspace, "fresh")
    browser = Browser(workspace, "fresh")
    images = browser.ids
    browser.send(event(images[0]))
    counted.clear()
    for image_id in images[1:4]:
        browser.send(event(image_id))
    assert counted == {"connections": 3}


def test_a_fresh_process_checks_its_store_again(tmp_path, counted, monkeypatch):
    workspace = Workspace.open(tmp_path)
    make_project(workspace, "fresh")
    Browser(workspace, "fresh").send(event(Browser(workspace, "fresh").ids[0]))
    counted.clear()
    monkeypatch.setattr(databases.os, "getpid", lambda: -1)
    assert open_store(workspace.project("fresh")).last_seq
    assert counted["mounts"] == 1 and counted["connections"] > 1


def test_added_images_can_be_labeled_at_once(tmp_path):
    workspace = Workspace.open(tmp_path)
    project = make_project(workspace, "grows")
    browser = Browser(workspace, "grows")
    browser.send(event(browser.ids[0]))
    folder = pictures_of(workspace) / "more"
    folder.mkdir()
    Image.fromarray(np.full((8, 8, 3), 7, dtype=np.uint8)).save(folder / "new.png")
    import_folder(project, folder)
    [ack] = browser.send(event(browser.ids[-1]))
    assert len(browser.ids) == 13 and ack["status"] == "saved"


def test_a_project_made_anew_under_the_same_name_is_another_one(tmp_path):
    workspace = Workspace.open(tmp_path)
    make_project(workspace, "again")
    browser = Browser(workspace, "again")
    before = browser.ids
    browser.send(event(before[0]))
    shutil.rmtree(workspace.project("again").folder)
    shutil.rmtree(pictures_of(workspace))
    make_project(workspace, "again", seed=5)
    [gone, saved] = browser.send(event(before[0]), event(browser.ids[0]))
    assert (gone["status"], saved["status"]) == ("refused", "saved")
    assert len(browser.store.held()) == 1


def test_how_good_the_labels_are_is_told_and_followed_only_where_there_are_features(browser, monkeypatch):
    watched = []
    monkeypatch.setattr(live, "watch", lambda project: watched.append(project.name))
    said = browser.post("/live", {}).json()
    assert said["state"] == "off" and "semiprune embed one" in said["line"] and not watched
    monkeypatch.setattr(live, "standing", lambda *_: {"state": "few", "line": "12 so far."})
    assert browser.post("/live", {}).json()["line"] == "12 so far." and watched == ["one"]
    assert browser.post("/live", {}, headers={"x-semiprune-token": "none"}).status_code == 403


def test_a_picture_does_not_wait_for_45_saves(browser, monkeypatch):
    go, arrived, check_write = threading.Event(), [], label_routes.check_write
    append = LabelStore.append_json

    def wait_first(*args, **more):
        go.wait(5)  # longer only where the picture waits, too
        return append(*args, **more)

    monkeypatch.setattr(label_routes, "check_write", lambda *args: (arrived.append(1), check_write(*args)))
    monkeypatch.setattr(LabelStore, "append_json", wait_first)
    with browser.client, ThreadPoolExecutor(45) as people:
        saves = [people.submit(browser.send, event(image_id)) for image_id in (browser.ids * 4)[:45]]
        wait_until(lambda: len(arrived) == 45, "all saves to arrive")
        picture = browser.client.get(f"/studio/projects/one/images/{browser.ids[0]}/thumb")
        n_before = sum(save.done() for save in saves)
        go.set()
        assert (picture.status_code, n_before) == (200, 0)
        assert all(save.result() for save in saves)
