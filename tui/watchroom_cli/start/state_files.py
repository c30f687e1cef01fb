"""Remove this user's state files about a removed workspace."""

from __future__ import annotations

import os
from contextlib import closing

from watchroom.agents.clients.routine_places import RoutinePlaces
from watchroom.errors import JournalError, WorkspaceNotFound
from watchroom.features.people.service import find_id
from watchroom.history.seal.anchors import Anchors, EnrolmentPin, state_folder
from watchroom_tui.presentation.memory_file import memory_path

from watchroom_cli.arguments.time_argument import open_journal


def read_workspace_id(place: str) -> str:
    """Return the id of the workspace at ``place``: its folder, or its address on a server.

    Empty if the workspace has no id, or if its journal is missing or damaged. Such a workspace can also be
    removed.
    """
    try:
        with closing(open_journal(place)) as journal:
            return find_id(journal)
    except (JournalError, WorkspaceNotFound):
        return ""


def forget_workspace(place: str, workspace: str) -> None:
    """Remove this user's files about the workspace at ``place``. ``workspace``: its id. Raise OSError."""
    state = state_folder()
    Anchors(state, place).forget(workspace)
    EnrolmentPin(state, place).forget()
    memory_path(place).unlink(missing_ok=True)
    RoutinePlaces(state).forget(os.path.realpath(place))


def forget_demo(place: str) -> None:
    """Remove this user's files about the demo at ``place``, whose folder will be removed. Raise OSError."""
    forget_workspace(place, read_workspace_id(place))
