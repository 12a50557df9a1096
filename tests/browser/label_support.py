"""The running app for the browser tests, small projects in it, and the label page in a tab."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image
from playwright.sync_api import BrowserContext, Page, TimeoutError

from semiprune_core.copies import copy_project
from semiprune_core.importing import ImportSettings, import_source
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.labeling import LabelStore, open_store, schema
from semiprune_core.labeling.leases import WAITING
from semiprune_core.progress import Collected
from semiprune_core.project.pool import PoolSettings, show_id
from semiprune_core.project.workspace import Project, Workspace
from tests.browser.serving import Server, free_port
from tests.support.waiting import PATIENCE, wait_until

HASTE = 10_000
"""Milliseconds for one try at something that is tried again."""


class Studio(Server):
    """The running app, and small projects in it."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / "home", home / "pictures", free_port(), home / "app.log")
        self.pictures.mkdir()
        self.imported: dict[tuple, str] = {}

    @property
    def workspace(self) -> Workspace:
        return Workspace.open(self.home)

    def project(self, name: str, *, n: int = 40, classes=("cat", "dog", "owl"), names=None, side: int = 16) -> Project:
        """A project of ``n`` distinct pictures, all of them drawn, with classes; equal ones are imported once."""
        key = (n, tuple(classes), tuple(names or ()), side)
        if key not in self.imported:
            self.imported[key] = self._import(f"{name}-first", n, classes, names, side).name
        return copy_project(self.workspace, self.imported[key], name)

    def _import(self, name: str, n: int, classes, names, side: int) -> Project:
        folder = self.pictures / name
        folder.mkdir(parents=True)
        rng = np.random.default_rng(7)
        for number in range(n):
            pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            path = folder / (names[number] if names else f"{number:03d}.png")
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(pixels).save(path, format="PNG")
        project = self.workspace.create(name, name=name, pool=PoolSettings(size=28))
        settings = ImportSettings(source=SourceSpec("folder", str(folder)).to_json(), n_workers=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SEMIPRUNE_ROOTS", str(self.pictures))
            import_source(project, settings, Collected())
        store, pool = open_store(project), project.pool()
        assert len(pool) == n
        store.classes.add(list(classes), annotator="maker")
        draw_all(store, pool)
        return project


def draw_all(store: LabelStore, pool) -> None:
    store.drawings.draw(
        pool_hash=pool.hash, ids=pool.ids, duplicate_of=pool.duplicate_of, fraction=1.0, annotator="maker"
    )


def settled(page: Page) -> None:
    """Wait until the script of the page has ended, so that nothing moves any more."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def choose(page: Page, name: str, option: str) -> None:
    """Choose from a list by its name; again where the page was drawn anew under the hand and closed it."""
    field = page.get_by_role("combobox", name=name)

    def chosen() -> bool:
        settled(page)
        with contextlib.suppress(TimeoutError):
            field.click(timeout=HASTE)
            page.get_by_role("option", name=option).click(timeout=HASTE)
        return option in field.input_value()

    wait_until(chosen, f"{option} in {name}")


def open_context(open_profile, annotator: str = "ada") -> BrowserContext:
    """A browser profile that knows its annotator; a script that runs anything sets ``window.pwned``."""
    context = open_profile(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(
        f"window.pwned = 0; localStorage.setItem('semiprune:annotator', {json.dumps(annotator)});"
        "window.alert = window.confirm = window.prompt = () => { window.pwned += 1; };"
    )
    return context


class DeckPage:
    """The label page in one tab."""

    def __init__(self, studio: Studio, project: Project, context: BrowserContext, annotator: str = "ada") -> None:
        self.studio = studio
        self.project = project
        self.annotator = annotator
        self.page: Page = context.new_page()

    @property
    def store(self) -> LabelStore:
        return open_store(self.project)

    def open(self) -> DeckPage:
        self.page.goto(f"{self.studio.url}/label?project={self.project.name}")
        self.ready()
        self.decoded()
        return self

    def ready(self) -> str:
        """Wait for a picture; returns its id."""
        self.page.wait_for_selector(".stage[data-image]:not([data-image=''])", timeout=1000 * PATIENCE)
        return self.shown()

    def decoded(self, n: int = 10) -> None:
        """Wait for the next ``n`` pictures: a key on one that has not come yet labels nothing."""
        ready = (
            "(root, n) => root.studio.line.slice(root.studio.at, root.studio.at + n)"
            ".every((card) => card.ready || card.broken)"
        )
        wait_until(lambda: self.page.locator(".labeling").evaluate(ready, n), f"{n} pictures to be decoded")

    def shown(self) -> str:
        return self.page.locator(".stage").get_attribute("data-image") or ""

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def leased(self) -> int:
        """How many images this annotator holds."""
        query = sa.select(sa.func.count()).where(
            schema.leases.c.project == self.store.project,
            schema.leases.c.annotator == self.annotator,
            schema.leases.c.image_id != WAITING,  # the place of somebody for whom nothing is left
        )
        with self.store.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def view(self, name: str) -> None:
        self.page.get_by_text(name, exact=True).first.click()

    def status(self) -> str:
        return self.page.locator(".status").inner_text()

    def all_saved(self) -> None:
        wait_until(lambda: self.status() == "All saved", f"everything to be saved, not: {self.status()}")

    def cards(self) -> list[dict]:
        return self.page.locator(".labeling").evaluate(
            "root => root.studio.line.map(({id, action, classId, save, flagged}) => "
            "({id, action, classId, save, flagged}))"
        )

    def labels(self) -> dict[str, int]:
        """What the store holds for this annotator: class number by image id."""
        return {
            show_id(one.image_id): one.class_id
            for one in self.store.held(annotator=self.annotator)
            if one.round == "label" and one.action == "label"
        }

    def decisions(self) -> list[dict]:
        return [row for row in self.store.events() if row["annotator"] == self.annotator]


def seen_and_pressed(deck, keys, pause):
    """Press keys one after the other; the images that were in view at each."""
    seen = []
    for key in keys:
        seen.append(deck.ready())
        deck.press(key)
        time.sleep(pause)
    return seen
