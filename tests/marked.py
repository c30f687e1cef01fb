"""Edits of a text in which every character is unique, so that each can be checked afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final, NamedTuple

from watchroom import Toolbox

DOC_ID: Final = "shared"
FIELD: Final = "body"
SCHEMA: Final = {FIELD: "rga"}
MAX_INSERTED: Final = 12
_PLANE: Final = 0x10000
_FIRST: Final = 4
_MAX_CHARACTER: Final = 0xFF00


class Plan(NamedTuple):
    """A planned edit."""

    operation: str
    start: int
    deleted: str
    inserted: str


class Edit(NamedTuple):
    """An edit that was acknowledged as ``version``. ``deleted`` and ``inserted`` may be empty."""

    version: int
    deleted: str
    inserted: str


class Neighbours(NamedTuple):
    """The text before and behind an insertion, as its writer knew it."""

    before: str
    inserted: str
    behind: str


class Editor:
    """Edits at random places as one agent.

    - ``number``: gives the agent a plane of Unicode that nobody else uses.
    - ``seed``: the seed of its choices.
    - ``first``: the number of its first character.
    """

    def __init__(self, toolbox: Toolbox, number: int, seed: int, first: int = 0) -> None:
        self.toolbox = toolbox
        self._random = Random(f"{seed} {number} {first}")
        self._plane = (_FIRST + number) * _PLANE
        self._next = first
        self._known = self.read()

    def read(self) -> str:
        """Return the current text. Later positions refer to it."""
        result = self._call("realtime_get_field")
        value: str = result["value"]
        self._known = value
        return value

    def edit(self) -> Edit:
        """Plan an edit and make it."""
        return self.make(self.plan())

    def insert(self, length: int) -> Edit:
        """Insert ``length`` characters at a random place."""
        return self.make(Plan("insert", self._random.randint(0, len(self._known)), "", self._fresh(length)))

    def plan(self) -> Plan:
        """Return a random insertion, deletion or replacement, of anyone's text."""
        known, chance = self._known, self._random
        start = chance.randint(0, len(known))
        operation = chance.choice(("insert", "insert", "insert", "delete", "replace")) if known else "insert"
        if operation == "insert":
            return Plan(operation, start, "", self._fresh(chance.randint(1, MAX_INSERTED)))
        start = min(start, len(known) - 1)
        deleted = known[start : start + chance.randint(1, MAX_INSERTED)]
        inserted = "" if operation == "delete" else self._fresh(chance.randint(1, MAX_INSERTED))
        return Plan(operation, start, deleted, inserted)

    def neighbours(self, plan: Plan) -> Neighbours:
        """Return the text around the insertion of ``plan``."""
        known = self._known
        return Neighbours(known[: plan.start], plan.inserted, known[plan.start + len(plan.deleted) :])

    def make(self, plan: Plan) -> Edit:
        operation, start, deleted, inserted = plan
        stop = start + len(deleted)
        given: dict[str, object] = (
            {"position": start} if operation == "insert" else {"from": start, "to": stop}
        )
        if inserted:
            given["text"] = inserted
        result = self._call("realtime_edit_text", operation=operation, args=given)
        self._known = self._known[:start] + inserted + self._known[stop:]
        if result["length"] != len(self._known):
            raise RuntimeError(f"{result}, but the text as I know it has {len(self._known)} characters")
        return Edit(result["version"], deleted, inserted)

    def _fresh(self, length: int) -> str:
        begin, self._next = self._next, self._next + length
        if self._next > _MAX_CHARACTER:
            raise RuntimeError("no character is left that was not used yet")
        return "".join(chr(self._plane + code) for code in range(begin, self._next))

    def _call(self, tool: str, **arguments: object) -> dict[str, Any]:
        result: dict[str, Any] = self.toolbox.dispatch_tool_call(
            tool,
            {"doc_id": DOC_ID, "field_name": FIELD, **arguments},  # type: ignore[dict-item]
        )
        if not result["success"]:
            raise RuntimeError(result)
        return result


def remains(edits: Iterable[Edit]) -> set[str]:
    """Return the inserted characters that nobody deleted."""
    inserted, deleted = set[str](), set[str]()
    for edit in edits:
        inserted.update(edit.inserted)
        deleted.update(edit.deleted)
    return inserted - deleted


def disordered(text: str, edits: Iterable[Edit]) -> list[str]:
    """Return the insertions whose characters are in another order in ``text``."""
    places = {character: place for place, character in enumerate(text)}
    found = []
    for edit in edits:
        kept = [places[character] for character in edit.inserted if character in places]
        if kept != sorted(kept):
            found.append(edit.inserted)
    return found


def misplaced(text: str, insertions: Iterable[Neighbours]) -> list[str]:
    """Return the insertions with characters outside of their neighbours in ``text``."""
    places = {character: place for place, character in enumerate(text)}
    found = []
    for before, inserted, behind in insertions:
        first, own, last = (
            [places[each] for each in part if each in places] for part in (before, inserted, behind)
        )
        if own and not max(first, default=-1) < min(own) <= max(own) < min(last, default=len(text)):
            found.append(inserted)
    return found
