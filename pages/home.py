"""Projects: what there is, where each one stands, and what is next."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from pages.parts import components, errors, first_sight, job_glance, job_panel, tour, urls
from pages.parts import project as projects
from pages.parts.text import count, literal
from semiprune_core import jobs, steps
from semiprune_core.copies import (
    archive_project,
    archived_projects,
    bring_back,
    copy_project,
    delete_project,
    has_backup,
    restore,
)
from semiprune_core.demo import finished as finished_demo
from semiprune_core.errors import SemiPruneError
from semiprune_core.importing import ImportSettings, begin_project, can_repeat
from semiprune_core.importing.sources.base import SourceSpec
from semiprune_core.jobs import states
from semiprune_core.labeling import copies_note
from semiprune_core.project import rights
from semiprune_core.project.pool import Pool, show_id
from semiprune_core.project.workspace import Project, slug_of
from semiprune_core.report.glance import last_result, last_worked_on

log = logging.getLogger("semiprune")

PREVIEW = 24
DEMO_TITLE = "Fashion demo"
CLIPART_TITLE = "Clip art"
SORTS = {"worked": "Last worked on", "title": "Name", "created": "Newest first"}
OPENING = "opening_finished_demo"
RESTORED = "restored"


def open_bundled(source: str, title: str) -> None:
    """Go to the project of a bundled pool; the first time, make it and start its import."""
    space = projects.workspace()
    name = slug_of(title)
    if name not in space:
        begin_project(space, title, ImportSettings(source=SourceSpec(source).to_json()), name=name)
    projects.choose(name)
    st.switch_page("pool.py")


def open_finished(goal: str = "pool.py") -> None:
    """Go to the finished demo; the first time it is put into the workspace, which takes some seconds."""
    job = finished_demo.open_finished_demo(projects.workspace())
    projects.choose(finished_demo.NAME)
    if goal == "pool.py":
        st.session_state.setdefault(tour.KEY, True)  # unless it was left before
    if job is None:
        st.switch_page(goal)
    st.session_state[OPENING] = goal
    st.rerun()


def watch_opening() -> None:
    """The finished demo on its way (its card shows how far it is); when it is there, it opens."""
    if not st.session_state.get(OPENING):
        return
    space = projects.workspace()
    if finished_demo.is_open(space):
        st.switch_page(st.session_state.pop(OPENING))
    opening_jobs = (
        jobs.list_jobs(space.project(finished_demo.NAME), finished_demo.KIND) if finished_demo.NAME in space else []
    )
    if not opening_jobs:
        del st.session_state[OPENING]
    else:
        job_panel.ended(opening_jobs[0], what="Opening the finished demo", starts_over=True)


def demos(*, first: bool) -> None:
    """Two ways to look around: everything done already, or the same pool from the beginning."""
    with st.container(border=True):
        st.markdown(
            "**The demo:** 6,000 small pictures of clothes. Open it finished, or start from scratch. "
            "**Clip art:** 1,949 drawings in colour, as messy as real pools are."
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            if finished_demo.is_bundled() and st.button(
                "Open the finished demo",
                type="primary" if first else "secondary",
                icon=":material/auto_awesome:",
                help="The results of a real run, as your own project. Look at every page and change what you like.",
            ):
                open_finished()
            if finished_demo.is_bundled() and st.button(
                "Present",
                icon=":material/co_present:",
                help="The finished demo as a story of ten minutes, for a room full of people.",
            ):
                open_finished("present.py")
            if st.button(
                "Open the demo",
                icon=":material/play_arrow:",
                help="The same pictures from scratch: you label and train.",
            ):
                open_bundled("demo", DEMO_TITLE)
            if st.button(
                "Open the clip art",
                icon=":material/palette:",
                help="Drawings of 15 kinds, some of them rare, with near-copies and broken ones among them.",
            ):
                open_bundled("clipart", CLIPART_TITLE)
            tour.start_button()


class Damaged(NamedTuple):
    """Why a project cannot be opened, and whether there is something to restore it from."""

    reason: str
    can_restore: bool


class Look(NamedTuple):
    """What a card shows of a project, read before anything is drawn."""

    project: Project
    pool: Pool | None
    running: jobs.Job | None
    last_import: jobs.Job | None
    can_retry: bool
    damaged_jobs: dict[Path, str]
    step: steps.Step
    caption: str
    n_done: int = 0
    result: str = ""
    worked: datetime = datetime.fromtimestamp(0, UTC)


def look(project: Project) -> Look:
    """Read a project; raises where it is damaged."""
    running = next((job for job in jobs.list_jobs(project) if job.status().state not in states.OVER), None)
    damaged_jobs = jobs.damaged_jobs(project)
    if not project.has_pool() or (running is not None and running.kind == finished_demo.KIND):
        last = next(iter(jobs.list_jobs(project, "import")), None) if running is None else None
        can_retry = last is not None and can_repeat(project.workspace, ImportSettings.from_json(last.settings))
        step = steps.BY_KEY["pool"]
        return Look(project, None, running, last, can_retry, damaged_jobs, step, "No images yet.")
    pool = project.pool()
    places = steps.standing(project)
    done = [place.step.title for place in places if place.state == "done"]
    step = steps.next_step(project)
    standing = f"done: {', '.join(done)} · next: {step.title}" if len(done) < len(places) else "all steps are done"
    caption = f"{count(len(pool), 'image')} · {standing}"
    worked = last_worked_on(project)
    return Look(project, pool, None, None, False, damaged_jobs, step, caption, len(done), last_result(project), worked)


def labelers_card(seen: Look) -> None:
    """A project of somebody who only labels there."""
    with st.container(border=True):
        st.markdown(f"#### {literal(seen.project.title)}")
        if seen.pool is not None:
            pictures(seen.project, seen.pool)
        if st.button("Label", key=f"go_{seen.project.name}", type="primary", disabled=seen.pool is None):
            projects.choose(seen.project.name)
            st.switch_page("label.py")


def card(seen: Look) -> None:
    """One project: a row of its pictures, its place in the line, what came out last, the next step."""
    project = seen.project
    if not rights.allows("run", project.name):
        labelers_card(seen)
        return
    with st.container(border=True):
        st.markdown(f"#### {literal(project.title)}")
        if seen.running is not None:
            job_panel.show(seen.running)
        else:
            if seen.pool is not None:
                pictures(project, seen.pool)
                st.progress(seen.n_done / len(steps.STEPS), f"{seen.n_done} of {len(steps.STEPS)} steps")
            st.caption(seen.caption)
            if seen.result:
                st.markdown(literal(seen.result, 300))
            if seen.pool is not None:
                st.caption(f"Last worked on {seen.worked:%Y-%m-%d}, begun {project.config['created'][:10]}.")
            job_glance.on_card(project)
            if seen.last_import is not None:
                job_panel.ended(seen.last_import, what="The import", can_retry=seen.can_retry, starts_over=True)
        for folder, reason in seen.damaged_jobs.items():
            damaged_job(folder, reason)
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(f"Go to {seen.step.title}", key=f"go_{project.name}", type="primary"):
                projects.choose(project.name)
                st.switch_page(f"{seen.step.key}.py")
            if st.button("View pool", key=f"pool_{project.name}", disabled=not project.has_pool()):
                projects.choose(project.name)
                st.switch_page("pool.py")
            if rights.allows("copy", project.name):
                with st.popover("", icon=":material/more_horiz:", help="More"):
                    more(project)


def pictures(project: Project, pool: Pool) -> None:
    components.gallery(
        [
            components.Item(id=show_id(number), src=urls.picture(project.name, show_id(number)))
            for number in pool.ids[:: max(1, len(pool) // PREVIEW)][:PREVIEW]
        ],
        key=f"preview_{project.name}",
        cell=52,
        one_row=True,
    )


@errors.shown()
def more(project: Project) -> None:
    name = st.text_input("Name", project.title, key=f"title_{project.name}", max_chars=80)
    if st.button("Rename", key=f"rename_{project.name}", disabled=name.strip() in ("", project.title)):
        errors.attempt(lambda: project.rename(name))
    st.write("An archived project leaves this page; it can be brought back below.")
    if st.button("Archive", key=f"archive_{project.name}", icon=":material/archive:"):
        errors.attempt(lambda: put_aside(project.name))
    st.divider()
    st.write("A copy has the same labels and results. Changing it leaves this project alone.")
    title = st.text_input("Name of the copy", f"{project.title} copy", key=f"copy_title_{project.name}")
    if st.button("Make a copy", key=f"copy_{project.name}", disabled=not project.has_pool() or not title):
        projects.choose(copy_project(projects.workspace(), project.name, title).name)
        st.switch_page("pool.py")
    st.divider()
    delete(project.name)


def put_aside(name: str) -> None:
    archive_project(projects.workspace(), name)
    if st.session_state.get(projects.KEY) == name:
        projects.choose(None)


def archive() -> None:
    """What was put aside, each with a way back."""
    space = projects.workspace()
    aside = archived_projects(space)
    if not aside:
        return
    with st.expander(f"Archived ({len(aside)})", icon=":material/archive:"):
        for project in aside:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{literal(project.title)}** :gray[{project.when} UTC]", width="stretch")
                if st.button("Bring back", key=f"back_{project.folder}"):
                    errors.attempt(functools.partial(bring_back, space, project.folder))


def in_order(listed: Mapping[str, Look | Damaged]) -> list[tuple[str, Look | Damaged]]:
    """The projects as the person wants them sorted; those that cannot be opened come first."""
    by = st.session_state.get("home_sort", "worked")
    orders: dict[str, Callable[[Look], tuple[object, ...]]] = {
        "worked": lambda seen: (-seen.worked.timestamp(), seen.project.title.lower()),
        "title": lambda seen: (seen.project.title.lower(), seen.project.name),
        "created": lambda seen: (*(-ord(letter) for letter in seen.project.config["created"]), seen.project.name),
    }
    return sorted(listed.items(), key=lambda item: (0,) if isinstance(item[1], Damaged) else (1, *orders[by](item[1])))


def delete(name: str) -> None:
    st.write("Deleting removes the project's folder with its labels and results. Your original files stay.")
    typed = st.text_input(f"Type {name} to delete it", key=f"confirm_{name}")
    if st.button("Delete", key=f"delete_{name}", disabled=typed != name):
        delete_project(projects.workspace(), name)
        projects.choose(None)
        st.rerun()


def damaged_card(name: str, damaged: Damaged) -> None:
    """A project that cannot be opened: why, and the ways out."""
    space = projects.workspace()
    with st.container(border=True):
        st.markdown(f"#### {literal(name)}")
        if not rights.allows("archive", name):
            st.error("This project cannot be opened. Ask an owner of the project.", icon=":material/error:")
            return
        st.error(f"This project cannot be opened. {literal(damaged.reason, 1000)}", icon=":material/error:")
        with st.container(horizontal=True, vertical_alignment="center"), errors.shown():
            if damaged.can_restore and st.button("Restore", key=f"restore_{name}", type="primary"):
                errors.attempt(lambda: restore_and_tell(name))
            if st.button("Archive", key=f"archive_{name}", help="Moves the folder aside, into .archive, as it is."):
                errors.attempt(lambda: archive_project(space, name))
            with st.popover("Delete"):
                delete(name)


def restore_and_tell(name: str) -> None:
    st.session_state[RESTORED] = " ".join(restore(projects.workspace(), name))


def damaged_job(folder: Path, reason: str) -> None:
    """A job that cannot be read; the project's other jobs go on."""
    st.warning(f"A job of this project is damaged. {literal(reason, 1000)}", icon=":material/error:")
    with st.container(horizontal=True):
        if st.button("Archive the job", key=f"archive_{folder.name}", help="Keeps its folder under a hidden name."):
            errors.attempt(lambda: jobs.remove_damaged_job(folder, archive=True))
        if st.button("Delete the job", key=f"delete_{folder.name}"):
            errors.attempt(lambda: jobs.remove_damaged_job(folder, archive=False))


