"""The rows of checks: notes about agents, and what their details mean.

The process that runs a check records that it begins and how it ends, as Watchroom. An agent's row with these
tools never takes effect (`watchroom.features.people.rules`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.features.checks.rules import CHECK_SEQUELS, CHECK_STATES, CheckSequel, CheckState
from watchroom.kernel.rules.details import get_count, get_float, get_text
from watchroom.model import BEGIN_CHECK, END_CHECK, SYSTEM, Json, Row, Zone
from watchroom.validation import escape_unstorable

CHECK_ZONE: Final[Zone] = "agent"
"""The zone of the notes. Their path is the agent's id."""
MAX_SUMMARY: Final = 200
"""Maximum characters of a summary."""
MAX_TAIL: Final = 8000
"""Maximum characters of the output that is kept, and sent back."""
_MAX_SHOWN_COMMAND: Final = 500


class DoneClaim(NamedTuple):
    """The claim of an agent that it is done, made by ending its answer.

    - ``agent``, ``session``: the agent, and the path of its session.
    - ``row``: the number of the step that ended the answer.
    - ``prompted``: the number of the row of a person's last prompt to the agent; 0 if unknown.
    - ``stays``: whether the session takes prompts after it is done, as sessions of the runtime do.
    - ``is_again``: whether its check is repeated because the process of the first run ended.
    - ``wakes``: whether a message begins its next turn. Otherwise, the message waits for a person's prompt,
      so the person must be notified.
    """

    agent: str
    session: str
    row: int
    prompted: int = 0
    stays: bool = False
    is_again: bool = False
    wakes: bool = True


class CheckBegin(NamedTuple):
    """The start of a check.

    - ``check``, ``command``: its name and its command, as in the settings.
    - ``session``: the path of the session whose agent claims to be done.
    - ``claim``: the row of this claim.
    - ``is_again``: whether the check is repeated because the process of its first run ended.
    """

    check: str
    command: str
    session: str
    claim: int
    is_again: bool = False

    @property
    def detail(self) -> dict[str, Json]:
        """The record as a row's detail has it."""
        return {**self._asdict(), "command": escape_unstorable(self.command, _MAX_SHOWN_COMMAND)}


def read_begin(row: Row) -> CheckBegin:
    """Return the record of ``row``, a note with the tool `BEGIN_CHECK`."""
    detail = row.detail
    check, command, session = (get_text(detail, name) for name in ("check", "command", "session"))
    return CheckBegin(check, command, session, get_count(detail, "claim"), detail.get("is_again") is True)


class CheckEnd(NamedTuple):
    """How a check ended. The content of its row is the end of the output.

    - ``check``: its name.
    - ``begun``: the row of its start.
    - ``status``: its exit status; None if it has none.
    - ``failed``, ``total``: the numbers of failed tests and of all tests; both 0 if the output has no
      numbers.
    - ``summary``: one line.
    - ``sequel``: see `CheckSequel`. ``sent``: the number of failures that were sent back, including this one.
    """

    check: str
    begun: int
    state: CheckState
    status: int | None = None
    seconds: float = 0.0
    failed: int = 0
    total: int = 0
    summary: str = ""
    sequel: CheckSequel = "done"
    sent: int = 0

    @property
    def detail(self) -> dict[str, Json]:
        """The record as a row's detail has it."""
        return {**self._asdict(), "seconds": round(self.seconds, 3)}


def read_end(row: Row) -> CheckEnd:
    """Return the record of ``row``, a note with the tool `END_CHECK`. Damaged fields are empty."""
    detail = row.detail
    state, sequel = get_text(detail, "state"), get_text(detail, "sequel")
    status = detail.get("status")
    return CheckEnd(
        get_text(detail, "check"),
        get_count(detail, "begun"),
        next((each for each in CHECK_STATES if each == state), "not_run"),
        status if type(status) is int else None,
        get_float(detail, "seconds"),
        get_count(detail, "failed"),
        get_count(detail, "total"),
        get_text(detail, "summary"),
        next((each for each in CHECK_SEQUELS if each == sequel), "unproven"),
        get_count(detail, "sent"),
    )


def is_check(row: Row) -> bool:
    """Return whether ``row`` is a note of Watchroom about a check."""
    is_note = row.version is None and row.outcome == "ok" and row.zone == CHECK_ZONE
    return is_note and row.actor == SYSTEM and row.tool in (BEGIN_CHECK, END_CHECK)


def is_unproven(row: Row) -> bool:
    """Return whether ``row`` records that a person must decide, because a check did not pass."""
    # Searched as text first, because there are many rows.
    return row.tool == END_CHECK and '"unproven"' in row.detail_json and read_end(row).sequel == "unproven"


PROMPT_MARK: Final = "[watchroom check "
"""The beginning of a prompt about a failed check. The check's name follows it."""
_MARKED: Final = re.compile(r"(?m)^[^\n]{0,40}" + re.escape(PROMPT_MARK))


def is_prompt_of_check(text: str) -> bool:
    """Return whether the prompt ``text`` is from a check, not from a person."""
    return _MARKED.search(text[:2000]) is not None
