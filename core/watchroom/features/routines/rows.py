"""The rows of routines, and what their details mean.

A routine is a path in the zone ``workspace``. People write its versions: they add, run and stop it. Watchroom
writes a note about each start and end of a run, and about missed runs.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.people.rules import ADD_ROUTINE, ROUTINE_PREFIX, RUN_ROUTINE, STOP_ROUTINE
from watchroom.features.routines.rules import Trigger, TriggerKind
from watchroom.kernel.rules.details import get_count, get_float, get_int, get_text
from watchroom.model import Json, Row, Zone

__all__ = ["ADD_ROUTINE", "ROUTINE_PREFIX", "RUN_ROUTINE", "STOP_ROUTINE"]
ZONE: Final[Zone] = "workspace"
BEGIN_RUN: Final = "begin_routine_run"
"""The tool of the note that a run begins. See `RunBegin`."""
END_RUN: Final = "end_routine_run"
"""The tool of the note that a run has ended. See `RunEnd`."""
MISS_RUN: Final = "miss_routine_run"
"""The tool of the note that runs did not begin when they were due."""
MAX_PROMPT: Final = 100_000
"""Maximum bytes of a prompt. Linux takes no argument of 128 KiB."""
MAX_FIELD: Final = 10_000
"""Maximum characters of a client with its arguments, and of a folder."""
Measure: TypeAlias = Literal["cost", "tokens"]
"""The measure of a routine's budget: US dollars, or tokens without cached tokens."""
RunState: TypeAlias = Literal["running", "done", "failed", "timeout", "budget", "stopped", "interrupted"]
"""The state of a run.

- ``done``: it ended with exit status 0. ``failed``: it ended with another status, or could not start.
- ``timeout``, ``budget``: it was ended at its timeout, or when its budget was used up.
- ``stopped``: a person stopped the routine.
- ``interrupted``: the service ended.
"""
StopReason: TypeAlias = Literal["person", "budget", "unpriced"]
"""Why a routine was stopped: by a person, because its budget is used up, or because the cost of a run is
unknown."""
_STATES: Final[tuple[RunState, ...]] = get_args(RunState)
_REASONS: Final[tuple[StopReason, ...]] = get_args(StopReason)
_TRIGGERS: Final[tuple[TriggerKind, ...]] = get_args(TriggerKind)


class RoutinePlan(NamedTuple):
    """The settings of a routine.

    - ``client``: the client with its own arguments; empty for a team of agents with ``model``.
    - ``folder``: the folder in which it works.
    - ``tree``: whether it works in a working tree of its own, which all runs share.
    - ``measure``: the measure of both budgets. ``budget``: for each run. ``total``: for all runs together.
    - ``until``: when it ends, in nanoseconds since the epoch.
    - ``timeout``: seconds for each run.
    - ``model``, ``base_url``: the model of a team.
    - ``seen``: the state of the file or ref when the routine was added (`service.read_state`).
    """

    client: str
    folder: str
    tree: bool
    trigger: Trigger
    measure: Measure
    budget: float
    total: float
    until: int
    timeout: float
    model: str = ""
    base_url: str = ""
    seen: str = ""

    @property
    def detail(self) -> dict[str, Json]:
        """The plan as a row's detail has it."""
        return {**self._asdict(), "trigger": self.trigger._asdict()}


def read_plan(row: Row) -> RoutinePlan:
    """Return the plan of ``row``, a version with the tool `ADD_ROUTINE`."""
    detail = row.detail
    given = detail.get("trigger")
    fields = given if isinstance(given, dict) else {}
    kind: TriggerKind = next((each for each in _TRIGGERS if each == fields.get("kind")), "every")
    texts = (get_text(fields, name) for name in ("at", "zone", "target"))
    trigger = Trigger(kind, get_count(fields, "seconds"), *texts)
    return RoutinePlan(
        get_text(detail, "client"),
        get_text(detail, "folder"),
        detail.get("tree") is True,
        trigger,
        "tokens" if detail.get("measure") == "tokens" else "cost",
        get_float(detail, "budget"),
        get_float(detail, "total"),
        get_int(detail, "until") or 0,
        get_float(detail, "timeout"),
        *(get_text(detail, name) for name in ("model", "base_url", "seen")),
    )


