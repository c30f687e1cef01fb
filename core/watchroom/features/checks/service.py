"""`Checks`: runs the checks of agents that say that they are done, and records how they end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.errors import JournalDenied, JournalError, WatchroomError
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.checks.rows import (
    CHECK_ZONE,
    PROMPT_MARK,
    CheckBegin,
    CheckEnd,
    DoneClaim,
    read_begin,
    read_end,
)
from watchroom.features.checks.rules import (
    AgentStanding,
    CheckSequel,
    CheckSettings,
    CheckState,
    applies,
    choose_sequel,
)
from watchroom.features.checks.summaries import clean_output, summarize
from watchroom.features.races.content import write_content
from watchroom.features.sessions.rows import client_call, presence_of
from watchroom.features.sessions.service import split_session
from watchroom.features.tasks.rows import FILE
from watchroom.features.trees.rows import REPO, candidates_of, split_repo_path
from watchroom.features.trees.trials import LINKED, run_trial
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import get_text, session_status
from watchroom.model import (
    BEGIN_CHECK,
    CANCEL,
    CLIENT_CALL,
    END_CHECK,
    ENDED,
    MESSAGE,
    OUTSIDE,
    PAUSE,
    PRESENCE,
    RESUME,
    SYSTEM,
    Row,
)
from watchroom.texts import catalogue
from watchroom.validation import escape_unstorable, extract_first_line

if TYPE_CHECKING:
    from watchroom.features.budgets.service import BudgetControl
    from watchroom.features.config.store import Store
    from watchroom.features.sessions.messages import Messages
    from watchroom.features.sessions.service import SessionRecords
    from watchroom.features.tasks.commands import Commands
    from watchroom.features.tasks.members import Members
    from watchroom.features.trees.git import GitTree
    from watchroom.features.trees.service import Trees

_SESSION: Final = "session"
_FOLDER: Final = "cwd"
_SUBJECT: Final = 200
_MAX_ENDS: Final = 1000
"""Maximum number of an agent's earlier results that are read."""
_MAX_AGENTS: Final = 1000
_PAGE: Final = 1000
_MAX_CHANGES: Final = 20_000
"""Maximum number of an agent's changes that are compared with patterns. With more, a check always applies."""
_MAX_STEPS: Final = 100
"""Maximum number of newest steps that are searched for the end of a client's turn."""
_MAX_AGE: Final = 24 * 3600 * 10**9
"""Maximum age in nanoseconds of a claim that is checked after a restart."""
_STEERING: Final = (PAUSE, RESUME, CANCEL)


class _Result(NamedTuple):
    """The end of a command. ``status``: None if it reached its time limit or was stopped."""

    state: CheckState
    status: int | None = None
    seconds: float = 0.0
    output: str = ""


