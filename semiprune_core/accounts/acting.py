"""The rights of whoever acts: of a session, looked up anew for each question, or of the command line."""

from __future__ import annotations

from dataclasses import dataclass

from semiprune_core.accounts.book import Account, Accounts, State
from semiprune_core.accounts.sessions import session_of
from semiprune_core.accounts.table import RANKS, Line, line_of
from semiprune_core.accounts.trail import COMMAND_LINE, add_to_trail
from semiprune_core.errors import ForbiddenError

OVER = "Your session has ended. Reload the page and log in again; labels that were not sent yet wait in this browser."


@dataclass(frozen=True)
class SessionRights:
    """What the bearer of a cookie may do now. A session that was ended may nothing, whatever it has opened."""

    accounts: Accounts
    cookie: str
    address: str = ""

    @property
    def person(self) -> Account:
        return self._person()

    @property
    def mark(self) -> str:
        """The hash by which the session is known."""
        return self._session()[0]

    @property
    def account(self) -> str:
        return self._person().id

    def rank(self, project: str = "") -> int:
        """How much the account may do in a project, or the most it may in any."""
        return rank_of(self.accounts.state(), self._person(), project)

    def may(self, kind: str, name: str, project: str = "") -> bool:
        """Whether a line of the table is allowed."""
        line = line_of(kind, name)
        return self.rank(_place(line, project)) >= RANKS[line.least]

    def require(self, kind: str, name: str, project: str = "") -> None:
        """Refuse what a line of the table does not allow, in words."""
        if not self.may(kind, name, project):
            raise ForbiddenError(self.refusal(kind, name, project))

    def refusal(self, kind: str, name: str, project: str = "") -> str:
        """Which role is needed, and which one there is."""
        line = line_of(kind, name)
        return _refusal(line, self.rank("" if line.anywhere else project), project)

    def allows(self, act: str, project: str = "") -> bool:
        return self.may("act", act, project)

    def check(self, act: str, project: str = "") -> None:
        self.require("act", act, project)

    def record(self, act: str, project: str = "", note: str = "") -> None:
        add_to_trail(self.accounts, self.account, act, project=project, note=note, address=self.address)

    def _person(self) -> Account:
        return self._session()[1]

    def _session(self) -> tuple[str, Account]:
        held = session_of(self.accounts, self.cookie)
        if held is None:
            raise ForbiddenError(OVER, code="SESSION_OVER")
        return held[0].mark, held[1]


@dataclass(frozen=True)
class CommandLine:
    """Whoever can type a command in the workspace can do everything; what was done is written down."""

    accounts: Accounts

    @property
    def account(self) -> str:
        return ""

    def allows(self, act: str, project: str = "") -> bool:
        return True

    def check(self, act: str, project: str = "") -> None:
        return

    def record(self, act: str, project: str = "", note: str = "") -> None:
        add_to_trail(self.accounts, COMMAND_LINE, act, project=project, note=note)


def rank_of(state: State, person: Account, project: str = "") -> int:
    if person.is_admin:
        return RANKS["admin"]
    if project:
        role = state.role(project, person.id)
        return RANKS["account"] if role is None else RANKS[role]
    return max((RANKS[role] for role in state.roles_of(person.id).values()), default=RANKS["account"])


def _place(line: Line, project: str) -> str:
    """Which project the role is needed in; to ask without naming it is a defect, and never an answer."""
    if not line.anywhere and not project:
        raise ValueError(f"'{line.name}' is allowed in a project; none was named.")
    return "" if line.anywhere else project


def _refusal(line: Line, rank: int, project: str) -> str:
    own = next(name for name, height in RANKS.items() if height == rank)
    what = line.words.partition(":")[0] or f"see the page {line.name.capitalize()}"
    if line.least == "admin":
        return f"Only admins of the server may do this: {what}. Ask one of them."
    yours = f"you are {own} there" if own in ("labeler", "engineer") else "you are no member of it"
    where = f"of '{project}'" if project and not line.anywhere else "of any project"
    return f"This needs the role {line.least} {where}, and {yours}: {what}. Ask an owner of the project."
