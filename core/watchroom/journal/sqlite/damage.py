"""Reading on where a text in the journal is damaged: one broken row must not hide all others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from watchroom.errors import JournalDamaged


class ToleratesDamage(Protocol):
    @property
    def tolerates_damage(self) -> bool:
        """Whether damaged texts are read with `decode_damaged`."""
        ...

    def tolerate_damage(self) -> None:
        """Read damaged texts with `decode_damaged` from now on."""
        ...


_Self = TypeVar("_Self", bound=ToleratesDamage)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def despite_damage(method: Callable[Concatenate[_Self, _P], _T]) -> Callable[Concatenate[_Self, _P], _T]:
    """Have the method called once more where it raises `JournalDamaged`, with damage tolerated.

    Decoding so costs half as much again, so it begins when it is needed. What is raised although damage was
    tolerated is another damage, which reading so does not help.
    """

    @wraps(method)
    def run(self: _Self, /, *args: _P.args, **options: _P.kwargs) -> _T:
        # Looked at first: another thread may come upon the damage at the same moment.
        tolerated = self.tolerates_damage
        try:
            return method(self, *args, **options)
        except JournalDamaged:
            if tolerated:
                raise
            self.tolerate_damage()
            return method(self, *args, **options)

    return run


def decode_damaged(data: bytes) -> str:
    """The text, with U+FFFD for bytes that are none."""
    return data.decode("utf-8", "replace")


def decode_content(data: bytes | None) -> str | None:
    """The content of a row, None where it has none. A part of it is not the content that somebody wrote, so
    nothing is put in place of what is damaged. Raises `JournalDamaged`."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise JournalDamaged from error
