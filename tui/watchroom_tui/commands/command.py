"""What a command is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """``declare`` adds the arguments; ``run`` returns the exit status and may raise `WatchroomError`."""

    name: str
    help: str
    declare: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
