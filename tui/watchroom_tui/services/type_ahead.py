"""Keys that a person types before the dialog is open that they are meant for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from textual import events

_INTERRUPT: Final = "ctrl+c"
"""The key that does not wait for a dialog."""


class TypeAhead:
    """Holds keys until a dialog is open, so that none of them acts as a command."""

    def __init__(self) -> None:
        self._held: list[events.Event] | None = None

    @property
    def is_holding(self) -> bool:
        """Whether keys wait for a dialog."""
        return self._held is not None

    def hold_for(self, work: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
        """Hold keys from now on. Return a function that runs ``work``, which opens a dialog, and drops the
        keys if none took them."""
        held: list[events.Event] = []
        self._held = held

        async def run() -> None:
            try:
                await work()
            finally:
                # Its dialog may be closed, and another one about to open.
                if self._held is held:
                    self._held = None

        return run

    def take(self, event: events.Event) -> bool:
        """Hold ``event`` if it is a key or a paste, and a dialog is about to open. Return whether it is
        held."""
        is_interrupt = isinstance(event, events.Key) and event.key == _INTERRUPT
        if self._held is None or is_interrupt or not isinstance(event, events.Key | events.Paste):
            return False
        self._held.append(event)
        return True

    def release(self) -> Sequence[events.Event]:
        """Return the held keys and pastes in their order, as new events, and hold no more."""
        held, self._held = self._held or [], None
        # A key comes twice: first for the front widget, then from that widget as a command.
        in_order = sorted(held, key=lambda each: each.time)
        return [
            events.Key(each.key, each.character) if isinstance(each, events.Key) else events.Paste(each.text)
            for each in in_order
            if isinstance(each, events.Key | events.Paste)
        ]
