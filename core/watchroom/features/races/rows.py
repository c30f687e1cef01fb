"""The rows of races: notes on working trees, and what their details mean.

Each agent of a race has a tree, and the path of its notes is the id of that tree. A race and its results are
derived from these notes only. The command that runs a race writes them in the name of a person.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.kernel.rules.details import get_count, get_float, get_text
from watchroom.model import Json, Row
from watchroom.validation import escape_unstorable

BEGIN_RACE: Final = "begin_race"
"""The tool of the note that an agent takes part in a race. Its content is the prompt. See `Entrant`."""
END_RACE: Final = "end_race"
"""The tool of the note that an agent's client has ended. See `EntryEnd`."""
CHECK_RACE: Final = "check_race"
"""The tool of the note that the check of an agent's work has ended. See `RaceCheck`."""
PICK_RACE: Final = "pick_race"
"""The tool of the note that a person picked the work in a tree."""
KEEP_RACE: Final = "keep_race"
"""The tool of the note that an agent's work was not picked and is kept in a ref. See `Kept`."""
REF_PREFIX: Final = "refs/watchroom/races/"
"""The prefix of the refs with work that was not picked. The race's name and the agent's number follow."""
MIN_AGENTS: Final = 2
MAX_AGENTS: Final = 8
"""The minimum and maximum number of agents in a race."""
MAX_COMMAND: Final = 10_000
"""Maximum characters of a check, and of a client with its arguments."""
MAX_PROMPT: Final = 100_000
"""Maximum bytes of a prompt. Linux takes no argument of 128 KiB."""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

FinishState: TypeAlias = Literal["done", "failed", "timeout", "stopped"]
"""The end of a client.

- ``done``: with exit status 0.
- ``failed``: with another exit status.
- ``timeout``: it was ended after the timeout.
- ``stopped``: the command that ran the race was ended.
"""


class ChangeCounts(NamedTuple):
    """The changes since the commit at which a race began: changed files, and lines in text files."""

    files: int = 0
    added: int = 0
    removed: int = 0


class Entrant(NamedTuple):
    """An agent in a race.

    - ``race``: the race's name.
    - ``number``: the agent's number in the race, from 1.
    - ``client``: its client, with the client's own arguments.
    - ``name``, ``folder``, ``branch``: its tree.
    - ``start``: the id of the commit at which the race began.
    - ``timeout``: seconds for the client, and for the check.
    - ``check``: a command of the shell, empty for no check.
    """

    race: str
    number: int
    client: str
    name: str
    folder: str
    branch: str
    start: str
    timeout: float
    check: str = ""

    @property
    def ref(self) -> str:
        """The ref in which its work is kept if it is not picked."""
        return f"{REF_PREFIX}{self.race}/{self.number}"

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        names = ("client", "name", "folder", "branch", "check")
        texts = {each: escape_unstorable(getattr(self, each), MAX_COMMAND) for each in names}
        return {**self._asdict(), **texts}


def read_entrant(row: Row) -> Entrant:
    """Return the record of ``row``, a note with the tool `BEGIN_RACE`."""
    detail = row.detail
    race, client, name, folder, branch, start, check = (
        get_text(detail, each) for each in ("race", "client", "name", "folder", "branch", "start", "check")
    )
    number, timeout = get_count(detail, "number"), get_float(detail, "timeout")
    return Entrant(race, number, client, name, folder, branch, _only_commit(start), timeout, check)


class EntryEnd(NamedTuple):
    """The end of an agent's client.

    - ``status``: its exit status.
    - ``seconds``: how long it ran.
    - ``changes``: its changes; None if they could not be read.
    - ``commit``: the id of a commit with all files of its tree at its end; empty if that could not be read.
    """

    state: FinishState
    status: int
    seconds: float
    changes: ChangeCounts | None = None
    commit: str = ""

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        fields: dict[str, Json] = {"state": self.state, "status": self.status}
        fields |= {"seconds": round(self.seconds, 3), "commit": self.commit}
        return fields | (self.changes._asdict() if self.changes is not None else {})


def read_finish(row: Row) -> EntryEnd:
    """Return the record of ``row``, a note with the tool `END_RACE`."""
    detail = row.detail
    given = get_text(detail, "state")
    state: FinishState = next((each for each in _STATES if each == given), "failed")
    counts = ChangeCounts(*(get_count(detail, name) for name in ChangeCounts._fields))
    return EntryEnd(
        state,
        get_count(detail, "status"),
        get_float(detail, "seconds"),
        counts if "files" in detail else None,
        _only_commit(get_text(detail, "commit")),
    )


_STATES: Final[tuple[FinishState, ...]] = get_args(FinishState)


class RaceCheck(NamedTuple):
    """The result of the check of an agent's work. ``status``: None after the timeout."""

    status: int | None
    seconds: float

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {"status": self.status, "seconds": round(self.seconds, 3)}


def read_check(row: Row) -> RaceCheck:
    """Return the record of ``row``, a note with the tool `CHECK_RACE`."""
    status = row.detail.get("status")
    return RaceCheck(status if isinstance(status, int) else None, get_float(row.detail, "seconds"))


class Kept(NamedTuple):
    """Work that was not picked: a ``commit`` with all files of its tree, and the ``ref`` that has it."""

    ref: str
    commit: str

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        return {**self._asdict()}


def read_kept(row: Row) -> Kept:
    """Return the record of ``row``, a note with the tool `KEEP_RACE`."""
    return Kept(get_text(row.detail, "ref"), get_text(row.detail, "commit"))


def _only_commit(given: str) -> str:
    """Return the id of a commit, empty for anything else. Git could read any other text as an option."""
    return given if _COMMIT.fullmatch(given) else ""


def tree_name(race: str, number: int) -> str:
    """Return the name of the tree of an agent in a race. The tree's branch has the same name."""
    return f"race-{race}-{number}"
