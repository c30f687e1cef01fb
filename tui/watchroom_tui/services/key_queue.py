"""A queue for keys that a person types faster than the dashboard handles them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import Worker

from watchroom_tui.services.type_ahead import INTERRUPT, TypeAhead

_PASSES: Final = 5
"""How often to wait for messages on their way to the app: for the key, for the focus of a new screen, and for
the panes, each of which may update another pane."""
_PASS_SECONDS: Final = 10.0
"""Timeout for a pass. Only a widget that handles no messages reaches it."""
_LOAD_SECONDS: Final = 1.0
"""Timeout for the workers that a key started."""
_ARRIVAL_SECONDS: Final = 10.0
"""Timeout for a cursor that moves to an item that is not loaded yet."""
_POLL_SECONDS: Final = 0.005
"""Seconds between checks of removed widgets and of workers."""


class PathHandled(Message):
    """Follows a key from the widget ``target`` to the app, which calls `set`."""

    def __init__(self, target: Widget) -> None:
        super().__init__()
        # A message that the app itself sends would not bubble to the app.
        self.set_sender(target)
        self._target = target
        self._is_handled = asyncio.Event()

    def set(self) -> None:
        self._is_handled.set()

    async def wait(self) -> None:
        """Wait until the app gets the message. It is lost if ``target`` is removed."""
        until = asyncio.get_running_loop().time() + _PASS_SECONDS
        while self._target.is_attached and asyncio.get_running_loop().time() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._is_handled.wait()
                    return


class KeyQueue:
    """Passes each key or paste to ``app`` when the one before has had its effect, so that keys typed in one
    burst act as if they were typed slowly.

    - ``type_ahead``: gets the keys of a dialog that is about to open.
    - ``is_arriving``: callback that returns whether the cursor of the front screen moves to an item that is
      not loaded yet. Until it is loaded, the next key would act on another item.
    - ``on_late``: called if the item is not loaded in time.
    """

    def __init__(
        self,
        app: App[None],
        type_ahead: TypeAhead,
        is_arriving: Callable[[], bool],
        on_late: Callable[[], None],
    ) -> None:
        self._app = app
        self._type_ahead = type_ahead
        self._is_arriving = is_arriving
        self._on_late = on_late
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._next: events.Key | events.Paste | None = None
        self._is_busy = False
        self._workers: frozenset[Worker[object]] = frozenset()
        """The workers that ran before the key."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a key has not had its effect yet."""
        return self._is_busy

    def drop(self) -> bool:
        """Drop the queued keys. Return False if there were none."""
        has_dropped = bool(self._waiting)
        self._waiting.clear()
        return has_dropped

    def admits(self, event: events.Key | events.Paste) -> bool:
        """Return whether ``event`` can be handled now. Otherwise it is queued."""
        if isinstance(event, events.Key) and event.key == INTERRUPT:
            return True
        if event is self._next or not self._is_busy:
            self._next, self._is_busy = None, True
            self._workers = frozenset(self._app.workers)
            return True
        self._waiting.append(event)
        return False

    def follow(self, event: events.Key | events.Paste, target: Widget) -> None:
        """Pass the next key when ``event``, which was just forwarded to ``target``, has had its effect."""
        if self._is_busy and self._next is None:
            self._task = asyncio.create_task(self._finish(event, target, self._app.screen))

    async def _finish(self, event: events.Key | events.Paste, target: Widget, front: Widget) -> None:
        try:
            await self._pass_through(target)
            began = asyncio.get_running_loop().time()
            while not isinstance(target, Input | TextArea) and self._is_loading(event, front):
                waited = asyncio.get_running_loop().time() - began
                if waited > _ARRIVAL_SECONDS:
                    self._on_late()
                    return
                if waited > _LOAD_SECONDS and not self._is_arriving():
                    return
                await asyncio.sleep(_POLL_SECONDS)
                if not self._is_loading(event, front):
                    # The loaded items may start other workers.
                    await self._pass_through(front)
        finally:
            self._hand_over()

    async def _pass_through(self, target: Widget) -> None:
        """Wait until messages to ``target`` and to the panes of the front screen are handled."""
        targets = [target]
        for _ in range(_PASSES):
            messages = [PathHandled(each) for each in targets]
            sent = [each for each, to in zip(messages, targets, strict=True) if to.post_message(each)]
            await asyncio.gather(*(each.wait() for each in sent))
            self._give_to_dialog()
            if not self._app.screen_stack:
                return
            front = self._app.screen
            targets = [self._app.focused or front, *front.query(".pane")]

    def _is_loading(self, event: events.Key | events.Paste, front: Widget) -> bool:
        """Return whether the cursor is arriving, or workers that ``event`` started are running. False if the
        next key is the same: who holds a key down reads nothing in between. ``front``: the front screen
        before the key."""
        following = self._waiting[0] if self._waiting else None
        if isinstance(event, events.Key) and isinstance(following, events.Key) and following.key == event.key:
            return False
        return not self._type_ahead.is_holding and (
            self._is_arriving() or any(self._is_awaited(each, front) for each in self._app.workers)
        )

    def _is_awaited(self, worker: Worker[object], front: Widget) -> bool:
        """Return whether ``worker`` may still change the front screen. A worker below a dialog waits for its
        answer."""
        if worker.is_finished or worker in self._workers or not self._app.screen_stack:
            return False
        node: DOMNode = worker.node
        shown = self._app.screen
        return shown is front if node is self._app else node.screen is shown

    def _give_to_dialog(self) -> None:
        """Pass the queued keys to the dialog that is about to open. It may drop them."""
        while self._waiting and self._type_ahead.is_holding:
            self._type_ahead.take(self._waiting.popleft())

    def _hand_over(self) -> None:
        self._give_to_dialog()
        if self._waiting:
            self._next = self._waiting.popleft()
            self._app.post_message(self._next)
        else:
            self._is_busy = False
