"""The one table of what may be done by whom: routes, pages, acts and the command line.

``least`` is the lowest role that may; whoever has a higher one may too. The checks of every route, page and write ask
this table. What stands in no line is allowed to nobody. ``python -m semiprune_core.accounts.table`` prints it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

ROLES = ("labeler", "engineer", "owner")
"""Roles in a project, each with all that the ones before it may."""
RANKS = {"account": 0, "labeler": 1, "engineer": 2, "owner": 3, "admin": 4}
"""Lowest first: whoever is logged in, the roles of a project, the admins of the server."""


@dataclass(frozen=True)
class Line:
    """One thing that may be done. ``anywhere``: the role is needed in any project, not in a certain one."""

    name: str
    least: str
    words: str
    anywhere: bool = False


ROUTES = (
    Line("GET /projects/{project}/images/{image_id}/{size:str}", "labeler", "a picture"),
    Line("POST /projects/{project}/labels", "labeler", "save label events, one's own"),
    Line("POST /projects/{project}/labels/queue", "labeler", "the next images of a queue"),
    Line("POST /projects/{project}/labels/leases", "labeler", "hold images, or give them back"),
    Line("POST /projects/{project}/labels/similar", "labeler", "put similar images side by side"),
    Line("POST /projects/{project}/labels/live", "labeler", "how good the labels are so far"),
    Line("GET /projects/{project}/labels/classes", "labeler", "the classes"),
    Line("GET /projects/{project}/labels/progress", "labeler", "how far the labeling is"),
    Line("POST /projects/{project}/labels/classes", "engineer", "add a class"),
    Line("GET /projects/{project}/labels/export/{format}", "engineer", "download labels"),
    Line("GET /projects/{project}/exports/{name}", "engineer", "download an export"),
    Line("GET /projects/{project}/problems.csv", "engineer", "what an import could not use, with paths"),
    Line("GET /projects/{project}/maps/{map}/points", "engineer", "the map"),
    Line("GET /projects/{project}/columns/{column}", "engineer", "labels and scores of all images"),
    Line("GET /projects/{project}/facts/{position:number}", "engineer", "everything about one image"),
    Line("POST /uploads", "engineer", "begin an upload", anywhere=True),
    Line("PUT /uploads/{upload}/{number:number}", "engineer", "send a file of one's own upload", anywhere=True),
    Line("DELETE /uploads/{upload}", "engineer", "discard one's own upload", anywhere=True),
    Line("POST /logout", "account", "end one's own session", anywhere=True),
)
PAGES = (
    Line("home", "account", "one's own projects", anywhere=True),
    Line("account", "account", "one's own password and sessions", anywhere=True),
    Line("label", "labeler", "deck, grid and progress; the rest of it from engineer on"),
    Line("pool", "engineer", ""),
    Line("train", "engineer", ""),
    Line("pseudo", "engineer", ""),
    Line("scores", "engineer", ""),
    Line("select", "engineer", ""),
    Line("map", "engineer", ""),
    Line("evaluate", "engineer", ""),
    Line("export", "engineer", ""),
    Line("present", "engineer", "the slides"),
    Line("members", "owner", "who belongs to the project"),
    Line("trail", "owner", "who did what in the project"),
    Line("new", "admin", "a new project", anywhere=True),
    Line("people", "admin", "the accounts of the server", anywhere=True),
)
ACTS = (
    Line("open", "labeler", "see that the project is there"),
    Line("label", "labeler", "label, skip, flag and undo, under one's own id"),
    Line("review", "engineer", "overrule labels in a review"),
    Line("classes", "engineer", "add, rename, merge and remove classes"),
    Line("draw", "engineer", "draw images to label"),
    Line("import labels", "engineer", "bring labels in from a file or from the pool"),
    Line("run", "engineer", "start, stop and resume jobs: import uploads, train, score, search, export"),
    Line("make", "engineer", "coresets and other results made on a page"),
    Line("settle", "owner", "settle disagreements"),
    Line("copy", "owner", "copy the project"),
    Line("archive", "owner", "archive or restore the project"),
    Line("delete", "owner", "delete the project"),
    Line("members", "owner", "add members, change roles, remove members"),
    Line("new project", "admin", "make a project", anywhere=True),
    Line("read server folders", "admin", "import from folders of the server, and allow them", anywhere=True),
    Line("manage accounts", "admin", "add, invite and close accounts", anywhere=True),
)
COMMANDS = (
    Line("semiprune ...", "admin", "whoever may read the workspace's files: no command asks for a login", True),
)
TABLE = {"route": ROUTES, "page": PAGES, "act": ACTS, "command": COMMANDS}
_BY_NAME = {kind: {line.name: line for line in lines} for kind, lines in TABLE.items()}


def line_of(kind: str, name: str) -> Line:
    """The line of a route, page or act; one without a line is a defect."""
    return _BY_NAME[kind][name]


def has_line(kind: str, name: str) -> bool:
    return name in _BY_NAME[kind]


def as_text() -> str:
    """The table as ``docs/accounts.md`` prints it."""
    rows = ["| kind | what | from which role on | |", "|---|---|---|---|"]
    for kind, lines in TABLE.items():
        for line in lines:
            role = f"{line.least} of any project" if line.anywhere and line.least in ROLES else line.least
            rows.append(f"| {kind} | `{line.name}` | {role} | {line.words} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(as_text() + "\n")