def looked_at(name: str) -> Look | Damaged:
    """What there is to show of a project, or why it cannot be opened: one damaged project must not hide the others."""
    space = projects.workspace()
    try:
        return look(space.project(name))
    except SemiPruneError as error:
        return Damaged(str(error), error.code == "STORE_DAMAGED" or has_backup(space, name))
    except Exception as error:  # noqa: BLE001 - logged, and shown in its card
        log.exception("The project %s cannot be read.", name)
        return Damaged(f"One of its files cannot be read ({type(error).__name__}: {error}).", has_backup(space, name))


st.header("Projects", anchor=False)
watch_opening()
if told := st.session_state.pop(RESTORED, None):
    st.success(literal(told, 1000), icon=":material/check:")
listed = {name: looked_at(name) for name in projects.workspace().names()}

may_make = rights.allows("new project")
with st.container(horizontal=True):
    if may_make and st.button("New project", type="primary" if listed else "secondary", icon=":material/add:"):
        st.switch_page("new.py")
    if len(listed) > 1:
        st.selectbox(
            "Sort by", list(SORTS), format_func=SORTS.get, key="home_sort", label_visibility="collapsed", width=180
        )

if not listed and not may_make:
    st.info("No project is yours yet. Ask the owner of one to add you on its Members page.", icon=":material/group:")
elif not listed:
    first_sight.draw()
    demos(first=True)
    first_sight.saved()
    with st.expander("The nine steps", icon=":material/route:"):
        for number, step in enumerate(steps.STEPS, start=1):
            st.markdown(f"**{number}. {step.title}**  :gray[{step.purpose}]")

grid = st.grid(2, min_column_width=420)
with grid:
    for name, seen in in_order(listed):
        if isinstance(seen, Damaged):
            damaged_card(name, seen)
        else:
            card(seen)
if listed:
    if note := copies_note():
        st.caption(note)
    if may_make:
        demos(first=False)
archive()
