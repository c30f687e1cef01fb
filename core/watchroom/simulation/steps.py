"""What an agent's script asks for. A script is a generator: it yields steps, is sent results, and touches
neither clock nor thread nor file, so that what an agent decides can be replayed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from watchroom.model import Json

Result: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool. ``attempt`` counts the tries to recover from a conflict; 0 is a call of its own."""

    tool: str
    arguments: Mapping[str, Json]
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for some seconds. ``waiting`` is for others, so it takes a moment at any speed."""

    seconds: float
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A conflict is left open."""

    path: str


@dataclass(frozen=True, slots=True)
class Task:
    """What follows is another task, of this kind: it has a session of its own, unless it calls no tool.
    Calls of the tools in ``asks`` wait for a person's approval. ``about`` says more, for its first message.
    """

    kind: str
    about: str = ""
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """What the agent says next is about people: a sentence of this kind, with these slots."""

    kind: str
    slots: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Turn:
    """The agent is free. The result has as ``asks`` what it may ask of a person now (one of ``kinds``), and
    as ``said`` what people told it since."""

    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Now:
    """What time is it? The result has it as ``time``, in ISO 8601."""


class Dropped(Exception):
    """Thrown into a script: its task was ended by a person."""


Step: TypeAlias = Call | Pause | GaveUp | Task | Remark | Turn | Now
T = TypeVar("T")
Script: TypeAlias = Generator[Step, Result, T]


NOTHING: Final[Result] = {}


def succeeded(result: Result) -> bool:
    return result.get("success") is True


def text_in(result: Result, name: str) -> str:
    """A field of a result as text, empty if it has none."""
    value = result.get(name)
    return value if isinstance(value, str) else ""


def number_in(result: Result, name: str) -> int:
    value = result.get(name)
    return value if isinstance(value, int) else 0


def entries_in(result: Result, name: str) -> list[Result]:
    """A field of a result that is a list of objects."""
    value = result.get(name)
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, Mapping)]


def names_in(result: Result, name: str) -> list[str]:
    """A field of a result that is a list of texts."""
    value = result.get(name)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
