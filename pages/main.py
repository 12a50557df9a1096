"""The frame around every page: configuration, the project's line of steps, navigation."""

from __future__ import annotations

import ast
import logging
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # `streamlit run` puts the script's own folder there, not ours
    sys.path.insert(0, str(ROOT))

from pages.parts import errors, identity, leave, next_step, running_jobs, tour  # noqa: E402
from pages.parts import project as projects  # noqa: E402
from pages.parts.text import literal  # noqa: E402
from semiprune_core import steps  # noqa: E402
from semiprune_core.errors import SemiPruneError  # noqa: E402
from semiprune_core.project.workspace import Project  # noqa: E402
from semiprune_core.registry import broken  # noqa: E402

log = logging.getLogger("semiprune")

FRAME = ("__init__", "main", "home", "new", "present")
OTHER_ICON = "article"
TEAM = ("members", "trail", "people", "account")
"""Pages that are there only with accounts."""

IS_PRESENTED = urlsplit(st.context.url or "").path.endswith("/present")
"""The slides have the window for themselves."""
st.set_page_config(
    page_title="SemiPrune Studio",
    page_icon=str(ROOT / "assets" / "icon.png"),
    layout="wide",
    initial_sidebar_state="collapsed" if IS_PRESENTED else "auto",
)
st.logo(str(ROOT / "assets" / "logo.png"), size="large", icon_image=str(ROOT / "assets" / "icon.png"))


def opened() -> tuple[Project | None, list[steps.Standing], str]:
    """The open project and where it stands at each step; one that is damaged is closed, and the reason told."""
    try:
        project = projects.current()
        return project, projects.standing(project) if project else [], ""
    except SemiPruneError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - logged and told; Projects must stay within reach
        log.exception("The open project cannot be read.")
        reason = f"One of the project's files cannot be read ({type(error).__name__}: {error})."
    projects.choose(None)
    return None, [], reason


def step_pages(places: list[steps.Standing]) -> list[st.Page]:
    """The line, each step with its state: a tick when done, its own icon when it can be done, faint when it waits."""
    pages = []
    states = {place.step.key: place.state for place in places}
    for step in steps.STEPS:
        icon = "check_circle" if states.get(step.key) == "done" else step.icon
        waiting = states.get(step.key) == "waiting"
        pages.append(
            st.Page(
                f"{step.key}.py",
                title=f":gray[{step.title}]" if waiting else step.title,
                icon=f":material/{icon}:",
                url_path=step.key,
            )
        )
    return pages


def other_pages() -> dict[str, tuple[str, str]]:
    """Pages that are no step: what each file says of itself, by name. A new file here is a new page.

    Its title is the first word or words of its docstring, up to the colon, its icon the constant ``ICON``.
    """
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in FRAME or path.stem in steps.BY_KEY:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        title = (ast.get_docstring(tree) or path.stem.capitalize()).partition(":")[0]
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        found[path.stem] = title, str(constants.get("ICON", OTHER_ICON))
    return found


def tell_what_is_left_out() -> None:
    """Packages from outside whose entry points could not be loaded."""
    for left_out in broken():
        st.warning(literal(left_out.sentence, 1000), icon=":material/extension_off:")


def refused(name: str, title: str, project: str) -> st.Page:
    """In the place of a page that is not among those of whoever is here: whose it is."""

    def explain() -> None:
        st.header(steps.BY_KEY[name].title if name in steps.BY_KEY else title, anchor=False)
        st.info(literal(identity.whose(name, project), 400), icon=":material/lock:")
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")

    return st.Page(explain, title=title, url_path=name, visibility="hidden")


def navigation(project: Project | None, places: list[steps.Standing]) -> st.Page:
    """The pages there are for whoever is here, and the one that is shown."""
    home = st.Page("home.py", title="Projects", icon=":material/home:", default=True)
    new = st.Page("new.py", title="New project", icon=":material/add:", url_path="new", visibility="hidden")
    present = st.Page("present.py", title="Present", url_path="present", visibility="hidden")
    line = dict(zip([step.key for step in steps.STEPS], step_pages(places), strict=True))
    others = {
        name: st.Page(f"{name}.py", title=title, icon=f":material/{icon}:", url_path=name)
        for name, (title, icon) in other_pages().items()
    }
    team = {name: others.pop(name) for name in TEAM}
    sections = {
        "": {"home": home, "new": new, "present": present},
        literal(project.title, 40) if project else "Steps": {**line, **others},
        "Team": team if identity.current() is not None else {},
    }
    here = project.name if project else ""
    theirs = {
        title: [page if identity.sees(name, here) else refused(name, page.title, here) for name, page in pages.items()]
        for title, pages in sections.items()
    }
    position: Literal["hidden", "sidebar"] = "hidden" if IS_PRESENTED else "sidebar"
    return st.navigation({title: pages for title, pages in theirs.items() if pages}, position=position, expanded=True)


def main() -> None:
    if identity.is_over():
        st.navigation([st.Page(identity.say_over, title="Log in")], position="hidden").run()
        return
    name = st.session_state.get(projects.KEY)
    if name is None and projects.KEY in st.query_params:
        st.session_state[projects.KEY] = st.query_params[projects.KEY]
    tour.recall()
    open_project, places, damage = opened()
    page = navigation(open_project, places)
    here = open_project.name if open_project else ""
    identity.start(page.url_path or "home", here)
    warnings = st.container()
    if damage:
        warnings.error(literal(damage, errors.LIMIT), icon=":material/error:")
    if open_project is not None:
        st.query_params[projects.KEY] = open_project.name
    try:
        if works := identity.sees("train", here):
            tour.show(page.url_path or "home")
            running_jobs.in_sidebar(page.url_path or "home")
        page.run()
        if works:
            next_step.show(page.url_path, places)
        leave.in_sidebar()
        with warnings:
            tell_what_is_left_out()
    except SemiPruneError as error:
        errors.show(error)
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")


main()
