"""Coming in by an account: the form, the limits, invites, the cookie, leaving; and all as before without accounts."""

import pytest
from starlette.testclient import TestClient

from semiprune_core.accounts import (
    accounts_of,
    add_account,
    end_session,
    invite,
    password_is,
    sessions_of,
    trail,
)
from semiprune_core.accounts.book import FILE
from semiprune_core.server import guesses
from semiprune_core.server.access import check_address, start_warnings
from semiprune_core.server.account_login import WRONG, AccountLogin, session_cookie
from semiprune_core.server.login import AccessError, login_of, start_link
from semiprune_core.server.login_page import invite_page
from tests.support.people import WORDS, make_hashes_cheap
from tests.support.team import HOST, Person, app_of

PAGE = {"accept": "text/html,*/*", "origin": HOST}


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    make_hashes_cheap(monkeypatch)


@pytest.fixture
def accounts(workspace):
    accounts = accounts_of(workspace)
    add_account(accounts, "Ada", admin=True, password=WORDS)
    add_account(accounts, "bob", password=WORDS)
    return accounts


@pytest.fixture
def stranger(workspace, accounts):
    return Person(workspace, "nobody").client


def log_in(client, name="Ada", password=WORDS, path="/label?project=one", **headers):
    return client.post(path, data={"name": name, "password": password}, headers={**PAGE, **headers})


# --- without accounts -------------------------------------------------------------------------------------------------


def test_without_accounts_the_token_counts_and_no_file_is_made(workspace):
    person = Person(workspace, "nobody").client
    assert "Link or token" in person.get("/", headers=PAGE).text
    assert not (workspace.root / FILE).exists()


def test_the_first_account_closes_the_other_doors_while_the_app_runs(workspace):
    login = AccountLogin(
        workspace, accounts_of(workspace), login_of(workspace, {"SEMIPRUNE_TOKEN": "token of the app"})
    )
    assert "token=" in start_link("127.0.0.1", 8501, "", login)
    add_account(accounts_of(workspace), "Ada", admin=True, password=WORDS)
    assert "token=" not in start_link("127.0.0.1", 8501, "", login)


def test_neither_token_nor_password_nor_an_open_door_lets_in_beside_accounts(workspace, accounts):
    for environment, headers in (
        ({"SEMIPRUNE_TOKEN": "token of the app"}, {"authorization": "Bearer token of the app"}),
        ({"SEMIPRUNE_PASSWORD": "password of the app"}, {"authorization": "Basic OnBhc3N3b3JkIG9mIHRoZSBhcHA="}),
        ({"SEMIPRUNE_LOGIN": "off"}, {}),
    ):
        client = TestClient(app_of(workspace, **environment), base_url=HOST, follow_redirects=False)
        assert client.get("/", headers=headers).status_code == 401
        assert client.get("/?token=token+of+the+app", headers=PAGE).status_code == 401


def test_accounts_are_a_login_to_serve_others_by(workspace):
    login = AccountLogin(workspace, accounts_of(workspace), login_of(workspace, {"SEMIPRUNE_LOGIN": "off"}))
    with pytest.raises(AccessError):
        check_address("0.0.0.0", login)  # noqa: S104
    add_account(accounts_of(workspace), "Ada", admin=True, password=WORDS)
    check_address("0.0.0.0", login)  # noqa: S104
    assert "in the clear" in start_warnings("0.0.0.0", login)[0]  # noqa: S104


# --- name and password ------------------------------------------------------------------------------------------------


def test_name_and_password_lead_to_the_page_that_was_asked_for(stranger, accounts, workspace):
    asked = stranger.get("/label?project=one", headers=PAGE)
    assert asked.status_code == 401 and 'name="password"' in asked.text and asked.headers["cache-control"] == "no-store"
    answer = log_in(stranger, " ada ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/label?project=one")
    assert stranger.get("/label?project=one").text == "page project=one"
    assert [(entry.account, entry.act) for entry in trail(accounts)] == [("Ada", "logged in")]
    [session] = sessions_of(accounts, "Ada")
    assert session.address == "testclient"


def test_the_cookie_is_kept_from_scripts_and_from_plain_connections(workspace, accounts):
    plain, tls = Person(workspace, "nobody").client, Person(workspace, "nobody").client
    tls.base_url = "https://localhost:8501"
    for client, secure in ((plain, False), (tls, True)):
        cookie = log_in(client, origin=str(client.base_url).rstrip("/")).headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and ("Secure" in cookie) == secure
        assert session_cookie(workspace, "").name in cookie


def test_unknown_names_and_wrong_passwords_get_one_answer(stranger, accounts):
    wrong, unknown, uninvited = (
        log_in(stranger, "bob", "wrong password"),
        log_in(stranger, "eve", "wrong password"),
        log_in(stranger, "", ""),
    )
    assert {answer.status_code for answer in (wrong, unknown, uninvited)} == {401}
    assert WRONG in wrong.text
    assert wrong.text.replace("bob", "eve") == unknown.text
    assert [(entry.account, entry.note) for entry in trail(accounts)][::-1] == [
        ("bob", ""),
        ("", "unknown name"),
        ("", "unknown name"),
    ]


