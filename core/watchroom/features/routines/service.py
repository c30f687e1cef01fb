"""`Routines`: adds, runs and stops routines, and records their runs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from watchroom.errors import GitError, InvalidRoutine, UnknownRoutine
from watchroom.features.budgets.rules import Used, used_in
from watchroom.features.config.store import Store
from watchroom.features.people.service import PeopleReader
from watchroom.features.routines.rows import (
    ADD_ROUTINE,
    BEGIN_RUN,
    END_RUN,
    MAX_FIELD,
    MAX_PROMPT,
    MISS_RUN,
    ROUTINE_PREFIX,
    RUN_ROUTINE,
    STOP_ROUTINE,
    ZONE,
    Routine,
    RoutinePlan,
    RoutineRun,
    RunBegin,
    RunEnd,
    RunState,
    StopReason,
    read_begin,
    read_end,
    read_plan,
    read_reason,
)
from watchroom.features.routines.rules import MAX_DAYS, SECOND, Due, Trigger, is_valid
from watchroom.features.sessions.rows import presence_of
from watchroom.features.trees.git_process import run_git
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import get_count, get_int, get_text, session_status
from watchroom.model import ENDED, SYSTEM, Json, Note, Row
from watchroom.validation import escape_unstorable, extract_first_line

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_MAX_SUBJECT: Final = 200
_MAX_AMOUNT: Final = 1e12
_MAX_ROUTINES: Final = 100
"""Maximum number of active routines in a workspace."""
_MAX_SESSIONS: Final = 100
"""Maximum number of sessions that the row of a run's end names."""
_SESSIONS: Final = "session"
_FOLDER: Final = "cwd"
_READ_BYTES: Final = 1 << 20


