"""The second scene: two agents disagree about two lines, and leave it to a person.

It is about a file that no one else works on, so it stays as it is until the person has decided.
"""

from __future__ import annotations

from typing import Final

from watchroom.simulation import shared
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.steps import GaveUp, Pause, Script, Task, entries_in, number_in, text_in
from watchroom.simulation.story import Piece, piece

_PATIENCE: Final = 200
"""So many looks at the list of files, and the other one is not coming."""

_LOOKS_A_TASK: Final = 8

_BRISK_STEPS: Final = 10


def dispute(desk: AgentContext) -> Script[None]:
    """The agent's part in it, if it has one and the scene was not played in this workspace before."""
    parts = {"analyst": _announce, "writer": _rewrite}
    if desk.role in parts and desk.me == desk.role:
        yield from parts[desk.me](desk)


def _announce(desk: AgentContext) -> Script[None]:
    """Write the announcement, and change it once more from the first version, whatever came between."""
    draft, mine = piece("announcement"), piece("announcement_analyst")
    path = draft.filename
    yield Task("announce")
    if (yield from _version(desk, path)):
        return
    desk.rhythm.hurry(_BRISK_STEPS)
    yield from shared.commit(desk, path, "", Change(draft.content, draft.message), 0)
    if not (yield from _await_version(desk, path, 2)):
        return
    refused = yield from desk.call(
        "collab_write",
        filepath=path,
        content=_changed(draft.content, mine),
        message=mine.message,
        expected_version=1,
    )
    if refused.get("is_conflict") is True:
        yield GaveUp(path)


def _rewrite(desk: AgentContext) -> Script[None]:
    """Change the announcement as soon as it is there."""
    mine = piece("announcement_writer")
    path = piece("announcement").filename
    yield Task("rewrite")
    if (yield from _version(desk, path)) > 1 or not (yield from _await_version(desk, path, 1)):
        return
    desk.rhythm.hurry(_BRISK_STEPS)
    found = yield from desk.call("collab_read", filepath=path)
    text = text_in(found, "content")
    if number_in(found, "version") == 1:
        yield from shared.commit(desk, path, text, Change(_changed(text, mine), mine.message), 1)


def _await_version(desk: AgentContext, path: str, wanted: int) -> Script[bool]:
    for look in range(1, _PATIENCE + 1):
        if (yield from _version(desk, path)) >= wanted:
            return True
        if look % _LOOKS_A_TASK == 0:
            yield Task("await_file", path)
        yield Pause(0.5, waiting=True)
    return False


def _version(desk: AgentContext, path: str) -> Script[int]:
    found = yield from shared.survey(desk)
    return next(
        (
            number_in(entry, "version")
            for entry in entries_in(found, "files")
            if text_in(entry, "filepath") == path
        ),
        0,
    )


def _changed(text: str, change: Piece) -> str:
    for before, after in change.lines:
        text = text.replace(before, after)
    return text
