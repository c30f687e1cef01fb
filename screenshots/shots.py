"""The pictures that there are: which app, how large, and what is done in it before the picture is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.pilot import Pilot

NARROW, MIDDLE, WIDE = (80, 24), (120, 40), (200, 60)


@dataclass(frozen=True, slots=True)
class Shot:
    """``build`` makes the app, and leaves what must be closed or removed afterwards on the stack.

    ``keys`` are pressed one after the other, then ``act`` may do what keys alone cannot.
    """

    name: str
    size: tuple[int, int]
    build: Callable[[ExitStack], App[Any]]
    keys: tuple[str, ...] = ()
    act: Callable[[Pilot[Any]], Awaitable[None]] | None = None
    title: str = "watchroom"


SHOTS: tuple[Shot, ...] = ()
