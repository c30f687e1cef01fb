"""What a command is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from watchroom.texts import Catalogue


@dataclass(frozen=True, slots=True)
class Command:
    """``declare`` adds the arguments; ``run`` returns the exit status. It may raise `WatchroomError`, and
    `WrongUsage` for arguments that make no sense."""

    name: str
    declare: Callable[[ArgumentParser, Catalogue], None]
    run: Callable[[Namespace, Catalogue], int]


class WrongUsage(Exception):
    """The arguments make no sense; the text says why."""
