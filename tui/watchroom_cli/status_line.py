"""The question for the status line of a workspace. Only small modules are loaded, because status lines ask
every few seconds."""

from __future__ import annotations

import os

from watchroom.agents.clients import client_program

_ANSWER_SECONDS = 2.0
"""Timeout for the answer of the service, in seconds."""


def ask_for_line(place: str, language: str) -> str | None:
    """Return the status line of the workspace at ``place`` from the running service.

    - ``place``: a folder in the workspace or its repository, or the address of its database.
    - ``language``: the language of the line.

    None if no service runs, or the service has not opened the workspace. Nothing is started.
    """
    given = place if "://" in place else os.path.abspath(place)
    fields = [("place", given), ("language", language)]
    try:
        answer = client_program.ask("GET", "/line", _ANSWER_SECONDS, fields)
    except (OSError, ValueError):
        return None
    return answer.decode(errors="replace").strip()
