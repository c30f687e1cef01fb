"""The resident service as a process: its socket, its lock, its idle time, its status and its end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from watchroom.agents.clients.client_program import LOCK, PROTOCOL, make_runtime_folder, socket_path
from watchroom.agents.clients.routine_places import RoutinePlaces
from watchroom.errors import JournalBusy, JournalUnreachable, WatchroomError, WorkspaceLocked
from watchroom.features.overview.model import Model
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.kernel.journal import is_server_address
from watchroom.model import Json
from watchroom.platform import Platform
from watchroom.platform.process_lock import ProcessLock
from watchroom.serving.service.hooks import answer_hook
from watchroom.serving.service.http import BadRequest, Connection, ServiceRequest, peer_of
from watchroom.serving.service.relays import hold, serve_http, serve_relay
from watchroom.serving.service.workspaces import ServedWorkspace, ServedWorkspaces
from watchroom.workspace import Workspace

IDLE_SECONDS: Final = 600.0
"""Seconds without a client after which the service ends, and after which it closes an unused workspace."""
MAX_CONNECTIONS: Final = 2000
_MAX_LINE: Final = 32 * 1024 * 1024
"""Maximum bytes of a line from a relay."""
_CHECK_SECONDS: Final = 10.0
"""Seconds between checks for unused workspaces and for the end of the idle time."""
_ENDING_SECONDS: Final = 30.0
"""Maximum seconds to wait for the lock of a service that is ending."""
_LOCK_PAUSE_SECONDS: Final = 0.05
_MAX_SEEN: Final = 4
"""Number of looks in a row that find the socket of another service, after which that service is running."""
_DRAIN_SECONDS: Final = 2.0
"""Seconds in which short requests are still answered after the service was stopped."""
_SERVED: Final[
    Mapping[tuple[str, str], Callable[[ServedWorkspace, ServiceRequest, Connection], Awaitable[None]]]
] = {
    ("POST", "/hook"): answer_hook,
    ("GET", "/mcp"): serve_relay,
    ("GET", "/http"): serve_http,
    ("GET", "/use"): hold,
}
"""The handlers of clients' requests to a workspace, by method and path."""
_TRANSIENT: Final = (JournalBusy, WorkspaceLocked, JournalUnreachable)
"""Errors after which the same request may succeed later, besides OSError. The status of its answer is 503."""
_log = logging.getLogger("watchroom.service")


