"""Find what is left of an attached client: the client itself, and processes that it has started.

Evidence comes in two grades.

- **Certain**: the client, its descendants, processes of the group or session that it leads, and descendants
  that were seen while they were beneath it.
- **Possible**: a process with the mark of the agent's commands, and a process without a parent (it forked
  twice) in the client's control group that began while the client ran.

A process without any of these is not found: only a namespace of processes could show that there is none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from platform import node
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.clients.configuration import AGENT_VARIABLE, parse_mark
from watchroom.clients.processes import ClientProcess
from watchroom.model import CONTINUE, Json, Row
from watchroom.platforms import Platform, ProcessInfo
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

GONE: Final = "client_gone"
"""The tool of the row that says what was left of a client when it was gone."""
ATTACHMENT: Final = "attachment"
PID: Final = "pid"
STARTED: Final = "started"
LEFT: Final = "left"
"""Names in the detail of rows about a client's process."""
_MACHINE: Final = "machine"
_BOOT: Final = "boot"
_NAMESPACE: Final = "namespace"
_CONTROL_GROUP: Final = "control_group"
_SESSION: Final = "process_session"
_PLACE: Final = "place"
_UNTIL: Final = "until"
_MAX_SEEN: Final = 1000
"""Descendants that are remembered of one client."""
_REAPERS: Final = ("systemd", "init", "tini", "dumb-init", "docker-init")
"""Programs that become the parent of a process whose own has ended, besides the first process of all."""

_PLACES: Final = (
    *("TMUX_PANE", "STY", "SSH_TTY", "SSH_CONNECTION", "TERM_SESSION_ID", "ITERM_SESSION_ID", "WINDOWID"),
    *("KONSOLE_DBUS_SESSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "ALACRITTY_WINDOW_ID", "XDG_SESSION_ID"),
)
"""Variables that tell the terminal in which a process was started."""

Known = tuple[int, float]
"""A process: its number, and when it began."""


class ClientTrace(NamedTuple):
    """What rows say of a client's process: its number and start; the machine, its boot and the namespace; its
    control group and the terminal that it was started in (checksums), and its session."""

    pid: int
    started: float
    machine: str = ""
    boot: str = ""
    namespace: str = ""
    control_group: str = ""
    place: str = ""
    session: int = 0


class Leftover(NamedTuple):
    """A process that goes on. ``is_certain``: it belongs to the client; else it may."""

    pid: int
    started: float
    name: str
    is_certain: bool


def describe_process(platform: Platform, pid: int, started: float) -> dict[str, Json]:
    """Return what a row keeps of the client's process ``pid`` that ``started`` then."""
    scope = platform.process_scope(pid)
    try:
        session = os.getsid(pid)
    except OSError:
        session = 0
    return {
        PID: pid,
        STARTED: started,
        _MACHINE: node(),
        _BOOT: platform.boot_id(),
        _NAMESPACE: scope.namespace,
        _CONTROL_GROUP: _checksum(scope.control_group),
        _PLACE: _place_of(platform.environment(pid) or {}),
        _SESSION: session,
    }


def _place_of(environment: Mapping[str, str]) -> str:
    return _checksum("\n".join(f"{name}={environment[name]}" for name in _PLACES if name in environment))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16] if text else ""


def find_trace(workspace: Workspace, path: str) -> ClientTrace | None:
    """Return what rows of ``workspace`` say of the process of the client that a person has started and that
    runs the session at ``path``; None if none is known."""
    agent, journal = path.partition("/")[0], workspace.journal
    rows = (journal.last_note("session", path, agent, CONTINUE), journal.version("session", path, 1))
    for row in rows:
        detail: Mapping[str, Json] = row.detail if row is not None else {}
        pid, started, session = detail.get(PID), detail.get(STARTED), detail.get(_SESSION)
        if detail.get(ATTACHMENT) == "attached" and isinstance(pid, int) and isinstance(started, int | float):
            names = (_MACHINE, _BOOT, _NAMESPACE, _CONTROL_GROUP, _PLACE)
            machine, boot, namespace, group, place = (str(detail.get(name) or "") for name in names)
            own = session if isinstance(session, int) else 0
            return ClientTrace(pid, float(started), machine, boot, namespace, group, place, own)
    return None


