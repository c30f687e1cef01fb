"""The person at this machine: their name, and what they do in a workspace."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from watchroom.model import Json

if TYPE_CHECKING:
    from watchroom.texts import Language
    from watchroom.workspace import Workspace

    from watchroom_tui.services.person_calls import PersonCall


def name_of_this_person() -> str:
    """The name under which a person acts who gave none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "supervisor"


def act_as_person(
    workspace: Workspace, person: str, call: PersonCall, *, language: Language | None = None
) -> Mapping[str, Json]:
    """Make ``call`` in ``workspace`` as the person of that name; returns the tool's result, in ``language``
    (default: the workspace's). Refused beneath an agent's client; people shall see that it was tried. Raises
    `InvalidAgentId`."""
    from watchroom.clients.errors import AgentCannotAnswer
    from watchroom.clients.parent_agent import find_parent_agent

    tools = workspace.tools_for_human(person, language=language)
    if agent := find_parent_agent(workspace.root, os.environ):
        return tools.refuse(call.tool, call.arguments, AgentCannotAnswer(agent=agent))
    return tools.dispatch_tool_call(call.tool, call.arguments)