class Service:
    """The service of this user, for one run on one event loop.

    - ``platform``: the operating system
    - ``version``: the version of the program. A client of a newer version ends this service, and starts its
      own
    - ``on_open``: called in a thread with each workspace that was opened
    - ``describe``: called in a thread; returns the status line of a workspace in a language
    - ``on_serve``: called once the service can be reached
    - ``program``: the command line that starts Watchroom, for the runs of routines; empty to start none
    - ``places``: remembers the workspaces with active routines, which the next service opens; None to
      remember none
    - ``idle_seconds``: seconds without a client after which the service ends
    """

    def __init__(
        self,
        platform: Platform,
        version: str,
        on_open: Callable[[Workspace], object],
        describe: Callable[[Model, str], str],
        on_serve: Callable[[], None] = lambda: None,
        *,
        program: Sequence[str] = (),
        places: RoutinePlaces | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._platform = platform
        self._version = version
        self._describe = describe
        self._on_serve = on_serve
        self._idle_seconds = idle_seconds
        self._workspaces = ServedWorkspaces(on_open, program, places)
        self._connections: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._began = self._used = time.monotonic()

    async def run(self) -> bool:
        """Serve until the service is stopped or idle. Return False if another service of this user is
        running. Raise OSError, `LocksUnsupported`."""
        folder = await run_in_thread(make_runtime_folder)
        lock = ProcessLock(os.path.join(folder, LOCK), self._platform)
        try:
            if not await run_in_thread(_acquire, lock):
                return False
            started = self._platform.process_start(os.getpid())
            lock.set_text(f"{os.getpid()} {started:.0f} {self._version}"[:80])
            await self._serve(socket_path())
        finally:
            lock.close()
        return True

    async def _serve(self, path: str) -> None:
        # This process holds the lock, so an existing socket belongs to a dead service.
        with suppress(FileNotFoundError):
            os.unlink(path)
        server = await asyncio.start_unix_server(self._accept, path, limit=_MAX_LINE, backlog=512)
        os.chmod(path, 0o600)
        own = _identify(path)
        self._on_serve()
        loading = asyncio.ensure_future(run_in_thread(_load_protocol))
        opening = asyncio.ensure_future(self._workspaces.open_planned(self._stopping))
        try:
            await self._watch_idle_time(lambda: _identify(path) == own)
        finally:
            # New clients find no service. They start one once the lock is free.
            if _identify(path) == own:
                os.unlink(path)
            server.close()
            if self._connections:
                await asyncio.wait(self._connections, timeout=_DRAIN_SECONDS)
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, loading, return_exceptions=True)
            self._stopping.set()
            # A workspace can be on a disk that does not answer.
            await asyncio.wait([opening], timeout=_DRAIN_SECONDS)
            opening.cancel()
            await self._workspaces.close()

    async def _watch_idle_time(self, is_reachable: Callable[[], bool]) -> None:
        """Return when the service is stopped, has been idle for long enough, or can no longer be reached."""
        while is_reachable():
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_CHECK_SECONDS, self._idle_seconds)):
                    await self._stopping.wait()
                    return
            if self._connections or any(each.is_used for each in self._workspaces.all):
                self._used = time.monotonic()
            elif time.monotonic() - self._used >= self._idle_seconds:
                return
            await self._workspaces.close_unused(self._idle_seconds)

    def stop(self) -> None:
        """Stop the service. Clients that wait for an answer repeat their request to the next service."""
        self._stopping.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve_connection(Connection(reader, writer)))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, connection: Connection) -> None:
        try:
            await self._answer(connection)
        except BadRequest as refused:
            await _refuse(connection, refused.status, str(refused))
        except WatchroomError as error:
            status = 503 if isinstance(error, _TRANSIENT) else 409
            await _refuse(connection, status, f"{error.message()} {error.suggestion()}")
        except OSError as error:
            await _refuse(connection, 503, str(error))
        except Exception:  # noqa: BLE001  # one client must not affect the others
            _log.exception("a request failed")
            await _refuse(connection, 500, "failed")
        finally:
            await connection.close()

    async def _answer(self, connection: Connection) -> None:
        """Answer the request of ``connection``. Raise `BadRequest`, `WatchroomError`, OSError."""
        uid = peer_of(connection.writer).uid
        if uid not in (-1, os.getuid()):
            raise BadRequest(403, "another user's service")
        if len(self._connections) > MAX_CONNECTIONS:
            raise BadRequest(503, f"more than {MAX_CONNECTIONS} connections")
        request = await connection.read_request()
        was_removed = _was_removed()
        if was_removed or _is_newer(request, self._version):
            self.stop()
            state = "the program of this service was removed"
            raise BadRequest(503, state if was_removed else f"this service has version {self._version}")
        match request.method, request.path:
            case "GET", "/status":
                await connection.answer(json.dumps(await self._status()))
            case "GET", "/line":
                await connection.answer(await self._read_line(request))
            case "POST", "/leave":
                if not await self._workspaces.leave(request.get("root")):
                    raise BadRequest(409, "in use")
                await connection.answer("")
            case "POST", "/stop":
                await connection.answer("")
                self.stop()
            case asked if asked in _SERVED:
                await self._serve_client(request, connection)
            case _:
                raise BadRequest(404, "no such request")

    async def _serve_client(self, request: ServiceRequest, connection: Connection) -> None:
        """Serve a client in its workspace. Raise `BadRequest`, `WatchroomError`, OSError."""
        root = request.get("root")
        if "\0" in root or not (os.path.isabs(root) or is_server_address(root)):
            raise BadRequest(409, "no workspace")
        opening = asyncio.ensure_future(self._workspaces.get(root))
        if request.path == "/hook":
            # Opening a large journal takes a while.
            await connection.wait_with_beats(opening)
        served = await opening
        with served.in_use():
            await _SERVED[request.method, request.path](served, request, connection)

    async def _read_line(self, request: ServiceRequest) -> str:
        """Return the status line of the workspace around the place in ``request``, empty if there is none.

        A question neither opens a workspace nor keeps it open. Raise `BadRequest`, `WatchroomError`,
        OSError.
        """
        given = request.get("place")
        if "\0" in given or not (os.path.isabs(given) or is_server_address(given)):
            raise BadRequest(409, "no place")
        root = await self._workspaces.find_root(given)
        if root is None:
            return ""
        served = self._workspaces.find_open(root)
        if served is None:
            raise BadRequest(409, "not open")
        model = await run_in_thread(served.status.read)
        return await run_in_thread(self._describe, model, request.get("language"))

    async def _status(self) -> Json:
        workspaces: list[Json] = [
            {
                "root": each.workspace.root,
                "connections": each.uses,
                "clients": [
                    {
                        "client": attendant.client,
                        "agents": list(attendant.agents),
                        "process": attendant.process.pid,
                    }
                    for attendant in each.attendants
                ],
            }
            for each in self._workspaces.all
        ]
        return {
            "version": self._version,
            "process": os.getpid(),
            "seconds": round(time.monotonic() - self._began, 1),
            "memory_bytes": await run_in_thread(self._platform.memory_of, os.getpid()),
            "workspaces": workspaces,
        }


def _identify(path: str) -> tuple[int, int] | None:
    """Return device and inode of the socket at ``path``, None if there is no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


async def _refuse(connection: Connection, status: int, said: str) -> None:
    with suppress(ConnectionError):
        await connection.refuse(said, status)


def _is_newer(request: ServiceRequest, own: str) -> bool:
    """Return whether the client of ``request`` has a newer version than ``own``."""
    protocol = request.get("protocol")
    is_other_protocol = protocol.isdecimal() and int(protocol) > PROTOCOL
    given = request.get("version")
    return is_other_protocol or (bool(given) and _order(given) > _order(own))


def _was_removed() -> bool:
    """Return whether this program was removed from the disk. An update can replace it by a program of the
    same version in another place."""
    return not os.path.exists(__file__)


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    """Return a sort key for versions. 0.3.0.dev0 comes before 0.3.0."""
    numbers = re.findall(r"\d{1,9}", version.partition("dev")[0])
    return tuple(map(int, numbers)), "dev" not in version


def _load_protocol() -> None:
    """Load the server of the Model Context Protocol before a client needs it. This takes half a second."""
    import watchroom.serving.stdio  # noqa: F401


def _acquire(lock: ProcessLock) -> bool:
    """Acquire ``lock``. Return False if another service is running. One that has no socket any more is
    ending: wait for its lock."""
    deadline = time.monotonic() + _ENDING_SECONDS
    seen = 0
    while not lock.try_acquire():
        # A service that was just told to stop still has its socket for a moment.
        seen = seen + 1 if os.path.exists(socket_path()) else 0
        if seen > _MAX_SEEN or time.monotonic() > deadline:
            return False
        time.sleep(_LOCK_PAUSE_SECONDS)
    return True
