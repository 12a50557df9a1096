"""Images, uploads and downloads by URL."""

import shutil
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.project.pool import show_id
from semiprune_core.project.workspace import Workspace
from semiprune_core.server import browser_token, studio_routes
from semiprune_core.server import uploads as upload_routes
from tests.support.small_disk import mounted

PIECE = 1 << 20


@pytest.fixture
def client(workspace):
    return TestClient(Starlette(routes=studio_routes(workspace)), base_url="http://localhost:8501")


@pytest.fixture
def token(workspace):
    return {"x-semiprune-token": browser_token(workspace)}


@pytest.fixture
def project(class_folder, import_into):
    (class_folder / "cat" / "page.jpg").write_text("<html>")
    return import_into(SourceSpec("folder", str(class_folder)))[0]


def test_a_thumbnail_and_an_original_come_by_id(client, project, class_folder):
    pool = project.pool()
    address = f"/studio/projects/{project.name}/images/{show_id(pool.ids[3])}"
    thumb, original = client.get(f"{address}/thumb"), client.get(f"{address}/original")
    assert thumb.headers["content-type"] == "image/png" and thumb.content == pool.thumb(3)
    assert original.content == (class_folder / pool.path(3)).read_bytes()
    assert "immutable" in thumb.headers["cache-control"]
    assert "sandbox" in thumb.headers["content-security-policy"]


@pytest.mark.parametrize("base", ["prune", "/prune/"])
def test_below_a_base_path_the_routes_answer_there_and_nowhere_else(workspace, project, base):
    client = TestClient(Starlette(routes=studio_routes(workspace, base)), base_url="http://localhost:8501")
    address = f"/studio/projects/{project.name}/images/{show_id(project.pool().ids[0])}/thumb"
    assert client.get(f"/prune{address}").content == project.pool().thumb(0)
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    "path, status",
    [
        ("test/images/0000000000000000/thumb", 404),
        ("test/images/zz/thumb", 400),
        ("test/images/0000000000000000/huge", 404),
        ("other/images/0000000000000000/thumb", 404),
        ("..%2Ftest/images/0000000000000000/thumb", 404),
        ("test/exports/..%2Fproject.json", 404),
        ("test/exports/.hidden", 404),
        ("test/exports/missing.csv", 404),
        ("%2e%2e/exports/secret", 404),
        pytest.param(f"test/facts/{'9' * 5000}", 404, id="a number of 5,000 digits"),
    ],
)
def test_what_is_not_there_is_said_in_json_or_not_found(client, project, path, status):
    answer = client.get(f"/studio/projects/{path}")
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_an_export_is_served_from_disk_under_its_own_name(client, project):
    (project.exports_folder / "coreset-ab12.csv").write_text("a,b\n")
    answer = client.get(f"/studio/projects/{project.name}/exports/coreset-ab12.csv")
    assert answer.text == "a,b\n"
    assert 'filename="coreset-ab12.csv"' in answer.headers["content-disposition"]


