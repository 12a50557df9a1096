"""Every route for every role, and what somebody who means ill tries: ids of others, forged names, ended sessions."""

import pytest
from starlette.websockets import WebSocketDisconnect

from semiprune_core.accounts import (
    RANKS,
    TABLE,
    SessionRights,
    accounts_of,
    add_account,
    begin_session,
    close_account,
    end_session,
    set_role,
    trail,
)
from semiprune_core.accounts.table import ROUTES
from semiprune_core.errors import ForbiddenError
from semiprune_core.labeling import open_store
from semiprune_core.labeling.import_labels import import_csv, take_reference
from semiprune_core.project import rights
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import studio_routes
from semiprune_core.server.account_login import session_cookie
from tests.support.people import make_hashes_cheap
from tests.support.team import HOST, MINE, OTHER, ROLES, TEAM, Person, event, image_ids, make_project, make_team


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with a team, made once; what a test changes it puts back, or it makes people of its own."""
    workspace = Workspace.open(tmp_path_factory.mktemp("home"))
    make_project(workspace, MINE)
    make_project(workspace, OTHER, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        make_hashes_cheap(patch)
        make_team(workspace)
    return workspace


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    make_hashes_cheap(monkeypatch)


@pytest.fixture
def people(made):
    return {name: Person(made, name) for name in TEAM}


@pytest.fixture
def restored(made):
    """The roles as they were, after a test that changes some."""
    yield
    for name, role in ROLES.items():
        if role in RANKS and role != "admin":
            set_role(accounts_of(made), MINE, name, role)


# --- the matrix -------------------------------------------------------------------------------------------------------

PLACES = {
    "{project}": MINE,
    "{size:str}": "thumb",
    "{format}": "csv",
    "{name}": "none.zip",
    "{map}": "map-0001",
    "{column}": "human",
    "{position:number}": "0",
    "{upload}": "0" * 32,
    "{number:number}": "0",
}


def path_of(line, workspace):
    method, path = line.name.split(" ")
    for place, text in {**PLACES, "{image_id}": image_ids(workspace)[0]}.items():
        path = path.replace(place, text)
    assert "{" not in path
    return method, path


def outcome(answer):
    """What a request came to: let in, or turned away in one of three ways."""
    ways = {"LOGIN_NEEDED": "asked", "FORBIDDEN": "refused", "NO_PROJECT": "absent"}
    try:
        code = answer.json().get("code")
    except (ValueError, AttributeError):
        code = None
    way = ways.get(code, "in")
    assert (answer.status_code in (401, 403)) == (way in ("asked", "refused")), answer.text
    return way


def expected(line, name):
    rank = {"nobody": -1, "otto": 0}.get(name)
    if rank is None:
        rank = RANKS[ROLES[name]]
    if rank < 0:
        return "asked"
    if name == "otto" and not line.anywhere:
        return "absent"
    return "in" if rank >= RANKS[line.least] else "refused"


def test_every_route_has_a_line_and_every_line_a_route(workspace):
    routes = {
        f"{method} {route.path.removeprefix('/studio')}"
        for route in studio_routes(workspace)
        for method in route.methods - {"HEAD"}
    }
    assert routes == {line.name for line in ROUTES}
    assert all(len({line.name for line in lines}) == len(lines) for lines in TABLE.values())


@pytest.mark.parametrize("line", ROUTES, ids=lambda line: line.name)
def test_every_route_answers_every_role_as_the_table_says(people, made, line):
    method, path = path_of(line, made)
    answers = {name: outcome(person.ask(method, path, content=b"{}")) for name, person in people.items()}
    assert answers == {name: expected(line, name) for name in people}


@pytest.mark.parametrize("line", [line for line in ROUTES if line.name.startswith("GET")], ids=lambda line: line.name)
def test_to_ask_for_the_head_alone_needs_the_same_role(people, made, line):
    _, path = path_of(line, made)
    status = {name: people[name].ask("HEAD", path).status_code for name in ("nobody", "lea", "otto")}
    assert status["nobody"] == 401 and status["otto"] == 404
    assert (status["lea"] == 403) == (line.least != "labeler")


def test_pages_and_sockets_need_a_session(people):
    for name, person in people.items():
        is_in = name != "nobody"
        assert (person.client.get("/label").status_code == 200) == is_in
        try:
            headers = {"origin": HOST, "cookie": f"{session_cookie(person.workspace, '').name}={person.cookie}"}
            with person.client.websocket_connect("ws://localhost:8501/_stcore/stream", headers=headers):
                opened = True
        except WebSocketDisconnect:
            opened = False
        assert opened == is_in


def test_a_project_of_others_looks_like_one_that_never_was(people):
    otto = people["otto"]
    theirs, none = (otto.ask("GET", f"/projects/{name}/labels/progress") for name in (MINE, "nothing"))
    assert theirs.status_code == none.status_code == 404
    assert theirs.json()["error"].replace(MINE, "nothing") == none.json()["error"]
    assert MINE not in none.json()["error"] and OTHER in none.json()["error"]


# --- labels are one's own ---------------------------------------------------------------------------------------------


def test_two_accounts_label_the_same_images_and_each_keeps_its_own(people, made):
    lea, eve, ids = people["lea"], people["eve"], image_ids(made)[:6]
    for place, image in enumerate(ids):
        for person, class_id in ((lea, place % 2), (eve, 1 - place % 2)):
            [ack] = person.label(event(image, class_id)).json()["acks"]
            assert ack["status"] == "saved"
    store = open_store(made.project(MINE))
    for person, turn in ((lea, 0), (eve, 1)):
        held = {one.image_id: one.class_id for one in store.held(annotator=person.name) if one.annotator == person.name}
        assert [held[int(image, 16)] for image in ids] == [(place + turn) % 2 for place in range(6)]
    assert {row["annotator"] for row in store.events()} == {"lea", "eve"}


def test_what_another_account_did_cannot_be_taken_back(people, made):
    mine = event(image_ids(made)[6])
    assert people["eve"].label(mine).json()["acks"][0]["status"] == "saved"
    undo = {"event_id": "undo-of-others", "action": "undo", "target": mine["event_id"]}
    answer = people["lea"].label(undo)
    assert answer.status_code == 403 or answer.json()["acks"][0]["status"] == "refused"
    held = open_store(made.project(MINE)).held([int(mine["image_id"], 16)], annotator="eve")
    assert any(one.class_id == 0 for one in held)


POSTS = {
    "": {"events": []},
    "/queue": {"n": 1},
    "/leases": {"take": True, "tab": "x"},
    "/classes": {"name": "bird"},
    "/live": {},
}


@pytest.mark.parametrize("name", ["eve", "root", "LEA", "lea ", "reference", "\u202elea", "command line"])
@pytest.mark.parametrize("path", POSTS)
def test_nobody_acts_under_another_name(people, made, path, name):
    before = open_store(made.project(MINE)).last_seq
    body = POSTS[path] | ({"events": [event(image_ids(made)[7])]} if path == "" else {})
    answer = people["lea"].post(path, {**body, "annotator": name})
    assert answer.status_code in (400, 403), answer.text
    assert open_store(made.project(MINE)).last_seq == before
    assert people["lea"].ask("GET", f"/projects/{MINE}/labels/progress?annotator=eve").status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"annotator": "eve"},
        {"actor": "eve"},
        {"holder": "eve"},
        {"source": "import"},
        {"source": "reference"},
        {"seq": 1},
    ],
)
def test_an_event_cannot_say_whose_it_is(people, made, change):
    forged = event(image_ids(made)[8], **change)
    answer = people["lea"].label(forged)
    assert answer.status_code == 403 or answer.json()["acks"][0]["status"] == "refused"


@pytest.mark.parametrize("change", [{"action": "settle"}, {"source": "review"}])
def test_a_labeler_overrules_nobody(people, made, change):
    image = image_ids(made)[9]
    answer = people["lea"].label(event(image, **change))
    assert answer.status_code == 403 and "role" in answer.json()["error"]
    assert people["olga"].label(event(image, **change)).json()["acks"][0]["status"] == "saved"
    if "source" in change:
        assert people["eve"].label(event(image, 1, source="review", force=True)).json()["acks"][0]["status"] == "saved"
    else:
        assert people["eve"].label(event(image, 1, action="settle", force=True)).status_code == 403


@pytest.mark.parametrize("queue", ["flagged", "disputed", "practice", "doubt", "coreset:coreset-0001", "doubt_loss"])
def test_a_labeler_gets_no_queue_with_answers_of_others(people, queue):
    assert people["lea"].post("/queue", {"queue": queue}).status_code == 403


@pytest.mark.parametrize("round_", ["review", "settle"])
def test_a_labeler_cannot_look_up_what_was_decided(people, made, round_):
    asked = {"ids": image_ids(made)[:2], "round": round_}
    assert people["lea"].post("/queue", asked).status_code == 403
    assert people["olga"].post("/queue", asked).status_code == 200


def test_a_labeler_sees_no_paths(people):
    lea, eve = (people[name].post("/queue", {"n": 2, "latest": True}).json() for name in ("lea", "eve"))
    assert all(row["path"] == row["id"] for row in [*lea["items"], *lea["latest"]])
    assert any("/" in row["path"] for row in [*eve["items"], *eve["latest"]])


def test_images_of_another_project_are_no_way_in(people, made):
    theirs = image_ids(made, OTHER)[0]
    lea = people["lea"]
    assert lea.ask("GET", f"/projects/{MINE}/images/{theirs}/thumb").status_code == 404
    assert lea.ask("GET", f"/projects/{OTHER}/images/{theirs}/thumb").status_code == 404
    assert lea.ask("GET", f"/projects/{MINE}/../{OTHER}/images/{theirs}/thumb").status_code == 404
    assert lea.label(event(theirs)).json()["acks"][0]["status"] == "refused"
    assert lea.label(event(theirs), project=OTHER).status_code == 404


@pytest.mark.parametrize("name", ["%2e%2e", "..%2ftwo", "two%00", "two/", "ONE", "one%20", "secret", ".uploads"])
def test_odd_names_of_projects_lead_nowhere(people, name):
    answer = people["lea"].ask("GET", f"/projects/{name}/labels/progress")
    assert answer.status_code in (404, 307) or answer.text == "page"  # no route of ours


def test_an_upload_belongs_to_who_began_it(people, made):
    upload = people["eve"].ask("POST", "/uploads").json()["upload"]
    for name in ("olga", "root"):
        assert people[name].ask("PUT", f"/uploads/{upload}/0", content=b"x").json()["code"] == "NO_UPLOAD"
        assert people[name].ask("DELETE", f"/uploads/{upload}").json()["code"] == "NO_UPLOAD"
    assert people["eve"].ask("PUT", f"/uploads/{upload}/0", content=b"x").status_code == 200
    assert people["eve"].ask("DELETE", f"/uploads/{upload}").status_code == 204


def test_a_file_speaks_for_others_and_names_who_brought_it(people, made):
    project, accounts = made.project(OTHER), accounts_of(made)
    store, pool = open_store(project), project.pool()
    data = f"path,label,annotator\n{pool.path(0)},cat,grace\n{pool.path(1)},dog,otto\n".encode()
    otto, root = (SessionRights(accounts, people[name].cookie) for name in ("otto", "root"))
    with rights.acted_by(otto), pytest.raises(ForbiddenError):
        import_csv(store, pool, data, annotator="otto")
    with rights.acted_by(root):
        assert import_csv(store, pool, data, annotator="root").n_saved == 2
        with pytest.raises(ForbiddenError, match="another name"):
            import_csv(store, pool, data.replace(b",cat,", b",dog,"), annotator="otto", replace=True, actor="otto")
        assert take_reference(store, pool).n_saved > 0
    rows = store.events()
    assert [(row["annotator"], row["actor"]) for row in rows[:2]] == [("grace", "root"), ("otto", "root")]
    assert {row["actor"] for row in rows} == {"root"}
    assert trail(accounts, project=OTHER)[0].act == "imported labels"


# --- sessions and roles that change -----------------------------------------------------------------------------------


@pytest.mark.parametrize("role, status", [("labeler", 403), ("engineer", 200)])
def test_a_role_that_changes_counts_for_the_next_write(people, made, restored, role, status):
    set_role(accounts_of(made), MINE, "eve", role)
    answer = people["eve"].post("/classes", {"name": f"bird {role}"})
    assert answer.status_code == status
    if status == 403:
        assert "labeler there" in answer.json()["error"]


def test_a_session_that_is_ended_writes_nothing_more(people, made):
    lea, accounts = people["lea"], accounts_of(made)
    assert lea.label(event(image_ids(made)[10])).status_code == 200
    held = next(session for session in accounts.state().sessions.values() if session.account == "lea")
    for session in list(accounts.state().sessions.values()):
        end_session(accounts, "lea", session.mark)
    assert held.mark not in accounts.state().sessions
    answer = lea.label(event(image_ids(made)[11]))
    assert answer.status_code == 401 and answer.json()["code"] == "LOGIN_NEEDED"
    assert people["eve"].label().status_code == 400 or people["eve"].post("/queue", {"n": 1}).status_code == 200


def test_a_closed_account_is_out_at_once(made):
    accounts = accounts_of(made)
    add_account(accounts, "temp", password="correct horse")  # noqa: S106
    set_role(accounts, MINE, "temp", "labeler")
    temp = Person(made, "temp")
    assert temp.post("/queue", {"n": 1}).status_code == 200
    close_account(accounts, "temp")
    assert temp.post("/queue", {"n": 1}).status_code == 401


@pytest.mark.parametrize("make", ["mark", "cut", "longer", "empty", "other case", "token", "two"])
def test_a_cookie_is_the_whole_one_or_none(made, make):
    accounts = accounts_of(made)
    good = begin_session(accounts, "lea")
    mark = next(session.mark for session in accounts.state().sessions.values() if session.account == "lea")
    forged = {
        "mark": mark,
        "cut": good[:-1],
        "longer": f"{good}x",
        "empty": "",
        "other case": good.swapcase(),
        "token": "x" * 43,
        "two": f"{good},{good}",
    }[make]
    person = Person(made, "nobody")
    person.take(forged)
    assert person.ask("GET", f"/projects/{MINE}/labels/progress").status_code == 401


def test_the_cookie_of_one_workspace_opens_no_other(made, tmp_path):
    other = Workspace.open(tmp_path / "elsewhere")
    make_team_of_one(other)
    person = Person(other, "nobody")
    good = begin_session(accounts_of(made), "root")
    person.take(good)
    person.client.cookies.set(session_cookie(made, "").name, good)
    assert person.client.get("/").status_code == 401


def make_team_of_one(workspace):
    add_account(accounts_of(workspace), "root", admin=True, password="correct horse")  # noqa: S106


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:8501"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:9999"}, 403),
        ({"origin": "null"}, 403),
        ({"x-semiprune-token": "0" * 64}, 403),
        ({"x-semiprune-token": ""}, 403),
        ({"x-forwarded-user": "root"}, 403),
        ({"authorization": "Bearer anything"}, 403),
        ({"x-original-url": "/studio/projects/two/labels/progress"}, 403),
        ({"x-http-method-override": "GET"}, 403),
    ],
)
def test_headers_make_nobody_more_than_they_are(people, made, headers, status):
    before = open_store(made.project(MINE)).last_seq
    answer = people["lea"].ask(
        "POST", f"/projects/{MINE}/labels/classes", json={"annotator": "lea", "name": "bird"}, headers=headers
    )
    assert answer.status_code == status
    assert open_store(made.project(MINE)).last_seq == before


def test_what_a_browser_keeps_is_not_shown_in_another_session(people, made):
    answer = people["lea"].ask("GET", f"/projects/{MINE}/images/{image_ids(made)[0]}/thumb")
    assert "Cookie" in answer.headers["vary"]


def test_downloads_stand_in_the_trail(people, made):
    assert people["eve"].ask("GET", f"/projects/{MINE}/labels/export/csv").status_code == 200
    entry = trail(accounts_of(made), project=MINE)[0]
    assert (entry.account, entry.act) == ("eve", "downloaded labels")
