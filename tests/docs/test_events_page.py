"""docs/events.md names each kind, state and status of the protocol, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from watchroom.features.overview.agents import Status
from watchroom.features.overview.goals import GOALS, Ending
from watchroom.history.events import KINDS, MAX_TEXT, PROTOCOL
from watchroom.kernel.journal import BACKSTOP_SECONDS
from watchroom_cli.watch.wait import TIMED_OUT

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


def first_cells(section: str) -> list[str]:
    """The words in backticks in the first column of the tables of a section."""
    text = PAGE.split(f"\n{section}\n")[1].split("\n#")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`(\w+)`", cell)]


def test_it_names_every_kind() -> None:
    assert first_cells("### Kinds") == [*KINDS]


def test_it_names_the_states_and_how_a_session_ends() -> None:
    assert first_cells("## Waiting for an agent")[: len(GOALS)] == [*GOALS]
    (status,) = re.findall(r"^\| `status` \|(.*)\|$", PAGE, flags=re.MULTILINE)
    assert re.findall(r"`(\w+)`", status) == [*get_args(Status)]
    (ending,) = re.findall(r"^\| `ending` \|(.*)\|$", PAGE, flags=re.MULTILINE)
    assert re.findall(r"`(\w+)`", ending) == [*get_args(Ending)]


def test_it_names_the_bounds() -> None:
    assert f"at most {MAX_TEXT:,} bytes" in PAGE
    assert f'"protocol": {PROTOCOL},' in PAGE
    assert f"\n| {TIMED_OUT} | not reached in time" in PAGE
    assert f"every {BACKSTOP_SECONDS:.0f} seconds" in PAGE