class RunBegin(NamedTuple):
    """The start of a run.

    - ``slot``: when it was due, in nanoseconds since the epoch.
    - ``folder``: the folder in which it works. The run's sessions are found by this folder.
    - ``seen``: the state of the file or ref that the run works on.
    - ``asked``: the routine's version in which a person asked for the run; 0 if the run was due.
    """

    slot: int
    folder: str
    seen: str = ""
    asked: int = 0


class RunEnd(NamedTuple):
    """The end of a run.

    - ``status``: the exit status of its process.
    - ``seconds``: how long it ran.
    - ``cost``, ``tokens``, ``unpriced``: the usage of its sessions. See
      `watchroom.features.budgets.rules.Used`.
    - ``sessions``: the paths of its sessions.
    - ``seen``: the state of the file or ref at its end; at its start if the service was killed.
    - ``reason``: the error with which it could not start, else empty.
    """

    state: RunState
    status: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    sessions: tuple[str, ...] = ()
    seen: str = ""
    reason: str = ""

    def amount(self, measure: Measure) -> float:
        """Return the amount that the run used, in ``measure``."""
        return self.cost if measure == "cost" else float(self.tokens)


def read_begin(row: Row) -> RunBegin:
    """Return the record of ``row``, a note with the tool `BEGIN_RUN`."""
    detail = row.detail
    folder, seen = get_text(detail, "folder"), get_text(detail, "seen")
    slot = min(get_count(detail, "slot"), row.time) or row.time
    return RunBegin(slot, folder, seen, get_count(detail, "asked"))


def read_end(row: Row) -> RunEnd:
    """Return the record of ``row``, a note with the tool `END_RUN`."""
    detail = row.detail
    given = detail.get("sessions")
    sessions = tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
    return RunEnd(
        next((each for each in _STATES if each == detail.get("state")), "failed"),
        get_count(detail, "status"),
        get_float(detail, "seconds"),
        get_float(detail, "cost"),
        get_count(detail, "tokens"),
        get_count(detail, "unpriced"),
        sessions,
        get_text(detail, "seen"),
        get_text(detail, "reason"),
    )


def read_reason(row: Row) -> StopReason:
    """Return why the version ``row`` with the tool `STOP_ROUTINE` stopped its routine."""
    return next((each for each in _REASONS if each == row.detail.get("reason")), "person")


class RoutineRun(NamedTuple):
    """A run. ``begun``: the row of its start. ``end``: None if it has not ended."""

    begun: Row
    begin: RunBegin
    end: RunEnd | None = None

    @property
    def state(self) -> RunState:
        """The state of the run. A run without an end may also be interrupted: see `Routine.is_running`."""
        return self.end.state if self.end is not None else "running"


class Routine(NamedTuple):
    """A routine.

    - ``name``: its name.
    - ``prompt``: the prompt of each run.
    - ``added``: the version that added it.
    - ``runs``: its runs, the oldest first.
    - ``missed``: the number of missed runs. ``last_missed``: the due time of the newest missed run.
    - ``stopped``: why it was stopped; None if it was not.
    - ``asked``: the version in which a person asked for a run that has not begun; 0 for none.
    - ``is_running``: whether a process runs it now.
    """

    name: str
    prompt: str
    plan: RoutinePlan
    added: Row
    runs: tuple[RoutineRun, ...] = ()
    missed: int = 0
    last_missed: int = 0
    stopped: StopReason | None = None
    asked: int = 0
    is_running: bool = False

    @property
    def last(self) -> RoutineRun | None:
        """The newest run, None before the first run."""
        return self.runs[-1] if self.runs else None

    @property
    def last_state(self) -> RunState | None:
        """The state of the newest run, None before the first run."""
        run = self.last
        if run is None:
            return None
        return "interrupted" if run.end is None and not self.is_running else run.state

    @property
    def spent(self) -> float:
        """The usage of all ended runs, in the measure of the budget."""
        return sum(run.end.amount(self.plan.measure) for run in self.runs if run.end is not None)

    @property
    def handled(self) -> int:
        """The newest due time whose run began or was missed. If there is none, the time at which the routine
        was added."""
        begun = max((run.begin.slot for run in self.runs), default=0)
        return max(begun, self.last_missed, self.added.time)

    def is_active(self, now: int) -> bool:
        """Return whether it can run at ``now`` or later."""
        return self.stopped is None and now < self.plan.until
