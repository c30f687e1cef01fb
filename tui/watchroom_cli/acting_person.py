"""The person at this machine: the person's name, and their calls in a workspace."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from watchroom.features.policy.shown_commands import quote_word
from watchroom.model import Json
from watchroom_tui.presentation.shown_place import place_word

if TYPE_CHECKING:
    from watchroom.features.people.rows import People
    from watchroom.texts import Catalogue, Language
    from watchroom.workspace import Workspace
    from watchroom_tui.services.person_calls import PersonCall


def name_of_this_person() -> str:
    """Return the name of the operating system's user, or ``supervisor`` if it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "supervisor"


def suggest_closing(workspace: Workspace, root: str, texts: Catalogue) -> None:
    """Print how to close the ``workspace`` at ``root`` to unsigned decisions.

    Print nothing if it is closed already, or the person at this machine has no key.
    """
    from watchroom_tui.services.signing_keys import key_path

    name = name_of_this_person()
    if os.path.exists(key_path(name)) and not workspace.people.current().is_closed:
        own, place = quote_word(name, "NAME"), place_word(root)
        print(texts("cli.person.suggestion", root=place, name=own), file=sys.stderr)


def unlock_key(workspace: Workspace, people: People, name: str, texts: Catalogue, key: str = "") -> None:
    """Sign later decisions in ``workspace`` with a person's key.

    - ``people``: the enrolled people.
    - ``name``: the person who signs. The passphrase is asked for.
    - ``key``: the key file, default: the person's own key file.

    Raise the errors of `open_signer`.
    """
    from watchroom_tui.services.signing_keys import open_signer

    from watchroom_cli.passphrase import ask_passphrase

    workspace.signing.signer = open_signer(
        people, name, lambda path: ask_passphrase(texts("cli.person.passphrase", path=path)), key
    )


def refuse_agents(root: str) -> None:
    """Raise `AgentCannotAnswer` if an agent's client of the workspace at ``root`` runs this command."""
    from watchroom.agents.clients.processes import find_parent_agent
    from watchroom.errors import AgentCannotAnswer

    if agent := find_parent_agent(root, os.environ):
        raise AgentCannotAnswer(agent=agent)


def act_as_person(
    workspace: Workspace,
    person: str,
    call: PersonCall,
    *,
    language: Language | None = None,
    key: str = "",
) -> Mapping[str, Json]:
    """Make ``call`` in ``workspace`` as a person, and return the tool's result.

    - ``person``: the person's name.
    - ``language``: the language of the result, default: the workspace's.
    - ``key``: the key file that signs the call if needed, default: the person's own key file.

    A call from within an agent's client is refused. The attempt is recorded for people. Raise
    `InvalidAgentId` for an invalid name, and the errors of `unlock_key`.
    """
    from watchroom.agents.clients.processes import find_parent_agent
    from watchroom.errors import AgentCannotAnswer, SignatureRequired
    from watchroom.texts import catalogue

    tools = workspace.tools_for_human(person, language=language)
    if agent := find_parent_agent(workspace.root, os.environ):
        return tools.refuse(call.tool, call.arguments, AgentCannotAnswer(agent=agent))
    result = tools.dispatch_tool_call(call.tool, call.arguments)
    if result.get("error") != SignatureRequired.code:
        return result
    texts = catalogue(language or workspace.config.language, "watchroom_tui.texts")
    unlock_key(workspace, workspace.people.current(), person, texts, key)
    return result if workspace.signing.signer is None else tools.dispatch_tool_call(call.tool, call.arguments)
