"""Starts the runs of routines in a workspace that the service serves, and ends them."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.agents.clients import client_program
from watchroom.agents.clients.kept_client import LOOK_SECONDS, KeptClient
from watchroom.agents.clients.routine_places import RoutinePlaces
from watchroom.errors import WatchroomError
from watchroom.features.routines.rows import Routine, RoutinePlan, RoutineRun, RunBegin, RunState, StopReason
from watchroom.features.routines.rules import Due, find_due, is_too_early
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.model import SYSTEM

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

CHECK_SECONDS: Final = 5.0
"""Seconds between two checks for due runs, and between two measurements of an open run. A file or ref that
changed must then stay unchanged for this long before a run starts."""
_FOLDER: Final = "routines"
_CLOSE_SECONDS: Final = 10.0
_ASK_SECONDS: Final = 2.0
"""Timeout for the status of the service, in seconds."""
_log = logging.getLogger("watchroom")


def log_path(root: str, name: str) -> str:
    """Return the path of the log of the newest run of ``name``, in the workspace at ``root``."""
    return os.path.join(root, CONTROL, _FOLDER, f"{name}.log")


def is_served(root: str) -> bool:
    """Return whether the service keeps the workspace at ``root`` open, so that its routines run."""
    try:
        status = json.loads(client_program.ask("GET", "/status", seconds=_ASK_SECONDS))
    except (OSError, ValueError):
        return False
    return any(each["root"] == os.path.realpath(root) for each in status["workspaces"])


class RoutineRunner:
    """Runs the routines of ``workspace``, each in a thread while its run is open.

    - ``program``: the command line that starts Watchroom.
    - ``places``: remembers the workspace while it has an active routine. None: it is not remembered.
    """

    def __init__(
        self, workspace: Workspace, program: Sequence[str], places: RoutinePlaces | None = None
    ) -> None:
        self._workspace = workspace
        self._places = places
        self._was_kept: bool | None = None
        self._program = tuple(program)
        self._threads: dict[str, Thread] = {}
        self._watched: dict[str, _WatchedState] = {}
        self._closing = Event()
        self.is_active = False
        """Whether a routine can run, now or later."""

    def start(self) -> None:
        """Check for due runs every `CHECK_SECONDS`, until `close`."""
        self._workspace.background.repeat("routines", CHECK_SECONDS, lambda closing: self.look())

    def look(self) -> None:
        """Begin the runs that are due, and record which were missed or interrupted. Raise `JournalError`."""
        if self._closing.is_set():
            return
        routines = self._workspace.routines
        now, found = self._workspace.journal.now(), routines.list()
        self._threads = {name: each for name, each in self._threads.items() if each.is_alive()}
        is_planned = any(each.is_active(now) for each in found)
        self.is_active = bool(self._threads) or is_planned
        self._remember(is_planned)
        for routine in found:
            if not routine.is_running and routine.name not in self._threads and self._has_work(routine, now):
                thread = Thread(
                    target=self._work, args=(routine.name,), name="watchroom-routine", daemon=True
                )
                self._threads[routine.name] = thread
                thread.start()

    def _remember(self, is_planned: bool) -> None:
        """Record whether the workspace has an active routine, so that the next service opens it."""
        if self._places is None or is_planned == self._was_kept:
            return
        self._was_kept = is_planned
        try:
            (self._places.keep if is_planned else self._places.forget)(self._workspace.root)
        except OSError as error:
            _log.warning("the next service does not know of %s: %s", self._workspace.root, error)

    def close(self) -> None:
        """End the open runs. They are interrupted."""
        self._closing.set()
        for thread in self._threads.values():
            thread.join(_CLOSE_SECONDS)

    def wait(self) -> None:
        """Wait until no run is open."""
        for thread in [*self._threads.values()]:
            thread.join()

    # -- what is due

    def _has_work(self, routine: Routine, now: int) -> bool:
        if routine.last is not None and routine.last.end is None:
            return True
        return routine.is_active(now) and (
            self._due(routine, now) != Due() or bool(routine.asked) or self._has_changed(routine, now)
        )

    def _due(self, routine: Routine, now: int) -> Due:
        trigger = routine.plan.trigger
        if not trigger.is_timed:
            return Due()
        return find_due(trigger, routine.added.time, routine.handled, now)

    def _has_changed(self, routine: Routine, now: int) -> bool:
        """Return whether the file or ref differs from its state at the newest run, and has not changed since
        the last check."""
        plan, last = routine.plan, routine.last
        if plan.trigger.is_timed:
            return False
        known = self._watched.get(routine.name)
        stamp = _stamp_of(plan)
        if known is None or stamp is None or known.stamp != stamp:
            state = self._workspace.routines.read_state(plan)
        else:
            state = known.state
        self._watched[routine.name] = _WatchedState(stamp, state)
        seen = plan.seen
        if last is not None:
            seen = last.end.seen if last.end is not None else last.begin.seen
        is_settled = known is not None and known.state == state
        return state != seen and is_settled and not is_too_early(last.begun.time if last else 0, now)

    # -- a run

    def _work(self, name: str) -> None:
        """Run the routine if a run is still due. Only one process runs it."""
        routines = self._workspace.routines
        try:
            with routines.claim(name) as is_mine:
                if is_mine:
                    self._begin(routines.find(name))
        except (WatchroomError, OSError):
            _log.exception("the routine %s failed", name)

    def _begin(self, routine: Routine) -> None:
        """Begin a run of ``routine``, which was read after this process claimed it."""
        routines, now = self._workspace.routines, self._workspace.journal.now()
        if routine.last is not None and routine.last.end is None:
            # The process that ran it was killed. Whether the file or ref has changed in the run or after it
            # is unknown, so a change starts a run.
            routines.end(routine, routine.last, "interrupted", seen=routine.last.begin.seen)
            self._stop_if_used(routines.find(routine.name))
            return
        if not routine.is_active(now):
            return
        due = self._due(routine, now)
        if due.missed:
            routines.miss(routine, due)
        if not (due.slot or routine.asked or self._has_changed(routine, now)):
            return
        slot = due.slot or (now if routine.asked else routine.handled)
        begin = RunBegin(slot, routine.plan.folder, routines.read_state(routine.plan), routine.asked)
        try:
            start = self._prepare(routine)
        except (WatchroomError, OSError) as error:
            self._end_unstarted(routine, routines.begin(routine, begin), error)
            return
        run = routines.begin(routine, begin._replace(folder=start.folder))
        log = log_path(self._workspace.root, routine.name)
        try:
            client = KeptClient(self._workspace.platform, log, start.command, start.environment, start.folder)
        except OSError as error:
            # The folder may have been removed since the routine was added.
            self._end_unstarted(routine, run, error)
            return
        self._attend(routine, run, client)
        self._stop_if_used(routines.find(routine.name))

    def _end_unstarted(self, routine: Routine, run: RoutineRun, error: Exception) -> None:
        """Record that the client of ``run`` could not start because of ``error``. Raise `JournalError`."""
        _log.warning("the routine %s could not start", routine.name, exc_info=error)
        self._workspace.routines.end(routine, run, "failed", reason=str(error))

    def _prepare(self, routine: Routine) -> _Start:
        """Return the start of a run. Add a missing working tree. Raise `WatchroomError`, OSError."""
        plan, root = routine.plan, self._workspace.root
        environment = {**os.environ, "PWD": plan.folder}
        if plan.model:
            words = ["task", "--workspace", plan.folder, "--team", root, "--model", plan.model, "--headless"]
            words += ["--base-url", plan.base_url] if plan.base_url else []
            return _Start((*self._program, *words, "--", routine.prompt), environment, plan.folder)
        folder = plan.folder
        if plan.tree:
            call = CallContext(routine.added.actor)
            tree = self._workspace.own_trees.enter(call, f"routine-{routine.name}", plan.folder).tree
            folder = tree.folder
            environment |= {**tree.variables, "PWD": folder}
        words = ["routine", "start", routine.name, "--dir", root]
        return _Start((*self._program, *words), environment, folder)

    def _attend(self, routine: Routine, run: RoutineRun, client: KeptClient) -> None:
        """Wait until the client ends or must end, and record its end."""
        checked = began = time.monotonic()
        cause = None
        try:
            while (status := client.poll()) is None:
                if cause is None and (self._closing.is_set() or time.monotonic() - checked > CHECK_SECONDS):
                    checked = time.monotonic()
                    cause = self._find_cause(routine, run, checked - began)
                    if cause is not None:
                        client.stop()
                self._closing.wait(LOOK_SECONDS) if cause is None else time.sleep(LOOK_SECONDS)
        finally:
            # If its use cannot be measured, the client must not go on.
            if client.stop():
                client.wait()
            client.close()
        state: RunState = cause or ("done" if status == 0 else "failed")
        self._workspace.routines.end(routine, run, state, abs(status), time.monotonic() - began)

    def _find_cause(self, routine: Routine, run: RoutineRun, seconds: float) -> RunState | None:
        """Return why an open run must end, None if it can continue. Raise `JournalError`."""
        if self._closing.is_set():
            return "interrupted"
        routines, plan = self._workspace.routines, routine.plan
        if routines.find(routine.name).stopped is not None:
            return "stopped"
        if seconds > plan.timeout:
            return "timeout"
        used = routines.measure(run)[1]
        most = min(plan.budget, plan.total - routine.spent)
        is_unknown = plan.measure == "cost" and used.unpriced > 0
        return "budget" if is_unknown or used.of(plan.measure) >= most else None

    def _stop_if_used(self, routine: Routine) -> None:
        """Stop a routine that has used up its budget, or whose cost is unknown. Raise `JournalError`."""
        end = routine.last.end if routine.last is not None else None
        reason: StopReason | None = None
        if end is not None and routine.plan.measure == "cost" and end.unpriced:
            reason = "unpriced"
        elif routine.spent >= routine.plan.total:
            reason = "budget"
        if reason is not None:
            self._workspace.routines.stop(CallContext(SYSTEM), routine.name, reason)


class _Start(NamedTuple):
    """The start of a run: its command line, its environment, and its folder."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str


class _WatchedState(NamedTuple):
    """The result of the last check: the file's size and times (None for a ref), and the state."""

    stamp: tuple[int, ...] | None
    state: str


def _stamp_of(plan: RoutinePlan) -> tuple[int, ...] | None:
    """Return the size and times of the file of ``plan``. None for a ref, or if there is no file."""
    if plan.trigger.kind != "file":
        return None
    try:
        found = os.stat(os.path.join(plan.folder, plan.trigger.target))
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
