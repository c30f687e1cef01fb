"""The open workspaces of the service, and the attendants of their clients."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from watchroom.agents.clients.attendant import Attendant
from watchroom.agents.clients.processes import ancestors_of, client_above
from watchroom.agents.clients.routine_places import RoutinePlaces
from watchroom.agents.clients.routine_run import RoutineRunner
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.features.trees.place import find_workspace
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.journal import is_server_address
from watchroom.serving.service.checks import CheckQueue
from watchroom.serving.service.status_line import StatusReader
from watchroom.workspace import Workspace

_MAX_WORKSPACES: Final = 200
_MAX_ATTENDANTS: Final = 1000
"""Maximum number of attendants of a workspace. One client can have several, if its hooks name several
agents."""
_MAX_ENDED: Final = 1000
"""Maximum number of sessions of ended clients that are remembered for each workspace."""
_log = logging.getLogger("watchroom.service")


class ServedWorkspace:
    """An open workspace, the attendants of its clients, and its routines. For use on one event loop.

    - ``program``: the command line that starts Watchroom, for routines; empty to start none.
    - ``places``: remembers the workspaces with active routines; None to remember none.
    """

    def __init__(
        self, workspace: Workspace, program: Sequence[str] = (), places: RoutinePlaces | None = None
    ) -> None:
        self.workspace = workspace
        self.status = StatusReader(workspace)
        self._routines = RoutineRunner(workspace, program, places)
        if program:
            self._routines.start()
        self._identity = _identify(workspace)
        self.uses = 0
        """The number of connections that need the workspace."""
        self._used = time.monotonic()
        self.attendants: list[Attendant] = []
        self._attending = asyncio.Lock()
        self._ended: dict[str, None] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self.checks = CheckQueue(workspace)

    def was_replaced(self) -> bool:
        """Return whether the folder now contains another workspace, such as the workspace of a new clone."""
        found = _identify(self.workspace)
        return found is not None and found != self._identity

    @property
    def has_clients(self) -> bool:
        """Whether a connection or a client needs the workspace."""
        return self.uses > 0 or bool(self.attendants)

    @property
    def is_used(self) -> bool:
        """Whether a connection, a client, a check or a routine needs the workspace."""
        return self.has_clients or self.checks.is_busy or self._routines.is_active

    def is_unused_for(self, seconds: float) -> bool:
        """Return whether the workspace has been unused for ``seconds``."""
        if self.is_used:
            self.note_use()
        return time.monotonic() - self._used >= seconds

    def note_use(self) -> None:
        """Keep the workspace open for a client that is about to use it."""
        self._used = time.monotonic()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the workspace open within the context."""
        self.uses += 1
        try:
            yield
        finally:
            self.uses -= 1

    async def attend(
        self, pid: int, client: str, agents: Sequence[str], *, is_strict: bool
    ) -> Attendant | None:
        """Return the attendant of the ``client`` that started the process ``pid``. Create it if the client
        has none.

        - ``agents``: the client works as one of these agents. Empty: it works as its own agent, even if
          another client has started it
        - ``is_strict``: see `Attendant`

        None if the client is unknown, has ended, or exceeds the limit. Raise `UnknownAgent`, OSError.
        """
        platform = self.workspace.platform
        async with self._attending:
            above = await run_in_thread(ancestors_of, platform, pid)
            own = [each for each in self.attendants if each.client == client and each.process.pid in above]
            for each in sorted(own, key=lambda each: above.index(each.process.pid)):
                if each.process.is_alive and agents and each.serves(agents):
                    return each
            process = await run_in_thread(client_above, platform, pid)
            if not agents:
                for each in own:
                    if each.process[:2] == process[:2]:
                        return each
            if not process.is_alive or len(self.attendants) >= _MAX_ATTENDANTS:
                return None
            attendant = Attendant(
                *(self.workspace, agents, client, process), is_strict=is_strict, on_claim=self.checks.add
            )
            self.attendants.append(attendant)
        attendant.begin()
        watcher = asyncio.ensure_future(self._forget_when_gone(attendant))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return attendant

    async def _forget_when_gone(self, attendant: Attendant) -> None:
        await attendant.wait_gone()
        self.attendants.remove(attendant)
        self._ended |= dict.fromkeys(attendant.session_ids)
        while len(self._ended) > _MAX_ENDED:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, session_id: str) -> bool:
        """Return whether this process has recorded the end of the session's client."""
        return session_id in self._ended

    async def close(self) -> None:
        """Close the attendants and the workspace. Errors are logged."""
        for watcher in self._watchers:
            watcher.cancel()
        for attendant in self.attendants:
            await attendant.close()
        await self.checks.close()
        try:
            await run_in_thread(self._routines.close)
            await run_in_thread(self.workspace.close)
        except Exception:  # noqa: BLE001  # the service goes on, or ends
            _log.exception("%s could not be closed", self.workspace.root)


