"""Coming in: the token of the start link, the password, the cookie, and the page for everybody else."""

import base64
import os
import re

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from semiprune_core.jobs import launch
from semiprune_core.project.workspace import Workspace
from semiprune_core.server.access import Access, lets_others_in
from semiprune_core.server.guesses import Guesses
from semiprune_core.server.login import (
    AccessError,
    Cookie,
    NoLogin,
    PasswordLogin,
    TokenLogin,
    check_chosen,
    login_of,
    start_link,
    take_login,
)
from semiprune_core.server.opening import opened_in_browser

SITE = "http://localhost:8501"
OURS = {"origin": SITE}
PAGE = {"accept": "text/html,*/*"}
COOKIE = Cookie("semiprune_test", "c00c1e")


async def hello(request):
    return PlainTextResponse(f"hello {request.url.query}".strip())


async def socket(websocket):
    await websocket.accept()
    await websocket.send_text("hello")
    await websocket.close()


def browser(login, site=SITE):
    """A browser that was never here."""
    routes = [Route("/{page:path}", hello, methods=["GET", "POST"]), WebSocketRoute("/ws", socket)]
    app = Starlette(routes=routes, middleware=[Middleware(Access, login=login)])
    return TestClient(app, base_url=site, follow_redirects=False)


@pytest.fixture
def login(workspace):
    return login_of(workspace, {})


def opens_socket(client, headers=OURS):
    try:
        with client.websocket_connect("ws://localhost:8501/ws", headers=headers) as opened:
            return opened.receive_text() == "hello"
    except WebSocketDisconnect:
        return False


def test_without_the_token_nothing_is_reached(login):
    stranger = browser(login)
    for path in ("/", "/label?project=x", "/studio/projects/x/labels/export/csv", "/_stcore/health", "/static/a.js"):
        for headers in ({}, PAGE):
            answer = stranger.get(path, headers=headers)
            assert answer.status_code == 401 and "hello" not in answer.text and "set-cookie" not in answer.headers
    assert stranger.post("/studio/projects/x/labels", json={}).json()["code"] == "LOGIN_NEEDED"
    assert stranger.get("/_stcore/host-config").text == "Open the link that was printed when the app was last started."
    assert not opens_socket(stranger)
    assert login.token not in stranger.get("/", headers=PAGE).text


