"""Accounts: everybody who may come in, for the admins of the server."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, identity, invites
from pages.parts import project as projects
from pages.parts.text import literal
from semiprune_core.accounts import Account, Managing
from semiprune_core.labeling.events import MAX_ANNOTATOR

ICON = "badge"


def add(acts: Managing) -> None:
    with st.form("people_add", border=True, clear_on_submit=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.text_input("Name", max_chars=MAX_ANNOTATOR, width=260, placeholder="Ada")
            admin = st.checkbox("Admin of the server")
            submitted = st.form_submit_button("Add", type="primary", icon=":material/person_add:")
        st.caption("The name is for ever: it stands in every label. What others see can be changed later.")
    if submitted:
        errors.attempt(lambda: invites.remember(name, acts.add_account(name, admin=admin)))


def row(acts: Managing, account: Account, roles: dict[str, str]) -> None:
    state = "closed" if account.is_closed else "" if account.has_password else "invited"
    words = ["admin of the server"] if account.is_admin else []
    words += [f"{role} of {project}" for project, role in sorted(roles.items())]
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"{invites.named(account)} {state}  \n{literal(', '.join(words), 400)}",
            width="stretch",
        )
        invites.button(acts, account)
        if account.is_closed:
            return
        if st.button("No admin" if account.is_admin else "Make admin", key=f"admin_{account.id}"):
            errors.attempt(lambda: acts.set_admin(account.id, not account.is_admin))
        with st.popover("Close"):
            st.write("The account's sessions end at once. Its labels and its name stay; a new link opens it again.")
            if st.button("Close the account", key=f"close_{account.id}"):
                errors.attempt(lambda: acts.close(account.id))


def main() -> None:
    acts = identity.manage()
    projects.title("Accounts", "Everybody who may come in. Roles are given on the Members page of each project.")
    acts.rights.check("manage accounts")
    invites.show()
    add(acts)
    state = acts.accounts.state()
    for account in sorted(state.accounts.values(), key=lambda one: (one.is_closed, one.shown.casefold())):
        row(acts, account, state.roles_of(account.id))


main()