def test_what_was_typed_is_shown_as_text_and_is_in_no_trail(stranger, accounts):
    hostile = '"><script>alert(1)</script>{code}{trouble}'
    answer = log_in(stranger, hostile, "hunter2 hunter2")
    assert "<script>" not in answer.text and "&lt;script&gt;" in answer.text and "{code}" in answer.text
    told = " ".join(str(entry) for entry in trail(accounts))
    assert "hunter2" not in told and "script" not in told
    assert "{id}" in invite_page("", "{id}", "x", "y")


@pytest.mark.parametrize("name", ["Ada", "nobody there"])
def test_an_account_is_locked_for_a_while_from_wherever_one_guesses(workspace, accounts, name):
    clients = [Person(workspace, "nobody").client]
    answers = [log_in(clients[0], name, f"wrong password {number}").status_code for number in range(guesses.FREE)]
    assert answers == [401] * guesses.FREE
    assert log_in(clients[0], name, WORDS).status_code == 429


def test_wrong_guesses_at_one_account_lock_no_other(workspace, accounts):
    login = AccountLogin(workspace, accounts, login_of(workspace, {}))
    for _ in range(guesses.ALL_TOGETHER + 10):
        login.by_account.wrong("account Ada")
    assert login.by_account.wait("account Ada") > 0 and login.by_account.wait("account bob") == 0


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_no_other_site_logs_somebody_in(stranger, accounts, origin):
    assert log_in(stranger, origin=origin).status_code == 403
    assert sessions_of(accounts, "Ada") == []


def test_a_long_form_is_no_form(stranger, accounts):
    assert log_in(stranger, "Ada", "x" * 100_000).status_code == 401
    assert trail(accounts) == []


def test_scripts_are_told_in_their_own_way(stranger):
    answer = stranger.get("/studio/projects/one/labels/progress", headers={"origin": HOST})
    assert (answer.status_code, answer.json()["code"]) == (401, "LOGIN_NEEDED")
    assert stranger.get("/_stcore/health").status_code == 401


# --- invites ----------------------------------------------------------------------------------------------------------


def test_an_invite_becomes_a_password_and_a_session_once(stranger, accounts, workspace):
    add_account(accounts, "eve", shown_as="Eve <b>")
    code = invite(accounts, "eve")
    page = stranger.get(f"/?invite={code}", headers=PAGE)
    assert page.status_code == 200 and "Eve &lt;b&gt;" in page.text
    form = {"invite": code, "password": WORDS, "again": WORDS}
    assert "differ" in stranger.post("/", data={**form, "again": "x"}, headers=PAGE).text
    weak = stranger.post("/", data={**form, "password": "short", "again": "short"}, headers=PAGE)
    assert weak.status_code == 400 and "can be guessed" in weak.text
    answer = stranger.post(f"/?invite={code}", data=form, headers=PAGE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert stranger.get("/").text == "page" and password_is(accounts, "eve", WORDS)
    again = Person(workspace, "nobody").client
    assert "expired" in again.get(f"/?invite={code}", headers=PAGE).text
    assert again.post("/", data=form, headers=PAGE).status_code == 401


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_logging_out_ends_the_session_itself(workspace, accounts):
    ada = Person(workspace, "Ada")
    assert ada.client.get("/").status_code == 200
    answer = ada.ask("POST", "/logout")
    assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
    stolen = Person(workspace, "nobody")
    stolen.take(ada.cookie)
    assert stolen.client.get("/").status_code == 401
    assert trail(accounts)[0].act == "logged out"


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"x-semiprune-token": "no"}])
def test_no_other_site_logs_somebody_out(workspace, accounts, headers):
    ada = Person(workspace, "Ada")
    assert ada.ask("POST", "/logout", headers=headers).status_code == 403
    assert len(sessions_of(accounts, "Ada")) == 1


def test_a_second_tab_may_send_its_login_form_too(workspace, accounts):
    ada = Person(workspace, "Ada")
    answer = log_in(ada.client, "bob")
    assert (answer.status_code, answer.headers["location"]) == (303, "/label?project=one")
    assert sessions_of(accounts, "bob") == []


def test_a_session_that_was_ended_asks_for_the_login_again(workspace, accounts):
    ada = Person(workspace, "Ada")
    end_session(accounts, "Ada", sessions_of(accounts, "Ada")[0].mark)
    assert "Log in" in ada.client.get("/", headers=PAGE).text


def test_accounts_that_cannot_be_read_let_nobody_in(workspace):
    (workspace.root / FILE).write_bytes(b"no database at all, but long enough to have a count" * 20)
    client = Person(workspace, "nobody").client
    answer = client.get("/", headers=PAGE)
    assert answer.status_code == 503 and "Its log says why" in answer.text
