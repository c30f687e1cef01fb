"""Finds remaining processes of an attached client: the client itself, and processes that it has started.

Evidence comes in two grades.

- **Certain**: the client, its descendants, processes of the group or session that it leads, and processes
  that were seen as its descendants earlier.
- **Possible**: a process with the mark of the agent's commands, and an orphaned process in the client's
  control group that began while the client ran.

A process without any of this evidence is not found. Only a process namespace proves that there is no such
process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from platform import node
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.agents.clients.client_program import service_process
from watchroom.agents.clients.configuration import AGENT_VARIABLE, is_unnamed, parse_mark
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.tmux_pane import TmuxPane, find_pane, read_pane
from watchroom.features.sessions.client_process import (
    BOOT,
    MACHINE,
    NAMESPACE,
    PID,
    STARTED,
    RecordedProcess,
    read_process,
)
from watchroom.features.sessions.rows import ATTACHMENT
from watchroom.model import CONTINUE, Json, Row
from watchroom.platform import Platform, ProcessInfo
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

GONE: Final = "client_gone"
"""The tool of rows about processes that remained after a client's end."""
LEFT: Final = "left"
"""The field of the remaining processes, in the detail of rows about a client's process."""
_CONTROL_GROUP: Final = "control_group"
_SESSION: Final = "process_session"
_PLACE: Final = "place"
_TMUX: Final = "tmux"
_UNTIL: Final = "until"
_MAX_SEEN: Final = 1000
"""Maximum number of descendants of a client that are kept."""
_REAPERS: Final = ("systemd", "init", "tini", "dumb-init", "docker-init")
"""Programs, besides process 1, that become the parent of orphaned processes."""

_PLACES: Final = (
    *("TMUX_PANE", "STY", "SSH_TTY", "SSH_CONNECTION", "TERM_SESSION_ID", "ITERM_SESSION_ID", "WINDOWID"),
    *("KONSOLE_DBUS_SESSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "XDG_SESSION_ID"),
)
"""Environment variables that identify the terminal of a process."""

Known = tuple[int, float]
"""A process, by its id and start time."""


class ClientTrace(NamedTuple):
    """A client's process as recorded in rows.

    - ``pid``, ``started``: its id and start time
    - ``machine``, ``boot``, ``namespace``: the place where it runs
    - ``control_group``, ``place``: checksums of its control group and of its terminal
    - ``session``: its process session
    - ``pane``: the tmux pane in which it was started, None if unknown
    """

    pid: int
    started: float
    machine: str = ""
    boot: str = ""
    namespace: str = ""
    control_group: str = ""
    place: str = ""
    session: int = 0
    pane: TmuxPane | None = None


class Leftover(NamedTuple):
    """A process that is still running. ``is_certain``: whether it certainly belongs to the client."""

    pid: int
    started: float
    name: str
    is_certain: bool


def describe_process(platform: Platform, pid: int, started: float) -> dict[str, Json]:
    """Return the data that rows record about the client's process ``pid``, which started at ``started``."""
    scope = platform.process_scope(pid)
    try:
        session = os.getsid(pid)
    except OSError:
        session = 0
    environment = platform.environment(pid) or {}
    pane = find_pane(environment)
    return {
        PID: pid,
        STARTED: started,
        MACHINE: node(),
        BOOT: platform.boot_id(),
        NAMESPACE: scope.namespace,
        _CONTROL_GROUP: _checksum(scope.control_group),
        _PLACE: _place_of(environment),
        _SESSION: session,
        **({_TMUX: pane.fields} if pane is not None else {}),
    }


def _place_of(environment: Mapping[str, str]) -> str:
    return _checksum("\n".join(f"{name}={environment[name]}" for name in _PLACES if name in environment))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16] if text else ""


def find_trace(workspace: Workspace, path: str) -> ClientTrace | None:
    """Return the process of the attached client of the session at ``path``, as recorded in rows of
    ``workspace``; None if unknown."""
    traces = _list_traces(workspace, path)
    return next((trace for attachment, trace in traces if attachment == "attached"), None)


def find_terminal(workspace: Workspace, path: str) -> ClientTrace | None:
    """Return the process of the client of the session at ``path``; None if it is unknown. It does not matter
    who started the client."""
    return next((trace for _, trace in _list_traces(workspace, path)), None)


