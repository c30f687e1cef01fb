"""The tmux pane in which a client was started, as rows record it. Pure.

Rows may come from anyone who can write to the journal, so both parts are checked strictly before a program
gets them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.model import Json

MAX_SOCKET_BYTES: Final = 107
"""Maximum bytes of a socket's path. This is the limit of the system."""
_PANE: Final = re.compile(r"%[0-9]{1,9}")


class TmuxPane(NamedTuple):
    """A pane: the path of the ``socket`` of its server, and its ``id`` on the server, such as ``%3``."""

    socket: str
    id: str

    @property
    def fields(self) -> list[Json]:
        """The pane as a row's detail has it."""
        return [self.socket, self.id]


def find_pane(environment: Mapping[str, str]) -> TmuxPane | None:
    """Return the pane in which a process with the variables ``environment`` was started. None if it was
    started outside of tmux."""
    # The value ends with the process of the server and the number of the session.
    socket = environment.get("TMUX", "").rsplit(",", 2)[0]
    return read_pane([socket, environment.get("TMUX_PANE", "")])


def read_pane(fields: Json) -> TmuxPane | None:
    """Return the pane in ``fields``, as a row's detail has it. None if they name no pane."""
    if not isinstance(fields, list) or len(fields) != 2:
        return None
    socket, pane = fields
    if not isinstance(socket, str) or not isinstance(pane, str) or not _PANE.fullmatch(pane):
        return None
    is_path = socket.startswith("/") and socket.isprintable() and os.path.normpath(socket) == socket
    return TmuxPane(socket, pane) if is_path and len(os.fsencode(socket)) <= MAX_SOCKET_BYTES else None