def test_an_export_that_is_a_link_is_not_served(client, project, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (project.exports_folder / "link.csv").symlink_to(tmp_path / "secret.txt")
    assert client.get(f"/studio/projects/{project.name}/exports/link.csv").status_code == 404


def test_problems_come_as_a_table_safe_for_spreadsheets(client, class_folder, import_into):
    (class_folder / "=cmd()").mkdir()
    (class_folder / "=cmd()" / "a.png").write_bytes(b"")
    project, _ = import_into(SourceSpec("folder", str(class_folder)))
    lines = client.get(f"/studio/projects/{project.name}/problems.csv").text.splitlines()
    assert lines[0] == "import,path,code,message"
    assert lines[1].startswith("pool-0001,'=cmd()/a.png,")


def begin(client, token):
    return client.post("/studio/uploads", headers=token).json()["upload"]


def test_an_upload_is_streamed_to_disk_and_listed(client, token, workspace):
    upload = begin(client, token)
    headers = token | {"x-file-name": "cats%2F%C3%A4%20b.png"}
    assert client.put(f"/studio/uploads/{upload}/0", headers=headers, content=b"x" * 3_000_000).json() == {
        "bytes": 3_000_000
    }
    folder = workspace.uploads_folder / upload
    assert (folder / "files" / "0").stat().st_size == 3_000_000
    assert (folder / "index.jsonl").read_text() == '{"file": "0", "name": "cats/ä b.png", "bytes": 3000000}\n'
    assert client.delete(f"/studio/uploads/{upload}", headers=token).status_code == 204
    assert not folder.exists()


@pytest.mark.parametrize("name", ["..%2Fx.png", "%2Fetc%2Fpasswd", "a%2F..%2F..%2Fb", "C%3A%5Cx", "a%00b"])
def test_a_file_name_that_climbs_is_refused_and_not_written(client, token, workspace, name):
    upload = begin(client, token)
    answer = client.put(f"/studio/uploads/{upload}/0", headers=token | {"x-file-name": name}, content=b"x")
    assert answer.status_code == 403
    assert list((workspace.uploads_folder / upload / "files").iterdir()) == []


def test_uploads_need_the_token(client, workspace):
    assert client.post("/studio/uploads").status_code == 403
    assert not workspace.uploads_folder.exists()


@pytest.mark.parametrize("upload", ["..", "0" * 32, "../../etc", "x"])
def test_an_unknown_upload_is_refused(client, token, upload):
    assert client.put(f"/studio/uploads/{upload}/0", headers=token, content=b"x").status_code == 404


def test_a_file_over_the_limit_is_refused_with_the_way_out(client, token, monkeypatch, workspace):
    upload = begin(client, token)
    monkeypatch.setenv("SEMIPRUNE_MAX_UPLOAD_GB", "0.000001")
    answer = client.put(f"/studio/uploads/{upload}/0", headers=token | {"x-file-name": "a.zip"}, content=b"x" * 5000)
    assert answer.json()["code"] == "UPLOAD_TOO_LARGE" and "server" in answer.json()["error"]
    pieces = client.put(f"/studio/uploads/{upload}/1", headers=token, content=iter([b"x" * 3000, b"x" * 3000]))
    assert pieces.json()["code"] == "UPLOAD_TOO_LARGE"  # no length was announced; the bytes are counted
    assert list((workspace.uploads_folder / upload / "files").iterdir()) == []


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "9" * 5000, "\u0663"])
def test_a_length_that_is_no_number_is_refused_in_words(client, token, length):
    headers = {**token, "content-length": length.encode()}
    answer = client.put(f"/studio/uploads/{begin(client, token)}/0", headers=headers, content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_LENGTH")


def test_a_file_that_does_not_fit_on_the_disk_is_refused_first(client, token, monkeypatch):
    upload = begin(client, token)
    monkeypatch.setattr(upload_routes, "KEEP_FREE", 1 << 60)
    answer = client.put(f"/studio/uploads/{upload}/0", headers=token, content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (507, "DISK_FULL")


def in_pieces(app, between):
    """An app that gets the body of a request piece by piece, as from a network; the test client sends it whole."""

    async def wrapped(scope, receive, send):
        body = (await receive())["body"]
        pieces = [body[start : start + PIECE] for start in range(0, len(body), PIECE)] or [b""]

        async def next_piece():
            between()
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        await app(scope, next_piece, send)

    return wrapped


def send_six_pieces(workspace, monkeypatch, between):
    """The answer to an upload that does not say how long it is, with 4 MB to be kept free; what is left of it."""
    monkeypatch.setattr(upload_routes, "KEEP_FREE", 4 * PIECE)
    app = in_pieces(Starlette(routes=studio_routes(workspace)), between)
    client, token = TestClient(app, base_url="http://localhost:8501"), {"x-semiprune-token": browser_token(workspace)}
    upload = begin(client, token)
    answer = client.put(f"/studio/uploads/{upload}/0", headers=token, content=iter([bytes(6 * PIECE)]))
    assert "content-length" not in answer.request.headers
    return answer, list((workspace.uploads_folder / upload / "files").iterdir())


def test_a_file_of_unknown_length_is_refused_before_it_takes_the_last_space(workspace, monkeypatch):
    def disk_usage(folder):
        taken = sum(path.stat().st_size for path in (folder / "files").iterdir())
        return SimpleNamespace(free=8 * PIECE - taken)

    monkeypatch.setattr(upload_routes.shutil, "disk_usage", disk_usage)
    answer, left = send_six_pieces(workspace, monkeypatch, between=lambda: None)
    assert (answer.status_code, answer.json()["code"], left) == (507, "DISK_FULL", [])


def test_on_a_small_disk_it_takes_none_of_what_is_kept_free(tmp_path, monkeypatch):
    with mounted(tmp_path / "disk", megabytes=8) as disk:
        free = []
        answer, left = send_six_pieces(
            Workspace(disk), monkeypatch, between=lambda: free.append(shutil.disk_usage(disk).free)
        )
        assert (answer.status_code, answer.json()["code"], left) == (507, "DISK_FULL", [])
        assert 4 * PIECE <= min(free) < 6 * PIECE, "some of it was written before it was refused"
        assert shutil.disk_usage(disk).free > 7 * PIECE


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".csv", "%ed%a0%80.csv"])
def test_an_export_that_cannot_be_is_not_there(client, project, name):
    answer = client.get(f"/studio/projects/{project.name}/exports/{name}")
    assert (answer.status_code, answer.json()["code"]) == (404, "NO_EXPORT")


def test_forgotten_uploads_are_cleared(client, token, workspace, monkeypatch):
    old = begin(client, token)
    monkeypatch.setattr(upload_routes, "STALE_SECONDS", -1)
    begin(client, token)
    assert not (workspace.uploads_folder / old).exists()
