"""Acts of a person that have to be signed: the key is unlocked at the first of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from watchroom.errors import KeysNotTyped, WatchroomError
from watchroom.features.people.rules import DECISION_TOOLS
from watchroom.model import Json

from watchroom_tui.context import Dashboard
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.terminal.tmux import has_recent_typing

if TYPE_CHECKING:
    from watchroom.features.calls.toolbox import Toolbox
    from watchroom.features.people.rows import People
    from watchroom.platform.signing import Signer
    from watchroom.workspace import Workspace

_LOCKED: Final = "signer_locked"
"""The error of an act whose key has locked itself since the last one."""
_IDLE_SECONDS: Final = 15 * 60.0
_IDLE_SECONDS_SHARED: Final = 5 * 60.0
"""After so long a key is locked that nobody uses; the second where others may type into the terminal."""


class DecisionSigning:
    """Makes the acts of the person at the dashboard ``app``."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._unlocking = asyncio.Lock()

    async def act(self, workspace: Workspace, tool: str, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Call ``tool`` with ``arguments`` in ``workspace`` as the person. Where it has to be signed, they
        unlock their key first, each time if the settings say so. Return the tool's result."""
        tools = workspace.tools_for_human(self._app.person)
        if await asyncio.to_thread(_is_confirmed_each_time, workspace, tool):
            try:
                # A key that was unlocked for another decision does not sign this one.
                await asyncio.to_thread(workspace.signing.close)
                return await self._sign_and_act(workspace, tools, tool, arguments)
            finally:
                await asyncio.to_thread(workspace.signing.close)
        return await self._sign_and_act(workspace, tools, tool, arguments)

    async def _sign_and_act(
        self, workspace: Workspace, tools: Toolbox, tool: str, arguments: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        async with self._unlocking:
            # Before it is tried: of what a person is about to unlock there need be no refusal.
            if await asyncio.to_thread(workspace.signing.needs_key, tool):
                await self._unlock(workspace)
        if await asyncio.to_thread(self._is_sent, workspace, tool):
            return await asyncio.to_thread(tools.refuse, tool, arguments, KeysNotTyped(tool=tool))
        result = await asyncio.to_thread(tools.dispatch_tool_call, tool, arguments)
        if result.get("error") != _LOCKED:
            return result
        before = workspace.signing.signer
        async with self._unlocking:
            # Another act may have had it unlocked meanwhile.
            if workspace.signing.signer is before and not await self._unlock(workspace):
                return result
        return await asyncio.to_thread(tools.dispatch_tool_call, tool, arguments)

    @staticmethod
    def _is_sent(workspace: Workspace, tool: str) -> bool:
        """Whether ``tool`` would be signed, and a program sent the keys."""
        would_sign = workspace.signing.signer is not None and tool in DECISION_TOOLS
        return would_sign and not has_recent_typing(os.environ)

    async def _unlock(self, workspace: Workspace) -> bool:
        """Whether the person's key can sign now."""
        try:
            signer = await self._open_signer(await asyncio.to_thread(workspace.people.current))
        except WatchroomError as error:
            self._app.show_message(
                f"{error.message(self._app.language)} {error.suggestion(self._app.language)}", "error"
            )
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
        """The passphrase of the key file at ``path``, None if the person goes back."""
        # The dialog is loaded with its first use.
        from watchroom_tui.dialogs.unlock import UnlockDialog

        texts = self._app.texts
        typed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        hint = problem + texts("unlock.hint", path=sanitize(path), minutes=round(idle / 60))
        self._app.push_screen(UnlockDialog(texts("unlock.title"), hint), typed.set_result)
        return await typed


def _is_confirmed_each_time(workspace: Workspace, tool: str) -> bool:
    """Whether ``tool`` needs the passphrase of the person each time. The touch of a device says as much."""
    signer = workspace.signing.signer
    is_touched = signer is not None and signer.key.is_touched
    return tool in workspace.config.confirm_decisions and not is_touched
