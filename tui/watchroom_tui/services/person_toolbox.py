"""Tool calls in the workspace by the person at the dashboard.

The workspace is opened in the background. A key is unlocked when the first decision must be signed.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import Task
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.message import Message
from watchroom.errors import KeysNotTyped, WatchroomError
from watchroom.features.people.rules import DECISION_TOOLS
from watchroom.model import Json

from watchroom_tui.context import Arguments, Dashboard
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.terminal.tmux import has_recent_typing

if TYPE_CHECKING:
    from watchroom.features.people.rows import People
    from watchroom.platform.signing import Signer
    from watchroom.workspace import Workspace

_LOCKED: Final = "signer_locked"
"""Error code of a call after the key has locked itself."""
_IDLE_SECONDS: Final = 15 * 60.0
_IDLE_SECONDS_SHARED: Final = 5 * 60.0
"""Seconds until an unused key is locked. The shared timeout is for terminals in which other people can
type."""


class WatchModeChanged(Message):
    """Change in the detection of external edits. ``poll_seconds``: seconds between polls, None if the system
    reports edits."""

    def __init__(self, poll_seconds: int | None) -> None:
        super().__init__()
        self.poll_seconds = poll_seconds


class _Attempt(NamedTuple):
    """A call in a thread.

    - ``result``: the result of the tool, None if the key must be unlocked first.
    - ``arguments``: the arguments, once they are known.
    - ``signer``: the signer before the call.
    """

    result: Mapping[str, Json] | None
    arguments: Mapping[str, Json]
    signer: Signer | None


class PersonToolbox:
    """The workspace and the tools of the person at ``app``.

    ``open_workspace``: callback that opens the workspace. It is called once, in a thread. None for viewers.
    """

    def __init__(self, app: Dashboard, open_workspace: Callable[[], Workspace] | None) -> None:
        self._app = app
        self._open_workspace = open_workspace
        self.workspace: Workspace | None = None
        self.may_act = open_workspace is not None
        """Whether the workspace is open, or will be."""
        self.failure = ""
        """The reason why the workspace could not be opened, empty otherwise."""
        self._is_settled = asyncio.Event()
        self._stop_watching: Callable[[], None] | None = None
        self._calls: set[Task[Mapping[str, Json] | None]] = set()
        self._unlocking = asyncio.Lock()

    async def open(self) -> bool:
        """Open the workspace. Return False and set `failure` if this fails. Await this in a worker."""
        if self._open_workspace is None:
            return True
        try:
            workspace = await asyncio.to_thread(self._open_workspace)
        except (WatchroomError, OSError) as error:
            # A read-only workspace can still be viewed.
            self.failure = (
                error.message(self._app.language) if isinstance(error, WatchroomError) else str(error)
            )
            self.may_act = False
            self._is_settled.set()
            return False
        # No await from here on, so that closing the dashboard leaves nothing running.
        self.workspace = workspace
        workspace.background.start()
        watcher, app = workspace.file_watcher, self._app
        self._stop_watching = watcher.subscribe(
            lambda mode: app.post_message(
                WatchModeChanged(watcher.POLL_SECONDS if mode == "polling" else None)
            )
        )
        self._is_settled.set()
        return True

    def close(self) -> None:
        """Stop watching the workspace. The opener of the workspace closes it. Call this outside the event
        loop."""
        if self._stop_watching is not None:
            self._stop_watching()

    async def wait_for_workspace(self) -> Workspace | None:
        """Return the workspace as soon as it is open, or None if nothing can be changed."""
        if not self._app.can_act:
            return None
        await self._is_settled.wait()
        return self.workspace

    def call(self, tool: str, arguments: Arguments) -> Task[Mapping[str, Json] | None]:
        """Call a tool, as `Dashboard.act` describes.

        The call runs in a task instead of a Textual worker, so that it continues after its screen is closed.
        """
        task = asyncio.create_task(self._call(tool, arguments))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def _call(self, tool: str, arguments: Arguments) -> Mapping[str, Json] | None:
        workspace = await self.wait_for_workspace()
        if workspace is None:
            self._app.explain_read_only()
            return None
        first = await asyncio.to_thread(self._attempt, workspace, tool, arguments)
        if first.result is not None and first.result.get("error") != _LOCKED:
            return first.result
        is_unlocked = True
        async with self._unlocking:
            # Another call may have unlocked the key meanwhile.
            if workspace.signing.signer is first.signer:
                is_unlocked = await self._unlock(workspace)
        if first.result is not None and not is_unlocked:
            return first.result
        # Without a key, the tool refuses the call and records the refusal.
        again = await asyncio.to_thread(self._attempt, workspace, tool, first.arguments, is_last=True)
        return again.result

    def _attempt(
        self, workspace: Workspace, tool: str, arguments: Arguments, *, is_last: bool = False
    ) -> _Attempt:
        """Call ``tool`` with the current signer. Run this in a thread. ``is_last``: whether to call the tool
        even without a required key."""
        given = arguments() if callable(arguments) else arguments
        signing = workspace.signing
        signer = signing.signer
        # The touch of a device confirms each decision.
        is_touched = signer is not None and signer.key.is_touched
        is_confirmed_each_time = tool in workspace.config.confirm_decisions and not is_touched
        if is_confirmed_each_time and not is_last:
            # A key that was unlocked for another decision does not sign this one.
            signing.close()
        if not is_last and signing.needs_key(tool):
            return _Attempt(None, given, signing.signer)
        tools = workspace.tools_for_human(self._app.person)
        try:
            would_sign = signing.signer is not None and tool in DECISION_TOOLS
            if would_sign and not has_recent_typing(os.environ):
                result = tools.refuse(tool, given, KeysNotTyped(tool=tool))
            else:
                result = tools.dispatch_tool_call(tool, given)
        finally:
            if is_confirmed_each_time:
                signing.close()
        return _Attempt(result, given, signer)

    async def _unlock(self, workspace: Workspace) -> bool:
        """Ask the person to unlock their key. Return whether the key can sign now."""
        app = self._app
        try:
            signer = await self._open_signer(await asyncio.to_thread(workspace.people.current))
        except WatchroomError as error:
            app.show_message(f"{error.message(app.language)} {error.suggestion(app.language)}", "error")
            return False
        if signer is not None:
            workspace.signing.signer = signer
        return signer is not None

    async def _open_signer(self, people: People) -> Signer | None:
        from watchroom.errors import WrongPassphrase
        from watchroom.platform.signing import SignerProcess

        from watchroom_tui.services.signing_keys import find_device, key_path

        app, name = self._app, self._app.person
        device = await asyncio.to_thread(find_device, people, name)
        if device is not None:
            app.show_message(app.texts("unlock.touch"))
            return device
        path, problem = key_path(name), ""
        idle = _IDLE_SECONDS_SHARED if os.environ.get("TMUX") else _IDLE_SECONDS
        while await asyncio.to_thread(os.path.exists, path):
            passphrase = await self._ask(path, problem, idle)
            if passphrase is None:
                return None
            try:
                return await asyncio.to_thread(SignerProcess.unlock, path, passphrase, idle_seconds=idle)
            except WrongPassphrase:
                problem = app.texts("unlock.wrong") + " "
        return None

    async def _ask(self, path: str, problem: str, idle: float) -> str | None:
        """Ask for the passphrase of the key file at ``path``. Return None if the person goes back."""
        # Imported on first use, to keep the start fast.
        from watchroom_tui.dialogs.unlock import UnlockDialog

        texts = self._app.texts
        typed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        hint = problem + texts("unlock.hint", path=sanitize(path), minutes=round(idle / 60))
        self._app.push_screen(UnlockDialog(texts("unlock.title"), hint), typed.set_result)
        return await typed
