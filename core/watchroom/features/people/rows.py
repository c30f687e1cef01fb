"""The people of a workspace: their roles, keys and limits. Pure.

A workspace without people is open: anyone who can write to it decides, under any name. The first enrolment
closes it. The first person must be an owner. From that row on, a decision counts only with the signature of a
person who has the right to make it. The order of rows determines who has the right, not their times.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.algorithms.sshsig import parse_key
from watchroom.errors import InvalidName, InvalidPublicKey
from watchroom.model import HUMAN_PREFIX, Json, Zone
from watchroom.validation import check_human_name

ZONE: Final[Zone] = "person"
ID_ZONE: Final[Zone] = "workspace"
Role: TypeAlias = Literal["owner", "supervisor", "viewer"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
MAX_PEOPLE: Final = 1000
_MAX_KEYS: Final = 8
_MAX_PATTERNS: Final = 100


class Person(NamedTuple):
    """An enrolled person.

    - ``role``: an owner can do everything, a supervisor can decide, a viewer can only read.
    - ``keys``: public keys, as lines.
    - ``tools``, ``agents``: patterns. If given, the person can only answer requests with matching tools or
      agents.
    - ``expires``: the time at which the right to decide ends, in nanoseconds since the epoch; None for never.
    """

    name: str
    role: Role
    keys: tuple[str, ...]
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    expires: int | None = None

    @property
    def actor(self) -> str:
        return HUMAN_PREFIX + self.name

    def dump(self) -> str:
        """Return the content of the person's row: the reverse of `parse_person`."""
        fields = {name: value for name, value in self._asdict().items() if name != "name"}
        return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


class People(NamedTuple):
    """The people enrolled in a workspace.

    - ``workspace``: the id of the workspace; empty if it has none.
    - ``persons``: the people, in the order of their last change.
    - ``accepts_legacy``: decisions signed by version 0.2.0 count, because no enrolment has a statement with a
      position.
    - ``is_lost``: rows that enrolled people were deleted, so no decision counts.
    """

    workspace: str = ""
    persons: tuple[Person, ...] = ()
    accepts_legacy: bool = True
    is_lost: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether only decisions of enrolled people count."""
        return bool(self.persons) or self.is_lost

    def find(self, actor: str) -> Person | None:
        """Return the person with the actor id ``actor`` (``human:NAME``), None if nobody has it."""
        return next((each for each in self.persons if each.actor == actor), None)

    def find_holder(self, fingerprint: str) -> str:
        """Return the name of the person who holds the key with ``fingerprint``; empty if nobody does."""
        for person in self.persons:
            if any(parse_key(line).fingerprint == fingerprint for line in person.keys):
                return person.name
        return ""

    def with_person(self, person: Person) -> People:
        """Return these people with ``person`` added, or replaced if the name exists."""
        others = [each for each in self.persons if each.name != person.name]
        return self._replace(persons=(*others, person))

    def without(self, name: str) -> People:
        """Return these people without the person ``name``."""
        return self._replace(persons=tuple(each for each in self.persons if each.name != name))

    def check_change(self, name: str, person: Person | None) -> str:
        """Return the rule that a change of the person ``name`` to ``person`` breaks; empty if none.

        ``person``: None to revoke the enrolment.
        """
        after = self.without(name) if person is None else self.with_person(person)
        if person is None and self.find(HUMAN_PREFIX + name) is None:
            return "person_unknown"
        if len(after.persons) > MAX_PEOPLE:
            return "person_most"
        has_owner = any(each.role == "owner" for each in after.persons)
        return "person_owner" if after.persons and not has_owner else ""


def parse_person(name: str, text: str) -> Person | None:
    """Return the person ``name`` in the content ``text`` of a row; None if it is invalid."""
    try:
        fields = json.loads(text)
        person = Person(
            check_human_name(name),
            cast("Role", fields["role"]),
            _texts(fields["keys"], _MAX_KEYS),
            _texts(fields.get("tools", []), _MAX_PATTERNS),
            _texts(fields.get("agents", []), _MAX_PATTERNS),
            fields.get("expires"),
        )
        for line in person.keys:
            parse_key(line)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidName, InvalidPublicKey):
        return None
    is_time = person.expires is None or type(person.expires) is int
    return person if person.role in ROLES and person.keys and is_time else None


def _texts(value: Json, max_count: int) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > max_count:
        raise TypeError(value)
    texts = tuple(each for each in value if isinstance(each, str))
    if len(texts) != len(value):
        raise TypeError(value)
    return texts