class Routines:
    """The routines of a workspace. Thread-safe. ``people``: decides which rows of people count."""

    def __init__(self, store: Store, people: PeopleReader) -> None:
        self._store = store
        self._people = people

    # -- what people do

    def add(self, call: CallContext, name: str, prompt: str, plan: RoutinePlan) -> Routine:
        """Add the routine ``name``. A stopped or ended routine of this name is replaced. Raise
        `InvalidRoutine`, `JournalError`."""
        self._check(name, prompt, plan)
        journal = self._store.journal
        with journal.exclusive("routines"):
            known = {each.name: each for each in self.list() if each.is_active(journal.now())}
            if name in known or len(known) >= _MAX_ROUTINES:
                raise InvalidRoutine(name=name, rule="routine_taken" if name in known else "routine_many")
            title = extract_first_line(prompt, _MAX_SUBJECT)
            self._write(call.with_tool(ADD_ROUTINE), name, prompt, title, plan.detail)
        return self.find(name)

    def run_now(self, call: CallContext, name: str) -> Routine:
        """Ask for a run of ``name``. The service starts it at its next check. Raise `UnknownRoutine`,
        `InvalidRoutine`, `JournalError`."""
        routine = self.find(name)
        if not routine.is_active(self._store.journal.now()):
            raise InvalidRoutine(name=name, rule="routine_ended")
        if routine.is_running:
            raise InvalidRoutine(name=name, rule="routine_running")
        self._write(call.with_tool(RUN_ROUTINE), name, "", name, {})
        return self.find(name)

    def stop(self, call: CallContext, name: str, reason: StopReason = "person") -> Routine:
        """Stop the routine ``name`` and its open run. Nothing happens if it was already stopped. Raise
        `UnknownRoutine`, `JournalError`."""
        routine = self.find(name)
        if routine.stopped is None:
            self._write(call.with_tool(STOP_ROUTINE), name, "", name, {"reason": reason})
        return self.find(name)

    def _check(self, name: str, prompt: str, plan: RoutinePlan) -> None:
        """Raise `InvalidRoutine` if a value breaks a rule."""
        now, trigger = self._store.journal.now(), plan.trigger
        rules = {
            "routine_name": _NAME.fullmatch(name) is not None,
            "routine_prompt": prompt.strip() not in ("", "-") and len(prompt.encode()) <= MAX_PROMPT,
            "routine_field": max(map(len, (plan.client, plan.folder, trigger.target))) <= MAX_FIELD,
            "routine_folder": os.path.isabs(plan.folder),
            "routine_who": bool(plan.client) != bool(plan.model),
            "routine_budget": 0 < plan.budget <= plan.total <= _MAX_AMOUNT,
            "routine_until": now < plan.until <= now + MAX_DAYS * 86_400 * SECOND,
            "routine_timeout": 0 < plan.timeout <= 86_400,
            "routine_trigger": is_valid(trigger),
        }
        for rule, is_kept in rules.items():
            if not is_kept:
                raise InvalidRoutine(name=name, rule=rule)

    def _write(
        self, call: CallContext, name: str, content: str, message: str, detail: dict[str, Json]
    ) -> None:
        path = ROUTINE_PREFIX + name
        while True:
            head = self._store.journal.head(ZONE, path)
            version = (head.version or 0) if head is not None else 0
            draft = call.write(ZONE, path, content, message=message, expected=version, detail=detail)
            if self._store.write(draft).row.outcome == "ok":
                return

    # -- what is recorded about runs

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Claim the routine ``name`` while a run of it is open. See `Journal.claim`."""
        return self._store.journal.claim(_claim_key(name))

    def begin(self, routine: Routine, begin: RunBegin) -> RoutineRun:
        """Record that a run begins. Raise `JournalError`."""
        return RoutineRun(self._note(BEGIN_RUN, routine, dict(begin._asdict())), begin)

    def end(
        self,
        routine: Routine,
        run: RoutineRun,
        state: RunState,
        status: int = 0,
        seconds: float = 0.0,
        *,
        reason: str = "",
        seen: str | None = None,
    ) -> RunEnd:
        """Record the end and the usage of ``run``. For the other values see `RunEnd`. Raise `JournalError`.

        ``seen``: default the current state of the file or ref.
        """
        sessions, used = self.measure(run)
        seen = self.read_state(routine.plan) if seen is None else seen
        end = RunEnd(
            *(state, status, round(seconds, 3), used.cost, used.tokens, used.unpriced, sessions, seen),
            escape_unstorable(reason),
        )
        fields: dict[str, Json] = {**end._asdict(), "sessions": [*sessions], "run": run.begun.seq}
        self._note(END_RUN, routine, fields, "ok" if state == "done" else "failed")
        return end

    def miss(self, routine: Routine, due: Due) -> None:
        """Record that runs did not begin when they were due. Raise `JournalError`."""
        self._note(MISS_RUN, routine, {"count": due.missed, "slot": due.last_missed})

    def _note(self, tool: str, routine: Routine, detail: dict[str, Json], state: str = "") -> Row:
        path = ROUTINE_PREFIX + routine.name
        fields = {**detail, **({"ended": state} if state else {})}
        note = Note(SYSTEM, tool, ZONE, path, message=routine.added.message, detail=fields)
        return self._store.commits.commit(note).row

    def measure(self, run: RoutineRun) -> tuple[tuple[str, ...], Used]:
        """Return the sessions that began or continued in the run's folder since the run began, and their
        usage since then. Raise `JournalError`.

        A session that was open when the run began is not of the run, unless its process has ended.
        """
        journal, began = self._store.journal, run.begun.seq
        alive = {each.id for each in journal.presence.all() if each.is_alive}
        own: list[Row] = []
        earlier: list[Row] = []
        for head in journal.heads(_SESSIONS):
            if head.seq < began or not self._is_in_folder(head.path, run.begin.folder):
                continue
            before = journal.head(_SESSIONS, head.path, as_of=began)
            if before is not None:
                if session_status(before) not in ENDED and presence_of(before) in alive:
                    continue
                earlier.append(before)
            own.append(head)
        return tuple(each.path for each in own[:_MAX_SESSIONS]), used_in(own).minus(used_in(earlier))

    def _is_in_folder(self, path: str, folder: str) -> bool:
        """Return whether the session at ``path`` began in ``folder`` or for a task."""
        first = self._store.journal.version(_SESSIONS, path, 1)
        place = get_text(first.detail, _FOLDER) if first is not None else ""
        if not place:
            agent = self._store.registry.current().agents.get(path.partition("/")[0])
            return agent is not None and bool(agent.task)
        return f"{os.path.realpath(place)}/".startswith(f"{os.path.realpath(folder)}/")

    def read_state(self, plan: RoutinePlan) -> str:
        """Return the state of the file or ref that the plan's trigger watches: the file's checksum, or the
        ref's commit. Empty for other triggers, and if the file or ref cannot be read."""
        return read_state(plan.trigger, plan.folder)

    # -- reading

    def list(self) -> list[Routine]:
        """Return all routines by name, including ended ones. Raise `JournalError`."""
        return [*self._read_all()]

    def find(self, name: str) -> Routine:
        """Return the routine ``name``. Raise `UnknownRoutine`, `JournalError`."""
        routine = self._read(ROUTINE_PREFIX + name)
        if routine is None:
            known = ", ".join(each.name for each in self._read_all())
            raise UnknownRoutine(name=name, known=known or "-")
        return routine

    def _read_all(self) -> Iterator[Routine]:
        for head in self._store.journal.heads(ZONE, ROUTINE_PREFIX):
            routine = self._read(head.path)
            if routine is not None:
                yield routine

    def _read(self, path: str) -> Routine | None:
        """Return the routine at ``path``, from its newest addition that counts and the later rows. None if no
        addition counts.
        """
        journal = self._store.journal
        versions = [row for row in journal.history(ZONE, path) if self._people.counts(row)]
        added = next((row for row in reversed(versions) if row.tool == ADD_ROUTINE), None)
        if added is None:
            return None
        plan = read_plan(added)
        if not is_valid(plan.trigger) or plan.until > added.time + (MAX_DAYS + 1) * 86_400 * SECOND:
            # No tool has written this.
            return None
        stop = next((row for row in versions if row.tool == STOP_ROUTINE and row.seq > added.seq), None)
        runs = self._read_runs(path, added.seq)
        taken = max((run.begin.asked for run in runs), default=0)
        asked = max((row.version or 0 for row in versions if row.tool == RUN_ROUTINE), default=0)
        missed = journal.notes(ZONE, path, SYSTEM, MISS_RUN, after=added.seq)
        return Routine(
            path.removeprefix(ROUTINE_PREFIX),
            journal.content(added.seq) or "",
            plan,
            added,
            runs,
            sum(get_count(row.detail, "count") for row in missed),
            max((min(get_count(row.detail, "slot"), row.time) for row in missed), default=0),
            read_reason(stop) if stop is not None else None,
            asked if asked > max(taken, added.version or 0) else 0,
            journal.is_claimed(_claim_key(path.removeprefix(ROUTINE_PREFIX))),
        )

    def _read_runs(self, path: str, after: int) -> tuple[RoutineRun, ...]:
        journal = self._store.journal
        ends = {
            get_int(row.detail, "run"): read_end(row)
            for row in journal.notes(ZONE, path, SYSTEM, END_RUN, after=after)
        }
        begun = journal.notes(ZONE, path, SYSTEM, BEGIN_RUN, after=after)
        return tuple(RoutineRun(row, read_begin(row), ends.get(row.seq)) for row in reversed(begun))


def read_state(trigger: Trigger, folder: str) -> str:
    """Return the state of the file or ref that ``trigger`` watches. See `Routines.read_state`."""
    if trigger.kind == "ref":
        try:
            words = ("rev-parse", "--verify", "--quiet", "--end-of-options", trigger.target)
            return run_git(words, folder=folder, accepted=None).output.decode("ascii", "replace").strip()
        except (GitError, OSError):
            return ""
    if trigger.kind != "file":
        return ""
    digest = hashlib.sha256()
    try:
        with open(os.path.join(folder, trigger.target), "rb") as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


def _claim_key(name: str) -> str:
    return f"routine:{name}"
