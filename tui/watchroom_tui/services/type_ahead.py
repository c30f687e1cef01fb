"""Type-ahead: a queue for keys that a person presses before their dialog is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from textual import events

INTERRUPT: Final = "ctrl+c"
"""The key that is never queued."""


class TypeAhead:
    """Queue for keys until a dialog is open, so that no key triggers a command."""

    def __init__(self) -> None:
        self._held: list[events.Event] | None = None

    @property
    def is_holding(self) -> bool:
        """Whether keys are queued for a dialog."""
        return self._held is not None

    def hold_for(self, work: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
        """Start to queue keys. Return a function that runs ``work``, which opens a dialog, and then drops the
        remaining keys."""
        held: list[events.Event] = []
        self._held = held

        async def run() -> None:
            try:
                await work()
            finally:
                # The dialog may be closed already, and another dialog about to open.
                if self._held is held:
                    self._held = None

        return run

    def take(self, event: events.Event) -> bool:
        """Queue ``event`` if it is a key or a paste, and a dialog is about to open. Return whether ``event``
        is queued."""
        is_interrupt = isinstance(event, events.Key) and event.key == INTERRUPT
        if self._held is None or is_interrupt or not isinstance(event, events.Key | events.Paste):
            return False
        self._held.append(event)
        return True

    def release(self) -> Sequence[events.Event]:
        """Return the queued keys and pastes in order, as new events, and stop the queueing."""
        held, self._held = self._held or [], None
        # Each key arrives twice: first for the front widget, then from the widget as a command.
        in_order = sorted(held, key=lambda each: each.time)
        return [
            events.Key(each.key, each.character) if isinstance(each, events.Key) else events.Paste(each.text)
            for each in in_order
            if isinstance(each, events.Key | events.Paste)
        ]
