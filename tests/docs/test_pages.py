"""README and docs against the house: links lead somewhere, commands parse, every command is told of."""

import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest

from semiprune_core.cli import build_parser
from semiprune_core.commands import COMMANDS
from semiprune_core.learning.presets import SSL_PRESETS, ssl_preset

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STEPS = ("pool", "label", "train", "pseudo-labels", "map", "scores", "select", "evaluate", "export")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\.venv/bin/)?semiprune ")
LARGEST, LARGEST_TOGETHER = 150_000, 2_500_000

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text):
    text = without_code(text)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)


def anchors(page):
    """The anchors that a Markdown page's headings get."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_lines(text):
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}.*$", text, re.MULTILINE)
    return [line for block in (*fenced, *indented) for line in block.splitlines()]


@by_page
def test_every_link_leads_somewhere(page):
    for link in links(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.is_relative_to(ROOT) and goal.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(goal), f"{page.name}: {link}"


@by_page
def test_every_command_line_parses(page, capsys):
    parser = build_parser()
    for line in code_lines(page.read_text()):
        if not COMMAND.match(line):
            continue
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)[1:]
        try:
            parser.parse_args(words)
        except SystemExit:
            pytest.fail(f"{page.name}: {line.strip()}\n{capsys.readouterr().err}")


@by_page
def test_commands_named_in_a_sentence_exist(page):
    for name in re.findall(r"`semiprune ([a-z]+)\b", page.read_text()):
        assert name in COMMANDS, f"{page.name}: semiprune {name}"


def test_every_command_is_told_of():
    told = {line.split()[1] for page in PAGES for line in code_lines(page.read_text()) if COMMAND.match(line)}
    assert set(COMMANDS) <= told


def test_every_step_has_a_page_with_its_parts():
    for step in STEPS:
        text = (ROOT / "docs" / f"{step}.md").read_text()
        for part in ("## In the app", "## On the command line", "## When it goes wrong", "](images/"):
            assert part in text, f"{step}.md lacks {part}"


def test_no_page_speaks_of_a_place_on_this_machine():
    for page in PAGES:
        assert not re.search(r"/(?:root|work|tmp)/", page.read_text()), page.name


def test_pictures_are_small_and_used():
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    used = {Path(link).name for page in PAGES for link in links(page.read_text())}
    assert pictures and {path.name for path in pictures} <= used
    sizes = [path.stat().st_size for path in pictures]
    assert max(sizes) <= LARGEST and sum(sizes) <= LARGEST_TOGETHER


@pytest.mark.parametrize("preset", ["quick", "finetune", "standard"])
def test_the_page_of_train_says_how_long_a_preset_is(preset):
    settings, lines = ssl_preset(preset), (ROOT / "docs" / "train.md").read_text().splitlines()
    (row,) = (line for line in lines if line.startswith(f"| {SSL_PRESETS.title(preset)} |"))
    unlabeled = settings.batch_size * settings.unlabeled_ratio
    assert f"{settings.n_steps:,} steps of {settings.batch_size} labeled and {unlabeled} unlabeled images" in row
