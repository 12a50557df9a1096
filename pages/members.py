"""Members: who belongs to the project, and as what."""

from __future__ import annotations

import streamlit as st

from pages.parts import errors, identity, invites
from pages.parts import project as projects
from semiprune_core.accounts import ROLES, Account, Managing, members_of
from semiprune_core.labeling.events import MAX_ANNOTATOR
from semiprune_core.project.workspace import Project

ICON = "group"
WORDS = {
    "labeler": "labels, and sees nothing else",
    "engineer": "draws, trains, selects, exports",
    "owner": "members, disputes, copies, delete",
}


def add(acts: Managing, project: Project) -> None:
    with st.form("members_add", border=True, clear_on_submit=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.text_input("Name", max_chars=MAX_ANNOTATOR, width=260, placeholder="Ada")
            role = st.selectbox("Role", ROLES, width=160)
            submitted = st.form_submit_button("Add", type="primary", icon=":material/person_add:")
        st.caption("Somebody without an account gets one, and you get a link to send.")
    if submitted:
        errors.attempt(lambda: add_and_tell(acts, project, name, str(role)))


def add_and_tell(acts: Managing, project: Project, name: str, role: str) -> None:
    code = acts.add_member(project.name, name, role)
    if code is not None:
        invites.remember(name, code)


def row(acts: Managing, project: Project, member: Account, role: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        waiting = "" if member.has_password else " :gray[invited]"
        st.markdown(f"{invites.named(member)}{waiting}", width=300)
        chosen = st.selectbox(
            "Role", ROLES, ROLES.index(role), key=f"role_{member.id}_{role}", width=160, label_visibility="collapsed"
        )
        if chosen != role and st.button("Save", key=f"save_{member.id}", type="primary"):
            errors.attempt(lambda: acts.change_role(project.name, member.id, str(chosen)))
        if st.button("Remove", key=f"remove_{member.id}"):
            errors.attempt(lambda: acts.remove_member(project.name, member.id))
        invites.button(acts, member)


def main() -> None:
    acts, project = identity.manage(), projects.current()
    projects.title("Members", "Who belongs to this project. A change counts at once, in open pages too.")
    if project is None:
        st.info("No project is open.", icon=":material/folder_open:")
        st.page_link("home.py", label="Go to Projects", icon=":material/arrow_forward:")
        return
    acts.rights.check("members", project.name)
    invites.show()
    add(acts, project)
    members = members_of(acts.accounts, project.name)
    for member, role in members:
        row(acts, project, member, role)
    if not members:
        st.caption("Nobody yet but the admins of the server, who may do everything everywhere.")
    st.caption(" · ".join(f"{role}: {words}" for role, words in WORDS.items()))


main()