class SeenDescendants:
    """The descendants of the client ``process`` that were seen beneath it: later they may have no parent."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process
        self._seen: dict[int, float] = {}

    def look(self) -> None:
        """Remember the descendants of now."""
        platform = self._process.platform
        found, todo = set[int](), [self._process.pid]
        while todo and len(found) < _MAX_SEEN:
            children = [each for each in platform.children(todo.pop()) if each not in found]
            found.update(children)
            todo += children
        for pid in found - self._seen.keys():
            if len(self._seen) >= _MAX_SEEN:
                self._seen = dict(self.left())
            self._seen[pid] = platform.process_start(pid)

    def left(self) -> list[Known]:
        """Return those that are still there."""
        platform = self._process.platform
        return [
            (pid, started)
            for pid, started in self._seen.items()
            if pid != os.getpid() and started and platform.process_start(pid) == started
        ]


class ProcessView:
    """All processes of this machine at one moment, and which of them are left of clients of ``workspace``."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._platform = workspace.platform

    @cached_property
    def _all(self) -> dict[int, ProcessInfo]:
        return {each.pid: each for each in self._platform.processes() if each.started}

    @cached_property
    def _own(self) -> set[int]:
        """This process and its ancestors."""
        found, pid = set[int](), os.getpid()
        while pid in self._all and pid not in found:
            found.add(pid)
            pid = self._all[pid].parent
        return found

    @cached_property
    def _namespace(self) -> str:
        return self._platform.process_scope(os.getpid()).namespace

    def is_elsewhere(self, trace: ClientTrace) -> bool:
        """Return whether the client of ``trace`` runs, or ran, on another machine or in another namespace of
        processes. Rows of earlier versions do not say; their clients are taken to be here."""
        if not trace.boot:
            return False
        is_same_boot = trace.boot == self._platform.boot_id()
        return trace.machine != node() or (is_same_boot and trace.namespace != self._namespace)

    def find_left(
        self, path: str, trace: ClientTrace, *, client_counts: bool = True
    ) -> list[Leftover] | None:
        """Return what is left of the client of the session at ``path``; None if that cannot be seen: the
        client is elsewhere, or this system does not list enough of its processes."""
        if not self._namespace or self.is_elsewhere(trace):
            return None
        if trace.boot and trace.boot != self._platform.boot_id():
            # This machine was restarted since.
            return []
        known, until = _read_gone(self._workspace, path, trace)
        certain = self._find_certain(trace, known)
        agent = path.partition("/")[0]
        rest = [each for each in self._all.values() if each.pid not in certain and each.pid not in self._own]
        possible = [each for each in rest if self._may_belong(each, trace, agent, certain, until)]
        # Who looks is beneath the client where the agent's own shell does.
        left = [(self._all[pid], True) for pid in sorted(certain - (self._own - {trace.pid}))]
        left += [(each, False) for each in possible]
        return [Leftover(each.pid, each.started, _name(each), is_certain) for each, is_certain in left]

    def _find_certain(self, trace: ClientTrace, known: Iterable[Known]) -> set[int]:
        roots = {pid for pid, started in (*known, (trace.pid, trace.started)) if self._is_there(pid, started)}
        # Nobody else gets the number of a process while a group or a session is called by it.
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
            # Of another user, or one that cannot be looked at: then what else is seen of it counts.
            return is_orphan and process.owner == os.getuid() and self._is_of_group(process, trace)
        place = _place_of(marked)
        if place and trace.boot and place != trace.place:
            # It was started in another terminal.
            return False
        mark = marked.get(AGENT_VARIABLE)
        if mark is not None:
            named = parse_mark(mark)
            # Of several agents the mark does not say which: what has a parent is found beneath its client.
            return agent in named and (len(named) == 1 or is_orphan)
        is_within = until == 0 or process.started <= until
        return is_orphan and is_within and process.owner == os.getuid() and self._is_of_group(process, trace)

    def _is_orphan(self, process: ProcessInfo) -> bool:
        parent = self._all.get(process.parent)
        return process.parent == 1 or (
            parent is not None and os.path.basename((*parent.arguments, "")[0]) in _REAPERS
        )

    def _is_of_session(self, process: ProcessInfo, trace: ClientTrace) -> bool:
        """Return whether ``process`` may descend from the client: a session is inherited or new, so one that
        was there before the client, and is not the client's, is another's."""
        if process.session == trace.session:
            return True
        leader = self._all.get(process.session)
        return process.session > 0 and (leader is None or leader.started >= trace.started)

    def _is_of_group(self, process: ProcessInfo, trace: ClientTrace) -> bool:
        group = _checksum(self._platform.process_scope(process.pid).control_group)
        return not trace.control_group or group == trace.control_group


def _name(process: ProcessInfo) -> str:
    """How a process is called, with its first arguments, so that a person recognises it."""
    words = [os.path.basename(each) for each in process.arguments[:3] if each]
    return validation.escape_unstorable(" ".join(words), 50) or "?"


def record_gone(workspace: Workspace, path: str, trace: ClientTrace, seen: Iterable[Known]) -> Row:
    """Make a row that the client of the session at ``path`` is gone now, and of what was ``seen`` beneath it
    and is left. Others may have said so before, and have seen other processes. Raises `JournalError`."""
    known, until = _read_gone(workspace, path, trace)
    platform = workspace.platform
    left: list[Json] = [
        [pid, started]
        for pid, started in sorted({*known, *seen})
        if started and platform.process_start(pid) == started
    ]
    detail: dict[str, Json] = {
        PID: trace.pid,
        STARTED: trace.started,
        LEFT: left,
        _UNTIL: until or platform.process_clock(),
    }
    return workspace.session_zone.note(path.partition("/")[0], GONE, path, "", detail)


def _read_gone(workspace: Workspace, path: str, trace: ClientTrace) -> tuple[list[Known], float]:
    """What was left of the client when it was gone, and when that was, 0 if no row says so."""
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
    """Return in a sentence what is ``left`` of a client."""
    if left is None:
        return texts("stop.unseen")
    named = {
        is_certain: ", ".join(f"{each.pid} ({each.name})" for each in left if each.is_certain is is_certain)
        for is_certain in (True, False)
    }
    told = [texts("stop.left", processes=named[True])] if named[True] else []
    told += [texts("stop.perhaps_left", processes=named[False])] if named[False] else []
    return "; ".join(told)
