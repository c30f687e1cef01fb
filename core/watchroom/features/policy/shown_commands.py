"""Commands that are shown to people, who can paste them into a shell. Pure.

Every word is quoted, and is either fixed or a value that passed a check. An invalid value is replaced by a
placeholder, or left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import DeniedError
from watchroom.validation import check_agent_id, check_session_id

FOLDER: Final = "DIR"
MODEL: Final = "NAME"
URL: Final = "URL"
"""Placeholders for values that the person fills in."""
_CLIENT: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
"""Matches the name of a client that ``watchroom run`` can start. It asks before it first runs a command of
the ACP registry."""
MAX_CHARACTERS: Final = 4096

OmittedPart: TypeAlias = Literal["command", "agent", "folder"]
"""A part that a command omits because it is invalid."""


class ResumeCommand(NamedTuple):
    """The command that continues lost work.

    - ``text``: empty if there is no such command.
    - ``omitted``: the parts that were invalid.
    """

    text: str = ""
    omitted: tuple[OmittedPart, ...] = ()


def quote_command(words: Sequence[str]) -> str:
    """Quote ``words`` as one line for a POSIX shell.

    quote_command(["watchroom", "open", "my team"])  # "watchroom open 'my team'"
    """
    return shlex.join(words)


def quote_word(given: str, placeholder: str = FOLDER) -> str:
    """Quote ``given`` as one word for a POSIX shell.

    Return ``placeholder`` if it is empty, begins with ``-`` or contains unprintable characters.
    """
    return shlex.quote(given) if _is_word(given) else placeholder


def find_resume_command(
    recorded: str, agents: Sequence[str], tasks: Sequence[str], folder: str = ""
) -> ResumeCommand:
    """Return the command that continues the work of a lost process.

    - ``recorded``: the command in the journal. It is not trusted, and only selects one of the known forms.
    - ``agents``, ``tasks``: the ids that the process ran.
    - ``folder``: the folder of the workspace as the reader opened it; empty if unknown.
    """
    omitted: list[OmittedPart] = []
    place = FOLDER
    if folder:
        place = folder if _is_word(folder) else FOLDER
        if place != folder:
            omitted.append("folder")
    names = [each for each in agents if _is_valid(check_agent_id, each)]
    names += [each for each in tasks if _is_valid(check_session_id, each)]
    if len(names) < len(agents) + len(tasks):
        omitted.append("agent")
    words = _recorded_words(recorded, agents, place) if recorded else None
    if recorded and words is None:
        omitted.append("command")
    if words is None and names:
        words = ["watchroom", "resume", place, names[0]]
    return ResumeCommand(quote_command(words or ()), tuple(omitted))


def _recorded_words(recorded: str, agents: Sequence[str], place: str) -> list[str] | None:
    """Return the words of ``recorded`` if it has one of the known forms, else None."""
    try:
        words = shlex.split(recorded) if len(recorded) <= MAX_CHARACTERS else []
    except ValueError:
        return None
    match words:
        case ["watchroom", "demo", _]:
            return ["watchroom", "demo", place]
        case ["watchroom", "task", "--team", _]:
            return ["watchroom", "task", "--team", place]
        case ["watchroom", "task", "--team", _, "--model", _]:
            return ["watchroom", "task", "--team", place, "--model", MODEL]
        case ["watchroom", "task", "--team", _, "--model", _, "--base-url", _]:
            return ["watchroom", "task", "--team", place, "--model", MODEL, "--base-url", URL]
        case ["watchroom", "run", client, _, "--agent", agent, "--resume", session]:
            is_known = _CLIENT.fullmatch(client) and agent in agents and _is_valid(check_agent_id, agent)
            if is_known and _is_valid(check_session_id, session):
                return ["watchroom", "run", client, place, "--agent", agent, "--resume", session]
    return None


def _is_valid(check: Callable[[str], str], given: str) -> bool:
    try:
        check(given)
    except DeniedError:
        return False
    return True


def _is_word(given: str) -> bool:
    return given != "" and given.isprintable() and not given.startswith("-")
