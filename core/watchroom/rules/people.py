"""The people of a workspace: their roles, and the keys by which their decisions are known. Pure.

Without people a workspace is open: whoever can write to it decides, under any name. The first person makes
the workspace closed, and is its owner. From that row on a decision counts only with the signature of somebody
who may decide; who may is told by position, never by clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.errors import InvalidName
from watchroom.model import HUMAN_PREFIX, Json, Zone
from watchroom.sshsig import InvalidPublicKey, parse_key
from watchroom.validation import check_human_name

ZONE: Final[Zone] = "person"
ID_ZONE: Final[Zone] = "workspace"
Role: TypeAlias = Literal["owner", "supervisor", "viewer"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
MOST_PEOPLE: Final = 1000
_MOST_KEYS: Final = 8
_MOST_PATTERNS: Final = 100


class Person(NamedTuple):
    """Somebody who is enrolled. An owner may do everything, a supervisor decide, a viewer look.

    ``keys`` are public ones, as lines. Where ``tools`` or ``agents`` are given (patterns), only requests to
    call such tools, or of such agents, are this person's to answer; after ``expires`` (nanoseconds since the
    epoch) none is.
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
        """As the content of its row."""
        fields = {name: value for name, value in self._asdict().items() if name != "name"}
        return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


class People(NamedTuple):
    """Who is enrolled in the ``workspace`` with that id (empty where it has none).

    ``accepts_legacy``: nobody was enrolled or changed by a statement that names its position in the journal,
    so decisions that were signed by 0.2.0 count. ``is_lost``: rows that enrolled people were deleted, so
    nobody decides any more.
    """

    workspace: str = ""
    persons: tuple[Person, ...] = ()
    accepts_legacy: bool = True
    is_lost: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether only the decisions of those who are enrolled count."""
        return bool(self.persons) or self.is_lost

    def find(self, actor: str) -> Person | None:
        """The person who acts as ``actor`` (``human:NAME``), None where nobody is enrolled so."""
        return next((each for each in self.persons if each.actor == actor), None)

    def find_holder(self, fingerprint: str) -> str:
        """The name of the person whose key has that ``fingerprint``, empty where nobody's has."""
        for person in self.persons:
            if any(parse_key(line).fingerprint == fingerprint for line in person.keys):
                return person.name
        return ""

    def with_person(self, person: Person) -> People:
        """These people with ``person``, in place of who had that name."""
        others = [each for each in self.persons if each.name != person.name]
        return self._replace(persons=(*others, person))

    def without(self, name: str) -> People:
        """These people without the one called ``name``."""
        return self._replace(persons=tuple(each for each in self.persons if each.name != name))

    def check_change(self, name: str, person: Person | None) -> str:
        """The rule that is broken where the person called ``name`` becomes ``person`` (None: is revoked);
        empty where none is."""
        after = self.without(name) if person is None else self.with_person(person)
        if person is None and self.find(HUMAN_PREFIX + name) is None:
            return "person_unknown"
        if len(after.persons) > MOST_PEOPLE:
            return "person_most"
        has_owner = any(each.role == "owner" for each in after.persons)
        return "person_owner" if after.persons and not has_owner else ""


def parse_person(name: str, text: str) -> Person | None:
    """The person called ``name`` whom the content ``text`` of a row describes; None where it describes
    nobody."""
    try:
        fields = json.loads(text)
        person = Person(
            check_human_name(name),
            cast("Role", fields["role"]),
            _texts(fields["keys"], _MOST_KEYS),
            _texts(fields.get("tools", []), _MOST_PATTERNS),
            _texts(fields.get("agents", []), _MOST_PATTERNS),
            fields.get("expires"),
        )
        for line in person.keys:
            parse_key(line)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidName, InvalidPublicKey):
        return None
    is_time = person.expires is None or type(person.expires) is int
    return person if person.role in ROLES and person.keys and is_time else None


def _texts(value: Json, most: int) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > most:
        raise TypeError(value)
    texts = tuple(each for each in value if isinstance(each, str))
    if len(texts) != len(value):
        raise TypeError(value)
    return texts