def test_the_link_lets_in_and_leaves_the_address_bar(login):
    owner = browser(login)
    answer = owner.get(f"/label?project=a%26b&token={login.token}", headers=PAGE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/label?project=a%26b")
    assert owner.get(answer.headers["location"]).text == "hello project=a%26b"
    assert opens_socket(owner)


@pytest.mark.parametrize("pasted", [" {}\n", "http://127.0.0.1:8501/?token={} "])
def test_a_token_or_its_link_may_be_pasted_on_the_page(login, pasted):
    owner = browser(login)
    page = owner.get("/map?project=x", headers=PAGE)
    assert page.status_code == 401 and 'name="token"' in page.text and "link that was printed" in page.text
    answer = owner.post("/map?project=x", data={"token": pasted.format(login.token)}, headers=PAGE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/map?project=x")
    assert owner.get("/map").text.startswith("hello")


@pytest.mark.parametrize("given", ["", "x", "schlüssel", "<script>", "x" * 10_000])
def test_a_wrong_token_lets_nobody_in(login, given):
    stranger = browser(login)
    for answer in (
        stranger.get("/", params={"token": given}, headers=PAGE),
        stranger.post("/", data={"token": given}, headers=PAGE),
        stranger.get("/", headers={"authorization": b"Bearer " + given.encode()}),
    ):
        assert answer.status_code == 401 and "<script>" not in answer.text and "set-cookie" not in answer.headers
    assert not opens_socket(stranger)


def test_an_old_link_says_that_a_new_one_was_made(login):
    assert "use the latest link" in browser(login).get("/?token=old", headers=PAGE).text


def test_a_program_sends_the_token_in_a_header(login):
    program = browser(login)
    assert program.get("/x", headers={"authorization": f"Bearer {login.token}"}).text.startswith("hello")
    assert opens_socket(browser(login), OURS | {"authorization": f"Bearer {login.token}"})


def test_the_cookie_outlives_the_app_and_the_link_does_not(workspace, login):
    owner = browser(login)
    owner.get("/", params={"token": login.token}, headers=PAGE)
    restarted = login_of(workspace, {})
    assert restarted.token != login.token
    later = browser(restarted)
    later.cookies = owner.cookies
    assert later.get("/").text.startswith("hello") and opens_socket(later)
    assert later.get(f"/?token={login.token}", headers=PAGE).headers["location"] == "/"
    assert browser(restarted).get(f"/?token={login.token}").status_code == 401


@pytest.mark.parametrize("environment", [{"SEMIPRUNE_TOKEN": "another token"}, {"SEMIPRUNE_PASSWORD": "correct horse"}])
def test_another_token_password_or_workspace_makes_the_cookie_void(workspace, tmp_path, login, environment):
    owner = browser(login)
    owner.get("/", params={"token": login.token}, headers=PAGE)
    for other in (login_of(workspace, environment), login_of(Workspace.open(tmp_path / "other"), {})):
        later = browser(other)
        later.cookies = owner.cookies
        assert later.get("/").status_code == 401


def test_the_cookie_is_closed_to_scripts_and_other_sites(login):
    cookie = browser(login).get("/", params={"token": login.token}).headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Secure" not in cookie
    safe = browser(login, "https://localhost:8501").get("/", params={"token": login.token})
    assert "Secure" in safe.headers["set-cookie"]


@pytest.mark.parametrize("path", ["//evil.example/", "/%5Cevil.example", "///evil.example/x"])
def test_a_link_with_the_token_leads_to_no_other_site(login, path):
    location = browser(login).get(f"{SITE}{path}?token={login.token}").headers["location"]
    assert re.match(r"/[^/\\]", location)


def test_a_form_is_read_only_so_far(login):
    body = f"token={login.token}&rest={'x' * 10_000}"
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert browser(login).post("/", content=body, headers=kind).status_code == 401


def test_a_chosen_token_is_slowed_down_and_a_random_one_keeps_nobody_waiting(workspace, login):
    chosen = browser(login_of(workspace, {"SEMIPRUNE_TOKEN": "correct horse"}))
    tries = [chosen.get("/", params={"token": f"guess {n}"}).status_code for n in range(7)]
    assert tries == [401] * 5 + [429] * 2
    assert chosen.get("/", params={"token": "correct horse"}).status_code == 429
    assert "Too many wrong tokens" in chosen.get("/", params={"token": "x"}, headers=PAGE).text
    random = browser(login)
    assert {random.get("/", params={"token": f"guess {n}"}).status_code for n in range(40)} == {401}
    assert random.get("/", params={"token": login.token}).status_code == 303


def test_the_environment_chooses_the_way_in(workspace):
    assert isinstance(login_of(workspace, {}), TokenLogin)
    assert login_of(workspace, {"SEMIPRUNE_TOKEN": "schlüssel 123"}).token == "schlüssel 123"
    assert isinstance(login_of(workspace, {"SEMIPRUNE_PASSWORD": "correct horse"}), PasswordLogin)
    assert isinstance(login_of(workspace, {"SEMIPRUNE_LOGIN": "off"}), NoLogin)
    for wrong in (
        {"SEMIPRUNE_LOGIN": "no"},
        {"SEMIPRUNE_LOGIN": "off", "SEMIPRUNE_TOKEN": "correct horse"},
        {"SEMIPRUNE_LOGIN": "off", "SEMIPRUNE_PASSWORD": "correct horse"},
        {"SEMIPRUNE_TOKEN": "short"},
    ):
        with pytest.raises(AccessError):
            login_of(workspace, wrong)


@pytest.mark.parametrize("variable", ["SEMIPRUNE_PASSWORD", "SEMIPRUNE_TOKEN"])
def test_jobs_are_not_told_the_password_or_the_token(workspace, tmp_path, monkeypatch, variable):
    monkeypatch.setattr("semiprune_core.server.login._taken", {})
    monkeypatch.setenv(variable, "correct horse")
    first = take_login(workspace)
    assert variable not in os.environ and variable not in launch.environment("1", tmp_path, ())
    assert lets_others_in() is (variable == "SEMIPRUNE_PASSWORD"), "still known, without its value"
    assert vars(take_login(workspace))["cookie"] == first.cookie, "asked again, it is the same login"


def test_a_token_of_any_letters_works(workspace):
    login = login_of(workspace, {"SEMIPRUNE_TOKEN": "schlüssel & 123"})
    path = start_link("127.0.0.1", 8501, "", login).removeprefix("http://127.0.0.1:8501")
    assert browser(login).get(path).status_code == 303
    assert browser(login).get("/", headers={"authorization": "Bearer schlüssel & 123".encode()}).status_code == 200


def test_the_link_names_an_address_that_can_be_opened(login):
    token = login.token
    assert start_link("127.0.0.1", 8501, "", login) == f"http://127.0.0.1:8501/?token={token}"
    assert start_link("0.0.0.0", 80, "/prune/", login, tls=True) == f"https://127.0.0.1:80/prune/?token={token}"
    assert start_link("::1", 8501, "", NoLogin()) == "http://[::1]:8501/"


def test_the_browser_is_opened_by_a_page_that_only_its_owner_reads(workspace, login, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    link = start_link("127.0.0.1", 8501, "", login)
    with opened_in_browser(workspace, link) as page:
        assert opened == [page.as_uri()] and login.token not in opened[0]
        assert link in page.read_text() and page.is_relative_to(workspace.root)
    assert not page.exists()


def basic(password):
    return {"authorization": "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()}


def test_the_password_stands_before_pages_and_websockets():
    guarded = browser(PasswordLogin("s3cret:ä", COOKIE))
    assert guarded.get("/").status_code == 401
    assert guarded.get("/", headers=basic("wrong")).status_code == 401
    assert guarded.get("/", headers={"authorization": "Basic !!!"}).status_code == 401
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"
    assert not opens_socket(guarded)
    assert opens_socket(guarded, OURS | basic("s3cret:ä"))


def test_wrong_passwords_are_slowed_down_and_a_browser_that_was_let_in_never_waits():
    login = PasswordLogin("s3cret:ä", COOKIE)
    guarded = browser(login)
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"
    stranger = browser(login)
    assert [stranger.get("/", headers=basic(f"guess {n}")).status_code for n in range(7)] == [401] * 5 + [429] * 2
    assert stranger.get("/", headers=basic("s3cret:ä")).status_code == 429, "the wait is over before any is looked at"
    assert "Try again in" in stranger.get("/", headers=basic("x")).text
    assert stranger.get("/").status_code == 401, "whoever gives none makes no guess"
    assert guarded.get("/", headers=basic("s3cret:ä")).text == "hello"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def guesses_in_an_hour(addresses):
    clock, n = Clock(), 0
    guesses = Guesses(clock)
    while clock.now < 3600:
        for address in addresses:
            if guesses.wait(address) == 0:
                guesses.wrong(address)
                n += 1
        clock.now += 1
    return n


def test_one_address_has_70_guesses_in_an_hour_and_all_together_1800():
    assert guesses_in_an_hour(["192.0.2.7"]) <= 70
    assert guesses_in_an_hour([f"2001:db8::{n:x}" for n in range(8)]) <= 70
    assert guesses_in_an_hour([f"192.0.2.{n}" for n in range(40)]) <= 1800


def test_the_right_password_makes_an_address_good_again_and_many_addresses_fill_no_memory():
    guesses = Guesses(Clock())
    for _ in range(5):
        guesses.wrong("192.0.2.7")
    guesses.right("192.0.2.7")
    assert not guesses._wrong
    for number in range(20_000):
        guesses.wrong(f"10.0.{number // 250}.{number % 250}")
    assert len(guesses._wrong) == 10_000


@pytest.mark.parametrize("password", ["x", " ", "", "1234567", "aaaaaaaaaaaa", "       x "])
def test_a_weak_password_is_refused(password):
    with pytest.raises(AccessError, match="at least 8 characters"):
        check_chosen(password, "SEMIPRUNE_PASSWORD")


def test_a_fair_password_or_none_is_taken():
    check_chosen("correct horse", "SEMIPRUNE_PASSWORD")
    check_chosen(None, "SEMIPRUNE_PASSWORD")