def _identify(workspace: Workspace) -> tuple[int, int] | None:
    """Return device and inode of the control folder of ``workspace``, None if it was removed."""
    try:
        found = os.stat(os.path.join(workspace.root, CONTROL))
    except OSError:
        return None
    return found.st_dev, found.st_ino


class ServedWorkspaces:
    """The workspaces of a service, by their folders. For use on one event loop.

    - ``on_open``: called with each workspace that was opened, in a thread.
    - ``program``, ``places``: see `ServedWorkspace`.
    """

    def __init__(
        self,
        on_open: Callable[[Workspace], object],
        program: Sequence[str] = (),
        places: RoutinePlaces | None = None,
    ) -> None:
        self._on_open = on_open
        self._program = program
        self._places = places
        self._open: dict[str, ServedWorkspace] = {}
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        """For each place that is being opened or closed, its lock and the number of waiting tasks."""

    @property
    def all(self) -> list[ServedWorkspace]:
        """The open workspaces."""
        return [*self._open.values()]

    async def get(self, root: str) -> ServedWorkspace:
        """Return the workspace at ``root``, opened if necessary. Raise `WatchroomError`, OSError."""
        place = root if is_server_address(root) else await run_in_thread(os.path.realpath, root)
        async with self._turn(place):
            known = self._open.get(place)
            if known is not None and await run_in_thread(known.was_replaced):
                del self._open[place]
                await known.close()
                known = None
            if known is None:
                if len(self._open) >= _MAX_WORKSPACES:
                    raise OSError(f"more than {_MAX_WORKSPACES} workspaces")
                known = await run_in_thread(self._open_workspace, place)
                self._open[place] = known
                known.checks.begin()
            known.note_use()
            return known

    async def open_planned(self, stopping: asyncio.Event) -> None:
        """Open the workspaces with active routines, which an earlier service remembered, until ``stopping``
        is set. Errors are logged."""
        if self._places is None:
            return
        try:
            roots = await run_in_thread(self._places.list)
        except OSError as error:
            _log.warning("the workspaces with routines are not known: %s", error)
            return
        for root in roots:
            if stopping.is_set():
                return
            # The workspace may be on a disk that is not there now, or was moved or removed.
            if await run_in_thread(os.path.isdir, os.path.join(root, CONTROL)):
                try:
                    await self.get(root)
                except Exception:  # noqa: BLE001  # the others are opened
                    _log.exception("%s could not be opened", root)

    async def find_root(self, folder: str) -> str | None:
        """Return the nearest workspace around ``folder``, or the address ``folder``. None if there is none.
        Nothing is opened."""
        if is_server_address(folder):
            return folder
        found = await run_in_thread(find_workspace, folder)
        return await run_in_thread(os.path.realpath, found) if found is not None else None

    def find_open(self, place: str) -> ServedWorkspace | None:
        """Return the workspace at ``place`` if it is open. This does not keep it open."""
        return self._open.get(place)

    @asynccontextmanager
    async def _turn(self, place: str) -> AsyncIterator[None]:
        """Open or close ``place`` within the context, exclusively."""
        lock, count = self._turns.get(place, (asyncio.Lock(), 0))
        self._turns[place] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._turns.pop(place)
            if count > 1:
                self._turns[place] = lock, count - 1

    def _open_workspace(self, root: str) -> ServedWorkspace:
        workspace = Workspace.open(root, create=False, scan=False)
        try:
            workspace.keep()
            self._on_open(workspace)
            # The address of a server can contain a password.
            places = None if is_server_address(root) else self._places
            return ServedWorkspace(workspace, self._program, places)
        except BaseException:
            workspace.close()
            raise

    async def leave(self, root: str) -> bool:
        """Close the workspace at ``root``. Return False if a client or a connection needs it."""
        place = await run_in_thread(os.path.realpath, root)
        async with self._turn(place):
            served = self._open.get(place)
            if served is None:
                return True
            if served.has_clients:
                return False
            del self._open[place]
            await served.close()
        return True

    async def close_unused(self, seconds: float) -> None:
        """Close the workspaces that have been unused for ``seconds``, and the removed workspaces."""
        for place, served in [*self._open.items()]:
            is_there = await run_in_thread(os.path.isdir, os.path.join(served.workspace.root, CONTROL))
            async with self._turn(place):
                # A client that arrives in the meantime waits for its turn, and opens the workspace again.
                is_open = self._open.get(place) is served
                if is_open and (served.is_unused_for(seconds) or not is_there):
                    del self._open[place]
                    await served.close()

    async def close(self) -> None:
        """Close all workspaces."""
        served = self.all
        self._open.clear()
        await asyncio.gather(*(each.close() for each in served))