class Checks:
    """Runs checks. May be used from any thread.

    - ``store``: the journal and the settings.
    - ``trees``, ``commands``: where checks run: copies of working trees, and sandboxes for folders of tasks.
    - ``sessions``, ``budgets``, ``members``: the state of agents.
    - ``messages``: delivers failures to them.
    """

    def __init__(
        self,
        store: Store,
        trees: Trees,
        commands: Callable[[], Commands],
        sessions: SessionRecords,
        messages: Messages,
        budgets: BudgetControl,
        members: Members,
    ) -> None:
        self._store = store
        self._trees = trees
        self._commands = commands
        self._sessions = sessions
        self._messages = messages
        self._budgets = budgets
        self._members = members

    def run(self, claim: DoneClaim, stopping: Event | None = None, *, cache: str = "") -> CheckEnd | None:
        """Run the checks that apply to ``claim``, until one does not pass. Return the end of the last check.

        A failure is sent back to the agent as a message from Watchroom, up to the configured number of
        attempts.

        - ``stopping``: when set, the command is ended. The check is run again later, see `recover`.
        - ``cache``: the folder for copies of trees, default the user's cache folder.

        None if no check applies, if another process runs one for this agent, and if the person of this
        journal may not record checks. Raise `JournalError`.
        """
        checks = self._store.registry.current().checks
        if not checks:
            return None
        stopping = stopping or Event()
        with self._store.journal.claim(_claim_key(claim.agent)) as is_mine:
            if not is_mine:
                return None
            last: CheckEnd | None = None
            for check in checks:
                if stopping.is_set() or not self._applies(check, claim):
                    continue
                try:
                    last = self._run_check(check, claim, stopping, cache)
                except JournalDenied:
                    # An agent's login on a server.
                    return None
                if last.state != "passed":
                    break
            return last

    def recover(self) -> list[DoneClaim]:
        """Record the end of checks whose processes have ended. Return the claims whose checks must be
        repeated, and the claims of the last day whose checks had not begun when the process ended.

        Raise `JournalError`.
        """
        journal = self._store.journal
        only = RowFilter(actor=SYSTEM, zone=CHECK_ZONE, tool=BEGIN_CHECK, outcome="ok")
        newest: dict[str, Row] = {}
        for row in journal.rows_before(journal.last_seq() + 1, limit=_MAX_AGENTS, only=only):
            newest.setdefault(row.path, row)
        unchecked = self._find_unchecked()
        found = (self._recover_agent(agent, begun) for agent, begun in newest.items())
        return [*(claim for claim in found if claim is not None), *unchecked]

    def _find_unchecked(self) -> list[DoneClaim]:
        """Return the newest claims of the agents whose processes have ended, if no check began after them."""
        journal, since = self._store.journal, self._store.journal.now() - _MAX_AGE
        alive = {each.id for each in journal.presence.all() if each.is_alive}
        newest: dict[str, Row] = {}
        for head in self._sessions.heads():
            agent, _ = split_session(head.path)
            if not is_subagent_step(head) and (agent not in newest or newest[agent].seq < head.seq):
                newest[agent] = head
        claims = []
        for agent, head in newest.items():
            is_lost = head.time > since and presence_of(head) not in alive
            step = self._find_claim(head) if is_lost else None
            begun = journal.last_note(CHECK_ZONE, agent, SYSTEM, BEGIN_CHECK)
            if step is not None and step.time > since and (begun is None or begun.seq < step.seq):
                claims.append(DoneClaim(agent, head.path, step.seq, wakes=False))
        return claims

    def _find_claim(self, head: Row) -> Row | None:
        """Return the step with which a client's turn ended normally, None if the session with the newest step
        ``head`` has continued since."""
        claim, before = None, ""
        after = max(0, (head.version or 0) - _MAX_STEPS)
        for step in self._store.journal.history(_SESSION, head.path, after_version=after):
            status = session_status(step)
            if status == "idle" and before in ("running", "waiting_for_human_input") and not step.message:
                claim = step
            elif status not in ("idle", "done"):
                claim = None
            before = status
        return claim

    def _recover_agent(self, agent: str, begun: Row) -> DoneClaim | None:
        with self._store.journal.claim(_claim_key(agent)) as is_mine:
            if not is_mine:
                return None
            begin = read_begin(begun)
            ended = self._store.journal.last_note(CHECK_ZONE, agent, SYSTEM, END_CHECK)
            end = read_end(ended) if ended is not None and ended.seq > begun.seq else None
            if end is None:
                sequel = choose_sequel("interrupted", "ended", 0, 0) if begin.is_again else "again"
                end = CheckEnd(begin.check, begun.seq, "interrupted", sequel=sequel)
                self._end(agent, end, "")
            if end.sequel != "again":
                return None
            head = self._sessions.newest(begin.session)
            if head is None or session_status(head) in ("running", "waiting_for_human_input"):
                # It went on. It is checked when it stops again.
                return None
            return DoneClaim(agent, begin.session, begin.claim, stays=False, is_again=True)

    # -- which checks apply

    def _applies(self, check: CheckSettings, claim: DoneClaim) -> bool:
        if not check.paths:
            return True
        passed = next((end for _, end in self._ends(claim.agent, check.name) if end.state == "passed"), None)
        changed = self._changed_paths(claim, passed.begun if passed is not None else 0)
        return changed is None or applies(check, changed)

    def _changed_paths(self, claim: DoneClaim, after: int) -> set[str] | None:
        """Return the files that the agent changed after row ``after``, relative to its folder. None if there
        are too many."""
        found: set[str] = set()
        tree = self._find_tree(claim.session)
        root = tree.folder if tree is not None else ""
        for count, row in enumerate(self._changes(claim.agent, after)):
            if count >= _MAX_CHANGES:
                return None
            call = client_call(row)
            if row.zone == REPO:
                found.add(split_repo_path(row.path)[1])
            elif row.zone == FILE:
                found.add(row.path.partition("/")[2])
            elif call is not None and call.is_edit:
                places = (os.path.join(call.folder, path) for path in call.paths)
                found.update(os.path.relpath(each, root) if root else each for each in places)
        return found

    def _changes(self, agent: str, after: int) -> Iterator[Row]:
        """Yield the versions of files after row ``after`` that ``agent`` has made or may have made, and its
        calls of a client's tools."""
        filters = [RowFilter(actor=agent, zone=zone, outcome="ok", after=after) for zone in (REPO, FILE)]
        filters.append(RowFilter(actor=agent, zone=_SESSION, tool=CLIENT_CALL, after=after))
        # Versions that were found while commands of several agents ran have no author.
        filters.append(RowFilter(actor=OUTSIDE, zone=REPO, outcome="ok", after=after))
        for only in filters:
            before = self._store.journal.last_seq() + 1
            while page := self._store.journal.rows_before(before, limit=_PAGE, only=only):
                found = (row for row in page if row.version is not None)
                yield from (row for row in found if row.actor == agent or agent in candidates_of(row))
                before = page[-1].seq

    def _ends(self, agent: str, name: str) -> list[tuple[Row, CheckEnd]]:
        """Return the results of the check ``name`` of ``agent``, newest first."""
        rows = self._store.journal.notes(CHECK_ZONE, agent, SYSTEM, END_CHECK, limit=_MAX_ENDS)
        return [(row, end) for row in rows if (end := read_end(row)).check == name]

    # -- a run

    def _run_check(self, check: CheckSettings, claim: DoneClaim, stopping: Event, cache: str) -> CheckEnd:
        begin = CheckBegin(check.name, check.command, claim.session, claim.row, claim.is_again)
        begun = self._begin(claim.agent, begin)
        try:
            result = self._execute(check, claim, stopping, cache)
        except JournalError:
            raise
        except (WatchroomError, OSError) as error:
            result = _Result("not_run", output=str(error))
        output = clean_output(result.output)
        found = summarize(output)
        end = CheckEnd(
            *(check.name, begun, result.state, result.status, result.seconds),
            *(found.failed, found.total, found.line),
        )
        if result.state == "interrupted":
            sequel: CheckSequel = "unproven" if claim.is_again else "again"
            if self._find_standing(claim) in ("busy", "held"):
                sequel = "superseded"
            return self._end(claim.agent, end._replace(sequel=sequel), output)
        sent = self._count_sent(check.name, claim)
        sequel = choose_sequel(result.state, self._find_standing(claim), sent, check.attempts)
        is_sent = sequel == "back"
        end = end._replace(sequel=sequel if claim.wakes or not is_sent else "unproven", sent=sent + is_sent)
        return self._end(claim.agent, end, output, check if is_sent else None)

    def _begin(self, agent: str, begin: CheckBegin) -> int:
        detail = {**begin.detail, PRESENCE: self._store.journal.presence.hold()}
        note = CallContext(SYSTEM, BEGIN_CHECK).note(CHECK_ZONE, agent, message=begin.check, detail=detail)
        return self._store.commits.commit(note).row.seq

    def _end(self, agent: str, end: CheckEnd, output: str, check: CheckSettings | None = None) -> CheckEnd:
        """Record ``end`` with its ``output``. ``check``: its settings if it is sent back to the agent."""
        subject = extract_first_line(f"{end.check}: {end.summary or end.state}", _SUBJECT)
        drafts = [
            CallContext(SYSTEM, END_CHECK).note(
                CHECK_ZONE, agent, message=subject, content=output or None, detail=end.detail
            )
        ]
        if check is not None:
            # In one append, so that a process that is killed here has not sent a result that is unknown.
            text = self._prompt_text(end, check, output)
            drafts.append(self._messages.draft(agent, text))
        self._store.commits.commit_all(drafts)
        return end

    def _prompt_text(self, end: CheckEnd, check: CheckSettings, output: str) -> str:
        texts = catalogue(self._store.registry.current().language)
        state = "timed_out" if end.state == "timed_out" else "failed"
        return texts(
            f"check.{state}",
            mark=f"{PROMPT_MARK}{check.name}]",
            summary=end.summary or "-",
            seconds=f"{check.time_limit:g}",
            command=escape_unstorable(check.command),
            number=end.sent,
            attempts=check.attempts,
            output=output or "-",
        )

    def _execute(self, check: CheckSettings, claim: DoneClaim, stopping: Event, cache: str) -> _Result:
        """Run the command of ``check``. Raise `GitError`, `NoSandbox`, OSError, and as `Commands.check`."""
        tree = self._find_tree(claim.session)
        if tree is not None:
            done = run_trial(
                tree,
                write_content(tree),
                ("/bin/sh", "-c", check.command),
                claim=partial(self._claim_copy, tree.tree_id()),
                linked=LINKED,
                timeout=check.time_limit,
                cache=cache,
                stopping=stopping,
            )
            return _judge(done.status, done.seconds, done.output, stopping)
        agents = self._store.registry.current().agents
        task = agents[claim.agent].task if claim.agent in agents else ""
        if not task:
            texts = catalogue(self._store.registry.current().language)
            return _Result("not_run", output=texts("check.no_folder"))
        ran = self._commands().check(task, check.command, check.time_limit, stopping)
        status = None if ran.timed_out or ran.stopped else ran.exit_code
        return _judge(status, ran.seconds, f"{ran.stdout}\n{ran.stderr}", stopping)

    def _claim_copy(self, tree: str, slot: int) -> AbstractContextManager[bool]:
        return self._store.journal.claim(f"trial:{tree}:{slot}")

    def _find_tree(self, session: str) -> GitTree | None:
        """Return the working tree in which the session began, None if it began in none."""
        begun = self._store.journal.version(_SESSION, session, 1)
        folder = get_text(begun.detail, _FOLDER) if begun is not None else ""
        found = self._trees.tree_at(folder) if folder and os.path.isdir(folder) else None
        return found.git if found is not None else None

    # -- what the agent does now

    def _find_standing(self, claim: DoneClaim) -> AgentStanding:
        head = self._sessions.newest(claim.session)
        if head is None:
            return "ended"
        status = session_status(head)
        if self._members.has_ended(claim.agent) or status == "cancelled" or self._is_steered(claim):
            return "held"
        if status in ("paused", "waiting_for_human_input"):
            return "held"
        if status == "running":
            return "busy"
        if status in ENDED and not claim.stays:
            return "ended"
        uses = self._budgets.check(claim.agent, claim.session)
        return "held" if any(use.is_reached for use in uses) else "idle"

    def _is_steered(self, claim: DoneClaim) -> bool:
        """Return whether a person has paused the agent, or cancelled it since it was done."""
        begun = self._store.journal.version(_SESSION, claim.session, 1)
        records = self._sessions.controls(claim.session, begun.seq if begun is not None else 0)
        newest = next((each.row for each in reversed(records) if each.row.tool in _STEERING), None)
        if newest is None:
            return False
        return newest.tool == PAUSE or (newest.tool == CANCEL and newest.seq > claim.row)

    def _count_sent(self, name: str, claim: DoneClaim) -> int:
        """Return how often a failure of the check ``name`` was sent back since it last passed, or since a
        person last said something to the agent."""
        said = self._sessions.controls(claim.session, 0)
        spoken = [each.row.seq for each in said if each.row.tool == MESSAGE and each.row.kind == "human"]
        since = max(claim.prompted, *spoken, 0)
        count = 0
        for row, end in self._ends(claim.agent, name):
            if row.seq <= since or end.state == "passed":
                break
            count = max(count, end.sent)
        return count


def _judge(status: int | None, seconds: float, output: str, stopping: Event) -> _Result:
    if status is not None:
        return _Result("passed" if status == 0 else "failed", status, seconds, output)
    return _Result("interrupted" if stopping.is_set() else "timed_out", None, seconds, output)


def _claim_key(agent: str) -> str:
    """Return the key that the process which runs the checks of ``agent`` has claimed."""
    return f"check/{agent}"
