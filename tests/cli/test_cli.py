"""The command line says the same as the pages: as text, as JSON, as an exit code."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from semiprune_core import cli
from semiprune_core.commands import COMMANDS
from semiprune_core.labeling import checking, look_after_labels, open_store
from semiprune_core.labeling.store import store_file

ROOT = Path(__file__).resolve().parents[2]


def run(capsys, *words):
    code = cli.main([*words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_new_makes_a_project_and_projects_lists_it(capsys, class_folder):
    code, out, _ = run(
        capsys, "new", "My Pets", "--from", str(class_folder), "--size", "32", "--workers", "1", "--json"
    )
    made = json.loads(out)
    assert (code, made["project"], made["n_images"], made["labels"]) == (0, "my-pets", 20, {"cat": 10, "dog": 10})
    code, out, _ = run(capsys, "projects", "--json")
    assert json.loads(out) == [{"name": "my-pets", "title": "My Pets", "images": 20, "done": ["pool"], "next": "label"}]
    assert "next: label" in run(capsys, "projects")[1]


def test_new_allows_what_it_names_and_says_so(capsys, class_folder, workspace, monkeypatch):
    monkeypatch.delenv("SEMIPRUNE_ROOTS")
    words = ("new", "--from", str(class_folder), "--workers", "1", "--size", "32")
    code, out, _ = run(capsys, *words, "Pets")
    assert code == 0 and f"{class_folder} may be read by the app from now on." in out
    assert workspace.allowed_folders() == (class_folder,)
    assert "from now on" not in run(capsys, *words, "More pets")[1]


def test_a_refused_source_leaves_no_project(capsys, tmp_path, workspace):
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 not really")
    code, out, err = run(capsys, "new", "Bad", "--from", str(tmp_path / "bad.zip"), "--json")
    assert code == 1
    assert json.loads(out)["code"].startswith("ZIP_")
    assert err.startswith("semiprune: ") and err.count("\n") == 1
    assert workspace.names() == []


def test_a_taken_name_is_refused_and_the_first_stays(capsys, class_folder, workspace):
    words = ("new", "Pets", "--from", str(class_folder), "--workers", "1")
    assert run(capsys, *words)[0] == 0
    code, _, err = run(capsys, *words)
    assert code == 1 and "already" in err
    assert len(workspace.project("pets").pool()) == 20


def test_verify_proves_a_project_and_names_the_first_difference(capsys, class_folder, workspace):
    run(capsys, "new", "Pets", "--from", str(class_folder), "--workers", "1")
    assert run(capsys, "verify", "pets")[:2] == (0, "Verified: 2 of 2 are as they were written.\n")
    artifact = workspace.project("pets").artifacts()[0]
    data = bytearray(artifact.path("thumbs.bin").read_bytes())
    data[100] ^= 1
    artifact.path("thumbs.bin").write_bytes(data)
    code, out, _ = run(capsys, "verify", str(artifact.folder))
    assert code == 1 and out.startswith("Differs. pool-0001: thumbs.bin was changed")
    assert json.loads(run(capsys, "verify", "pets", "--json")[1])["ok"] is False


def test_damaged_labels_are_named_and_restored(capsys, class_folder, workspace):
    run(capsys, "new", "Pets", "--from", str(class_folder), "--workers", "1")
    run(capsys, "sample", "pets", "--fraction", "0.5")
    run(capsys, "labels", "reference", "pets")
    project = workspace.project("pets")
    before = open_store(project).snapshot().hash
    assert run(capsys, "verify", "pets")[1] == "Verified: 3 of 3 are as they were written.\n"
    assert run(capsys, "restore", "pets")[0] == 1  # nothing needs it
    look_after_labels(workspace)
    with contextlib.closing(sqlite3.connect(store_file(project))) as connection, connection:
        connection.execute("UPDATE label_events SET class_id = 1 - class_id WHERE seq = 5")
    checking.forget(store_file(project))
    assert "event 5 (label by reference" in run(capsys, "projects")[1]
    code, out, _ = run(capsys, "verify", "pets")
    assert code == 1 and out.startswith("Differs. labels: event 5 (label by reference")
    code, out, _ = run(capsys, "restore", "pets")
    assert code == 0 and "Nothing is lost. The damaged file was kept as .labels.sqlite.damaged-" in out
    assert run(capsys, "verify", "pets")[0] == 0 and open_store(project).snapshot().hash == before


@pytest.mark.parametrize("path", ["nowhere", ".", "x" * 300, "a/" * 3000])
def test_verify_says_when_there_is_nothing_to_verify(capsys, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "verify", path)[0] == 1


def test_variants_are_put_on_and_recorded(capsys, tmp_path, workspace):
    from tests.conftest import make_class_folder

    folder = make_class_folder(tmp_path / "many", n=60)
    run(capsys, "new", "Hard", "--from", str(folder), "--corrupt", "0.5", "--longtail", "0.5", "--workers", "1")
    pool = workspace.project("hard").pool()
    assert sorted((pool.reference_labels == c).sum() for c in (0, 1)) == [15, 30]
    corrupted = [name for name in pool.column("corruption").to_pylist() if name]
    assert len(corrupted) == 22  # half of 45, rounded to even
    assert set(corrupted) <= {"gaussian_noise", "occlusion", "low_resolution", "fog", "motion_blur"}


def test_every_command_has_help_and_takes_json(capsys):
    parser = cli.build_parser()
    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([name, "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out


def test_wrong_usage_exits_with_two(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["nonsense"])
    assert ended.value.code == 2


def test_python_dash_m_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "semiprune_core", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.startswith("semiprune ")


@pytest.mark.parametrize(
    "words, code, answer",
    [
        (["--version"], 0, "semiprune 0.1.0"),
        ([], 2, "semiprune: error: name a command. To list them: semiprune --help"),
    ],
    ids=["version", "bare"],
)
def test_version_and_a_bare_call_answer_without_loading_anything(words, code, answer):
    script = f"""
import sys
from semiprune_core.cli import main
try:
    main({words!r})
except SystemExit as ended:
    loaded = {{name.partition(".")[0] for name in sys.modules}} & {{"numpy", "pandas", "pyarrow", "torch", "PIL"}}
    print(ended.code, sorted(loaded))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert answer in (done.stdout + done.stderr).splitlines()
    assert done.stdout.splitlines()[-1] == f"{code} []"