def _list_traces(workspace: Workspace, path: str) -> Iterator[tuple[Json, ClientTrace]]:
    """Yield the client's processes as recorded in rows, the newest first, each with its attachment."""
    agent, journal = path.partition("/")[0], workspace.journal
    rows = (journal.last_note("session", path, agent, CONTINUE), journal.version("session", path, 1))
    for row in rows:
        detail: Mapping[str, Json] = row.detail if row is not None else {}
        process, session = read_process(detail), detail.get(_SESSION)
        if process is not None:
            group, place = (str(detail.get(name) or "") for name in (_CONTROL_GROUP, _PLACE))
            own = session if isinstance(session, int) else 0
            trace = ClientTrace(*process, group, place, own, read_pane(detail.get(_TMUX)))
            yield detail.get(ATTACHMENT), trace


def find_process(workspace: Workspace, path: str) -> ClientProcess | None:
    """Return the process of the attached client of the session at ``path``, according to the rows of
    ``workspace``; None if unknown."""
    trace = find_trace(workspace, path)
    return None if trace is None else ClientProcess(trace.pid, trace.started, workspace.platform)


class SeenDescendants:
    """The descendants of the client ``process`` that were seen so far. They may lose their parent later."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process
        self._seen: dict[int, float] = {}

    def look(self) -> None:
        """Record the current descendants."""
        platform = self._process.platform
        found, todo = set[int](), [self._process.pid]
        while todo and len(found) < _MAX_SEEN:
            children = [each for each in platform.children(todo.pop()) if each not in found]
            found.update(children)
            todo += children
        for pid in found - self._seen.keys():
            if len(self._seen) >= _MAX_SEEN:
                self._seen = dict(self.left())
            if started := platform.process_start(pid):
                self._seen[pid] = started

    def left(self) -> list[Known]:
        """Return the recorded processes that are still running."""
        platform, service = self._process.platform, service_process()
        return [
            (pid, started)
            for pid, started in self._seen.items()
            if (pid, started) != service and platform.is_running(pid, started)
        ]


class ProcessView:
    """A snapshot of the processes of this machine, and a search for processes of clients of ``workspace``."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._platform = workspace.platform

    @cached_property
    def _all(self) -> dict[int, ProcessInfo]:
        # The service does not belong to a client, although the first client started it.
        service = service_process()
        processes = self._platform.processes()
        return {each.pid: each for each in processes if each.started and (each.pid, each.started) != service}

    @cached_property
    def _own(self) -> set[int]:
        """Return this process and its ancestors."""
        found, pid = set[int](), os.getpid()
        while pid in self._all and pid not in found:
            found.add(pid)
            pid = self._all[pid].parent
        return found

    @cached_property
    def _namespace(self) -> str:
        return self._platform.process_scope(os.getpid()).namespace

    def is_elsewhere(self, trace: ClientTrace) -> bool:
        """Return whether the client of ``trace`` runs, or ran, on another machine or in another process
        namespace."""
        return RecordedProcess(*trace[:5]).is_elsewhere(self._platform)

    def find_left(
        self, path: str, trace: ClientTrace, *, client_counts: bool = True
    ) -> list[Leftover] | None:
        """Return the remaining processes of the client of the session at ``path``.

        None if they are not visible: the client is elsewhere, or the system does not list processes.
        """
        if not self._namespace or self.is_elsewhere(trace):
            return None
        if self._platform.has_restarted(trace.boot):
            return []
        try:
            processes = self._all
        except OSError:
            return None
        known, until = _read_gone(self._workspace, path, trace)
        certain = self._find_certain(trace, known)
        agent = path.partition("/")[0]
        rest = [each for each in processes.values() if each.pid not in certain and each.pid not in self._own]
        possible = [each for each in rest if self._may_belong(each, trace, agent, certain, until)]
        # This process is below the client if the agent's own shell runs it.
        left = [(self._all[pid], True) for pid in sorted(certain - (self._own - {trace.pid}))]
        left += [(each, False) for each in possible]
        return [Leftover(each.pid, each.started, _name(each), is_certain) for each, is_certain in left]

    def _find_certain(self, trace: ClientTrace, known: Iterable[Known]) -> set[int]:
        roots = {pid for pid, started in (*known, (trace.pid, trace.started)) if self._is_there(pid, started)}
        # A process id is not reused while it is the id of a group or a session.
        roots |= {
            each.pid
            for each in self._all.values()
            if trace.pid in (each.group, each.session) and each.started >= trace.started
        }
        children: dict[int, list[int]] = {}
        for each in self._all.values():
            children.setdefault(each.parent, []).append(each.pid)
        found, todo = set(roots), [*roots]
        while todo:
            below = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
            found.update(below)
            todo += below
        return found

    def _is_there(self, pid: int, started: float) -> bool:
        known = self._all.get(pid)
        return known is not None and known.started == started

    def _may_belong(
        self, process: ProcessInfo, trace: ClientTrace, agent: str, certain: Collection[int], until: float
    ) -> bool:
        if process.started < trace.started:
            return False
        is_orphan = self._is_orphan(process) and self._is_of_session(process, trace)
        marked = self._platform.environment(process.pid)
        if marked is None:
            # The environment cannot be read, so only other evidence counts.
            return is_orphan and process.owner == os.getuid() and self._is_of_group(process, trace)
        place = _place_of(marked)
        if place and trace.boot and place != trace.place:
            # It was started in another terminal.
            return False
        mark = marked.get(AGENT_VARIABLE)
        # The mark of an agent named by the service proves nothing, because other clients have the same mark.
        if mark is not None and not is_unnamed(mark):
            named = parse_mark(mark)
            # A mark with several agents is not enough. A process with a parent is found below its client.
            return agent in named and (len(named) == 1 or is_orphan)
        is_within = until == 0 or process.started <= until
        return is_orphan and is_within and process.owner == os.getuid() and self._is_of_group(process, trace)

    def _is_orphan(self, process: ProcessInfo) -> bool:
        parent = self._all.get(process.parent)
        return process.parent == 1 or (
            parent is not None and os.path.basename((*parent.arguments, "")[0]) in _REAPERS
        )

    def _is_of_session(self, process: ProcessInfo, trace: ClientTrace) -> bool:
        """Return whether ``process`` can be a descendant of the client. A process inherits its session or
        starts a new one. So a session that is older than the client, and is not the client's session,
        excludes this."""
        if process.session == trace.session:
            return True
        leader = self._all.get(process.session)
        return process.session > 0 and (leader is None or leader.started >= trace.started)

    def _is_of_group(self, process: ProcessInfo, trace: ClientTrace) -> bool:
        group = _checksum(self._platform.process_scope(process.pid).control_group)
        return not trace.control_group or group == trace.control_group


def _name(process: ProcessInfo) -> str:
    """Return the name of a process with its first arguments, for display."""
    words = [os.path.basename(each) for each in process.arguments[:3] if each]
    return validation.escape_unstorable(" ".join(words), 50) or "?"


def record_gone(workspace: Workspace, path: str, trace: ClientTrace, seen: Iterable[Known]) -> Row:
    """Record that the client of the session at ``path`` has ended, and the remaining processes.

    ``seen``: processes seen below the client. Processes in an earlier such row are included. Raise
    `JournalError`.
    """
    known, until = _read_gone(workspace, path, trace)
    platform = workspace.platform
    left: list[Json] = [
        [pid, started] for pid, started in sorted({*known, *seen}) if platform.is_running(pid, started)
    ]
    detail: dict[str, Json] = {
        PID: trace.pid,
        STARTED: trace.started,
        LEFT: left,
        _UNTIL: until or platform.process_clock(),
    }
    return workspace.session_zone.note(path.partition("/")[0], GONE, path, "", detail)


def _read_gone(workspace: Workspace, path: str, trace: ClientTrace) -> tuple[list[Known], float]:
    """Return the processes that remained after the client's end, and the time of that record; 0 if no row
    records it."""
    row = workspace.journal.last_note("session", path, path.partition("/")[0], GONE)
    detail: Mapping[str, Json] = row.detail if row is not None else {}
    if (detail.get(PID), detail.get(STARTED)) != (trace.pid, trace.started):
        return [], 0.0
    left, until = detail.get(LEFT), detail.get(_UNTIL)
    known = [
        (each[0], float(each[1]))
        for each in (left if isinstance(left, list) else [])
        if isinstance(each, list) and len(each) == 2
        if isinstance(each[0], int) and isinstance(each[1], int | float)
    ]
    return known, float(until) if isinstance(until, int | float) else 0.0


def describe_left(left: Collection[Leftover] | None, texts: Catalogue) -> str:
    """Return a sentence about the remaining processes ``left`` of a client."""
    if left is None:
        return texts("stop.unseen")
    named = {
        is_certain: ", ".join(f"{each.pid} ({each.name})" for each in left if each.is_certain is is_certain)
        for is_certain in (True, False)
    }
    parts = [texts("stop.left", processes=named[True])] if named[True] else []
    parts += [texts("stop.perhaps_left", processes=named[False])] if named[False] else []
    return "; ".join(parts)
