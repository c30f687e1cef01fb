"""`Commands`: the commands that agents run in the folders of their tasks (TASKS).

A command has two rows, one when it begins and one when it ends. Its output becomes notes while it runs. Each
file that it changed becomes a version by its agent.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Condition, Event, Lock, Timer
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from watchroom import validation
from watchroom.errors import (
    AgentEnded,
    CommandBlocked,
    CommandInterrupted,
    CommandNotStarted,
    CommandRejected,
    CommandStopped,
    CommandUnanswered,
    DiskFailed,
    DraftRefused,
    JournalError,
    NoSandbox,
    RepositoryRefused,
    TaskQuotaExceeded,
    WatchroomError,
    WorkspaceNotBound,
)
from watchroom.features.budgets.service import BudgetControl
from watchroom.features.config.store import Store
from watchroom.features.requests.rows import (
    CLOCK_SECONDS,
    Answer,
    PendingCall,
    Request,
    has_expired,
    parse_arguments,
)
from watchroom.features.requests.service import Requests
from watchroom.features.sessions.rules import task_address
from watchroom.features.tasks.files import OUTSIDERS, ChangeAuthor, RecordedChanges, TaskFiles
from watchroom.features.tasks.members import Members
from watchroom.features.tasks.rows import COMMAND, END, FILE, RUN, UNRECORDED
from watchroom.kernel.call_context import CallContext
from watchroom.model import PRESENCE, PRINTED, SYSTEM, Json, Row, Write, parse_object
from watchroom.platform.sandbox.backend import NetworkAccess, ProxySocket, SandboxBackend
from watchroom.platform.sandbox.blocklist import find_blocked_keyword
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.repositories import (
    GIT_FOLDER,
    find_repositories_at,
    quarantine_new_repositories,
)
from watchroom.platform.sandbox.runner import CommandResult, OnOutput, Stream, run_command
from watchroom.platform.sandbox.supervised import UnsandboxedBackend
from watchroom.texts import Catalogue, catalogue

_ANSWER_SECONDS: Final = 600.0
"""Timeout for a person's approval."""
_MAX_PATHS: Final = 100
_MAX_PATH_CHARACTERS: Final = 20_000
"""Maximum number of characters of all changed paths in a result together."""
_MAX_KNOWN_REPOSITORIES: Final = 1000
"""Maximum number of existing repositories that a command's first row lists; with more, it lists none. After a
crash, the list shows which repositories the command created."""
_SHORT_FILE_BYTES: Final = 8192
"""Maximum size in bytes of a file that a command can write once the quota is used up. It is not 0, because
the sandbox itself needs to write small files."""
_MIN_RECORDING_SECONDS: Final = 1.0
"""Minimum seconds for recording changes, even if the command used up its own time."""
_CHECK_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes of each output stream of a check. The end of its output says how it ended."""
_OUTPUT_SECONDS: Final = 0.1
"""Minimum seconds between two rows of output."""
_REFUSED_JOB: Final = "last rows of commands"
_RETRY_SECONDS: Final = 5.0
"""Seconds until a refused last row is written again."""
_log = logging.getLogger("watchroom")


class CommandChanges(NamedTuple):
    """The changes that a command made in its folder.

    - ``changed``: the paths of files that it created, changed or removed, up to a limit.
    - ``more_changed``: the number of paths above the limit.
    - ``pending``: the number of changes that the next call records.
    - ``left_out``: the number of files and folders that cannot be named or read.
    - ``quarantined``: the git repositories that it created, which were moved away.
    - ``over_quota``: the values of `TaskQuotaExceeded`, empty if the folder is within its quota.
    """

    changed: tuple[str, ...] = ()
    more_changed: int = 0
    pending: int = 0
    left_out: int = 0
    quarantined: tuple[str, ...] = ()
    over_quota: Mapping[str, int] = MappingProxyType({})


class CommandOutcome(NamedTuple):
    """The result of a command, and its changes."""

    result: CommandResult
    changes: CommandChanges


class _StopSignal(NamedTuple):
    """Stops a command.

    - ``event``: set when the command must end.
    - ``wakeup``: ends the wait for a person's answer. The answer also sets it.
    """

    event: Event
    wakeup: Event

    def set(self) -> None:
        """Stop the command."""
        self.event.set()
        self.wakeup.set()


class _StartedCommand(NamedTuple):
    """A command whose first row is at ``path``. ``repositories``: the identities of the repositories that
    existed before it."""

    call: CallContext
    path: str
    message: str
    folder: str
    repositories: Collection[str]

    @classmethod
    def from_row(cls, row: Row, folder: str) -> _StartedCommand:
        known = cast("Sequence[str]", row.detail.get("repositories", ()))
        return cls(CallContext(row.actor), row.path, row.message, folder, known)

    @property
    def task(self) -> str:
        return self.path.partition("/")[0]

    def author(self, **detail: Json) -> ChangeAuthor:
        return ChangeAuthor(self.call.with_tool(RUN), self.message, {"command": self.path, **detail})


class _Execution(NamedTuple):
    """The result of a command.

    - ``concurrent``: the paths of the commands that ran in the same folder at the same time.
    - ``network``: the hosts that the command reached and those that were refused, for the detail of its last
      row.
    """

    result: CommandResult
    concurrent: set[str]
    network: dict[str, Json]


class Commands:
    """The commands that agents run in the folders of their tasks. May be used from any thread.

    - ``files``: records the changes that commands make.
    - ``requests``: asks people for their approval if no sandbox works.
    - ``budgets``: knows whether a person has stopped an agent at a budget.
    - ``members``: knows whether an agent has ended.
    - ``wait_until_resumed``: waits while an agent is paused, until a deadline or an event.
    - ``quarantine``: the folder for repositories that commands created.
    - ``sandbox``: the kinds of sandbox to choose from, default: those of this machine.
    """

    def __init__(
        self,
        store: Store,
        files: TaskFiles,
        requests: Requests,
        budgets: BudgetControl,
        members: Members,
        wait_until_resumed: Callable[[str, float, Event], None],
        quarantine: str,
        sandbox: SandboxProbe | None = None,
    ) -> None:
        self._store = store
        self._files = files
        self._requests = requests
        self._budgets = budgets
        self._members = members
        self._wait_until_resumed = wait_until_resumed
        self._quarantine = quarantine
        self._sandbox = sandbox
        self._lock = Lock()
        self._stopped = Condition(self._lock)
        self._signals: dict[str, list[_StopSignal]] = {}
        """The running commands of each agent."""
        self._concurrent: dict[str, set[str]] = {}
        """For each running command, the commands that ran in the same folder at the same time."""
        self._recovered: set[str] = set()
        """The tasks whose interrupted commands have received their last rows."""
        self._refused: dict[str, Write] = {}
        """The last rows that the journal refused, by the path of their command."""

    @property
    def sandbox(self) -> SandboxProbe:
        """The kinds of sandbox of this machine, tested on first use."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = SandboxProbe.run()
            return self._sandbox

    def run(self, call: CallContext, command: str, limits: ResourceLimits) -> CommandOutcome:
        """Run ``command`` in the folder of the caller's task, until it ends, its timeout has passed, or the
        caller ends.

        ``limits``: the limits of this command.

        Raise `WorkspaceNotBound`, `CommandBlocked`, `AgentEnded`, `TaskQuotaExceeded`, `NoSandbox`, and the
        errors of `run_command`. If a person must be asked, also raise `TooManyRequests`, `CommandRejected`,
        `CommandUnanswered`, `CommandStopped`, `AgentPaused` and `BudgetReached`.
        """
        actor = call.actor
        folder = self._files.agent_folder(call)
        _check_keywords(command)
        backend = self.sandbox.best
        with self._stoppable(actor) as stop, self._stopped_with(call, stop):
            # From here, a row that ends the agent also stops the command.
            if self._members.has_ended(actor):
                raise AgentEnded(agent=actor)
            if backend is None:
                backend = self._unsandboxed_backend()
                command = self._request_approval(call, command, folder, stop)
                _check_keywords(command)
                # The config may have changed while a person was asked.
                call = replace(call, caller=None)
                if self._files.agent_folder(call) != folder:
                    # The approval was for another folder.
                    raise WorkspaceNotBound(agent=actor)
            return self._run(call, command, folder, backend, limits, stop.event)

    def check(self, task: str, command: str, seconds: float, stop: Event) -> CommandResult:
        """Run ``command`` of a person in a sandbox in the folder of ``task``, until it ends, for ``seconds``,
        or until ``stop`` is set. Only the files that it changed are recorded, as external edits.

        Raise `TaskNotFound`, `WorkspaceNotBound`, `NoSandbox`, and the errors of `run_command`.
        """
        folder, backend = self._files.task_folder(task), self.sandbox.best
        if not folder:
            raise WorkspaceNotBound(agent=task)
        if backend is None:
            raise NoSandbox
        self._end_interrupted(task, folder)
        config, network = self._store.registry.current(), dict[str, Json]()
        limits = ResourceLimits(seconds=seconds, output_bytes=_CHECK_OUTPUT_BYTES)
        try:
            with _network(backend, config.allowed_hosts, catalogue(config.language), network) as access:
                return run_command(command, folder, backend=backend, limits=limits, network=access, stop=stop)
        finally:
            self._files.record_task_changes(task, OUTSIDERS)

    def stop(self, agent: str) -> int:
        """Stop the commands of ``agent`` in this process, with all their child processes. Return their number
        without waiting for their end."""
        with self._lock:
            signals = tuple(self._signals.get(agent, ()))
        for signal in signals:
            signal.set()
        return len(signals)

    def close(self) -> None:
        """Stop all commands, and wait until each one has its last row."""
        with self._stopped:
            for signals in self._signals.values():
                for signal in signals:
                    signal.set()
            self._stopped.wait_for(lambda: not any(self._signals.values()))

    def outcome(self, start: Row) -> CommandOutcome:
        """Return the outcome of the command with the first row ``start``.

        Raise `CommandInterrupted` if it was cut off or has not ended, and `CommandNotStarted` if it never
        ran.
        """
        task = start.path.partition("/")[0]
        self._end_interrupted(task, self._files.task_folder(task))
        end = self._store.journal.version(COMMAND, start.path, 2)
        content = json.loads(self._store.content(end)) if end else {}
        if end is None or "interrupted" in content:
            raise CommandInterrupted
        if "exitCode" not in content:
            raise CommandNotStarted(reason=content.get("message", ""))
        result = CommandResult(
            stdout=content["stdout"],
            stderr=content["stderr"],
            exit_code=content["exitCode"],
            timed_out=content["timedOut"],
            stopped=content["stopped"],
            seconds=content["seconds"],
            truncated=content["cut"],
        )
        return CommandOutcome(result, CommandChanges(**content.get("left", {})))

    @contextmanager
    def _stoppable(self, agent: str) -> Iterator[_StopSignal]:
        """Let `stop` and `close` find a command of ``agent``. Yield the signal that stops it."""
        signal = _StopSignal(Event(), Event())
        with self._lock:
            self._signals.setdefault(agent, []).append(signal)
        try:
            yield signal
        finally:
            with self._stopped:
                self._signals[agent].remove(signal)
                self._stopped.notify_all()

    @contextmanager
    def _stopped_with(self, call: CallContext, stop: _StopSignal) -> Iterator[None]:
        """Set ``stop`` if any process ends the caller."""

        def on_row(row: Row) -> None:
            if self._members.has_ended(call.actor):
                stop.set()

        unsubscribe = self._store.background.subscribe((task_address(self._files.task_of(call)),), on_row)
        try:
            yield
        finally:
            unsubscribe()

    def _unsandboxed_backend(self) -> SandboxBackend:
        if self._store.registry.current().unfenced_commands != "ask":
            raise NoSandbox
        return UnsandboxedBackend(CgroupFactory.detect())

    def _request_approval(self, call: CallContext, command: str, folder: str, stop: _StopSignal) -> str:
        """Wait until a person approves ``command`` in ``folder``, for at most 10 minutes, or until ``stop``
        is set.

        An approved command of a paused agent waits until a person resumes the agent. Return the approved
        command, which the person may have changed. Raise `TooManyRequests`, `CommandRejected`,
        `CommandUnanswered`, `CommandStopped`, `AgentPaused`, `BudgetReached`.
        """
        path = f"{call.actor}/commands/{uuid.uuid4().hex[:12]}"

        def on_row(row: Row) -> None:
            if row.path == path:
                stop.wakeup.set()

        unsubscribe = self._store.background.subscribe((path.rpartition("/")[0],), on_row)
        try:
            language = self._store.registry.current(call).language
            arguments = json.dumps({"command": command}, ensure_ascii=False)
            request = Request(
                "approve",
                prompt=catalogue(language)("request.unfenced", folder=folder),
                calls=(PendingCall("command", call.tool, arguments),),
                metadata={"folder": folder},
                expires=self._store.journal.now() + int(_ANSWER_SECONDS * 1e9),
            )
            self._requests.ask(call, path, request)
            end = time.monotonic() + _ANSWER_SECONDS
            while (left := end - time.monotonic()) > 0:
                has_come = stop.wakeup.wait(min(left, CLOCK_SECONDS))
                if has_come or has_expired(request.expires, self._requests.now()):
                    break
        finally:
            unsubscribe()
        ended = self._requests.withdraw(path) if stop.event.is_set() else self._requests.expire(path)
        if stop.event.is_set():
            raise CommandStopped
        approved = _approved_command(command, ended.answer)
        self._wait_until_resumed(call.actor, end, stop.event)
        if stop.event.is_set():
            raise CommandStopped
        self._budgets.check_stop(call.actor)
        return approved

    def _run(
        self,
        call: CallContext,
        command: str,
        folder: str,
        backend: SandboxBackend,
        limits: ResourceLimits,
        stop: Event,
    ) -> CommandOutcome:
        task = self._files.task_of(call)
        self._end_interrupted(task, folder)
        before = self._files.record_changes(call, until=time.monotonic() + limits.seconds)
        limits = self._limits_within_quota(before, limits)
        started = self._start(call, task, command, folder)
        # A link at the top of the folder cannot be protected: nothing can be mounted over it.
        protects_git = backend.protects_git and not os.path.islink(os.path.join(folder, GIT_FOLDER))
        until = time.monotonic() + limits.seconds
        output = _OutputBatcher(lambda stream, text: self._note_output(started, stream, text))
        try:
            execution = self._execute(started, command, backend, limits, output.write, stop)
        except WatchroomError as error:
            self._end(started, {"error": error.code, "message": error.message()}, {})
            raise
        finally:
            output.close()
        # Changes by other commands in the same folder cannot be separated.
        beside: dict[str, Json] = {"beside": sorted(execution.concurrent)} if execution.concurrent else {}
        author = started.author(**beside)
        moved: list[str] = []
        detail: dict[str, Json] = {"changed": 0, **execution.network}
        try:
            # A person has approved a command without a sandbox.
            if backend.name != UnsandboxedBackend.name:
                self._quarantine_repositories(started, author, moved, protects_git=protects_git)
            until = max(until, time.monotonic() + _MIN_RECORDING_SECONDS)
            recorded = self._files.record_task_changes(task, author, until=until)
            changes = self._describe_changes(recorded, moved)
            detail["changed"] = len(recorded.changed)
        except (WatchroomError, OSError) as error:
            # The last row records that the changes are unknown.
            changes = CommandChanges(quarantined=tuple(moved))
            detail[UNRECORDED] = _code_of(error)
        return self._end_finished(started, execution, changes, detail)

    def _start(self, call: CallContext, task: str, command: str, folder: str) -> _StartedCommand:
        """Write the first row of a command."""
        path = f"{task}/{uuid.uuid4().hex[:12]}"
        message = validation.escape_unstorable(command.strip().replace("\n", " "), 200)
        known = [each.identity for each in find_repositories_at(folder)]
        detail: dict[str, Json] = {PRESENCE: self._store.journal.presence.hold()}
        if len(known) <= _MAX_KNOWN_REPOSITORIES:
            detail["repositories"] = known
        self._store.write(call.with_tool(RUN).write(COMMAND, path, command, message, 0, detail))
        return _StartedCommand(call, path, message, folder, known)

    def _execute(
        self,
        started: _StartedCommand,
        command: str,
        backend: SandboxBackend,
        limits: ResourceLimits,
        on_output: OnOutput,
        stop: Event,
    ) -> _Execution:
        """Run ``command`` until it ends, or until ``stop`` is set. Raise the errors of `run_command`."""
        config = self._store.registry.current(started.call)
        network: dict[str, Json] = {}
        with (
            self._counted(started) as concurrent,
            _network(backend, config.allowed_hosts, catalogue(config.language), network) as access,
        ):
            result = run_command(
                command,
                started.folder,
                backend=backend,
                limits=limits,
                network=access,
                on_output=on_output,
                stop=stop,
            )
        if "no_network" in network:
            result = result._replace(stderr=f"{network['no_network']}\n{result.stderr}")
        return _Execution(result, concurrent, network)

    @contextmanager
    def _counted(self, started: _StartedCommand) -> Iterator[set[str]]:
        """Yield the set of commands that run in the same folder while the context lasts."""
        path = started.path
        with self._lock:
            others = {each for each in self._concurrent if each.partition("/")[0] == started.task}
            for each in others:
                self._concurrent[each].add(path)
            self._concurrent[path] = others
        try:
            yield others
        finally:
            with self._lock:
                del self._concurrent[path]

    def _end_finished(
        self,
        started: _StartedCommand,
        execution: _Execution,
        changes: CommandChanges,
        detail: Mapping[str, Json],
    ) -> CommandOutcome:
        result = execution.result
        content: dict[str, Json] = {
            "stdout": result.stdout,
            "stderr": result.stderr,
            "exitCode": result.exit_code,
            "timedOut": result.timed_out,
            "stopped": result.stopped,
            "seconds": round(result.seconds, 3),
            "cut": result.truncated,
            "left": {name: value for name, value in changes._asdict().items() if value},
        }
        ended: dict[str, Json] = {
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "stopped": result.stopped,
            **detail,
        }
        self._end(started, content, ended)
        return CommandOutcome(result, changes)

    def _end(self, started: _StartedCommand, content: Mapping[str, Json], detail: Mapping[str, Json]) -> None:
        """Write the last row of a command, later if the journal refuses it. No error is raised: the command
        ran, and after an error its agent would run it again."""
        text = json.dumps(content, ensure_ascii=False)
        draft = started.call.with_tool(END).write(COMMAND, started.path, text, started.message, 1, detail)
        try:
            # The rows of its output must come first.
            self._store.commits.flush(started.call.actor)
            self._write_last(draft)
        except JournalError:
            _log.exception("the last row of the command %s is written later", started.path)
            with self._lock:
                self._refused[started.path] = draft
            self._store.background.schedule(_REFUSED_JOB, self._write_refused, _RETRY_SECONDS)

    def _write_last(self, draft: Write) -> None:
        """Write the last row of a command. If it breaks a rule of the journal, write it without its output;
        if that breaks one too, drop it and log the error. Raise `JournalError`."""
        try:
            self._store.write(draft)
        except DraftRefused as error:
            _log.warning("the command %s is recorded without its output: %s", draft.path, error.message())
            try:
                self._store.write(_without_output(draft, error))
            except DraftRefused:
                _log.exception("the last row of the command %s is dropped", draft.path)

    def _write_refused(self) -> None:
        """Write the last rows that the journal refused. Try those again later that it still refuses, and
        raise its last error."""
        with self._lock:
            drafts = [*self._refused.values()]
        refusal: JournalError | None = None
        for draft in drafts:
            try:
                head = self._store.journal.head(COMMAND, draft.path)
                # The refused row may exist, if the outcome was unknown.
                if head is not None and head.version == 1:
                    self._write_last(draft)
            except JournalError as error:
                refusal = error
                continue
            with self._lock:
                del self._refused[draft.path]
        if refusal is not None:
            self._store.background.schedule(_REFUSED_JOB, self._write_refused, _RETRY_SECONDS)
            raise refusal

    def _end_interrupted(self, task: str, folder: str) -> None:
        """Write the last rows of the interrupted commands of ``task``.

        Their processes died. First move away the repositories that they created, and record their changes.
        """
        if task in self._recovered:
            return
        journal = self._store.journal
        if journal.open_items(COMMAND, task):
            self._end_dead(task, folder)
        self._recovered.add(task)

    def _end_dead(self, task: str, folder: str) -> None:
        """Write the last rows of the commands of ``task`` whose process is dead, unless another thread or
        process does."""
        journal = self._store.journal
        with journal.claim(f"interrupted/{task}") as is_free:
            open_commands = journal.open_items(COMMAND, task) if is_free else ()
            alive = (
                {lease.id for lease in journal.presence.all() if lease.is_alive} if open_commands else set()
            )
            for head in open_commands:
                if not _is_running(head, alive):
                    self._end_interrupted_command(head, task, folder)

    def _end_interrupted_command(self, start: Row, task: str, folder: str) -> None:
        """Write the last row of an interrupted command, after everything else: if this process is also
        killed, the next process repeats the whole recovery."""
        started = _StartedCommand.from_row(start, folder)
        if "repositories" in start.detail:
            backend = self.sandbox.best
            protects_git = backend is not None and backend.protects_git
            self._quarantine_repositories(started, started.author(), [], protects_git=protects_git)
        content, detail = '{"interrupted": true}', dict[str, Json](interrupted=True)
        try:
            # The author is unknown: people may have worked there since.
            until = time.monotonic() + _MIN_RECORDING_SECONDS
            self._files.record_task_changes(task, OUTSIDERS, until=until)
        except (WatchroomError, OSError) as error:
            # The folder may be on another machine, or removed.
            detail[UNRECORDED] = _code_of(error)
        self._store.write(Write(SYSTEM, END, COMMAND, start.path, content, start.message, 1, detail))

    def _limits_within_quota(self, recorded: RecordedChanges, limits: ResourceLimits) -> ResourceLimits:
        """Return the limits of a command in a folder that was just ``recorded``.

        Above the quota, the command can remove files, and write only short files. Raise `TaskQuotaExceeded`
        at twice the quota.
        """
        quota, usage = self._files.quota, recorded.usage
        if usage.files >= quota.max_counted or usage.bytes >= 2 * quota.bytes:
            raise TaskQuotaExceeded(**quota.error_values(usage))
        return limits._replace(file_bytes=_SHORT_FILE_BYTES) if quota.is_exceeded_by(usage) else limits

    def _quarantine_repositories(
        self, started: _StartedCommand, author: ChangeAuthor, paths: list[str], *, protects_git: bool
    ) -> None:
        """Move the git repositories that a command created out of its folder, and record that.

        - ``paths``: receives the paths of the first 100, which fit in a row, even if the row is refused.
        - ``protects_git``: the sandbox kept the command from creating a repository at the top of the folder.
        """
        target = os.path.join(self._quarantine, started.path.replace("/", "-"))
        moved = quarantine_new_repositories(
            started.folder, target, known=started.repositories, protects_git=protects_git
        )
        if not moved:
            return
        paths += [
            validation.escape_unstorable(each, validation.MAX_PATH_BYTES) for each in moved[:_MAX_PATHS]
        ]
        detail: dict[str, Json] = {
            **(author.detail or {}),
            "paths": [*paths],
            "count": len(moved),
            "moved_to": target,
        }
        path = f"{started.task}/{paths[0]}"
        outcome, code = RepositoryRefused.outcome, RepositoryRefused.code
        note = author.call.note(FILE, path, outcome, code, author.message, detail=detail)
        self._store.commits.commit(note)

    def _describe_changes(self, recorded: RecordedChanges, quarantined: Sequence[str]) -> CommandChanges:
        paths = recorded.changed
        shown: list[str] = []
        left = _MAX_PATH_CHARACTERS
        for path in paths[:_MAX_PATHS]:
            left -= len(path)
            if left < 0:
                break
            shown.append(path)
        quota = self._files.quota
        return CommandChanges(
            tuple(shown),
            len(paths) - len(shown),
            recorded.pending,
            recorded.left_out,
            tuple(quarantined),
            quota.error_values(recorded.usage) if quota.is_exceeded_by(recorded.usage) else {},
        )

    def _note_output(self, started: _StartedCommand, stream: Stream, text: str) -> None:
        detail = {"stream": stream}
        note = started.call.with_tool(PRINTED).note(
            COMMAND, started.path, content=text, detail=detail, durable=False
        )
        self._store.commits.note(note)


def _without_output(draft: Write, error: DraftRefused) -> Write:
    """Return the last row of a command that was refused with ``error``, without the texts of the command."""
    content = parse_object(draft.content or "") or {}
    kept = {name: value for name, value in content.items() if isinstance(value, (int, float))}
    texts: dict[str, Json] = {"error": error.code, "message": error.message()}
    if "exitCode" in content:
        texts = {"stdout": "", "stderr": error.message(), "cut": True}
    detail = {name: value for name, value in (draft.detail or {}).items() if isinstance(value, int)}
    text = json.dumps({**kept, **texts})
    return draft._replace(content=text, message="", detail={**detail, UNRECORDED: error.code})


class _OutputBatcher:
    """Collects the output of a command in batches, so that it needs few rows and is not delayed much.

    ``on_batch``: called with each stream and its text, at most about ten times a second, from another thread.
    """

    def __init__(self, on_batch: Callable[[Stream, str], None]) -> None:
        self._on_batch = on_batch
        self._lock = Lock()
        self._pieces: list[tuple[Stream, str]] = []
        self._timer: Timer | None = None

    def write(self, stream: Stream, text: str) -> None:
        """Add ``text`` that the command printed on ``stream``."""
        # A journal cannot store NUL.
        piece = text.replace("\0", "␀")
        with self._lock:
            if self._pieces and self._pieces[-1][0] == stream:
                piece = self._pieces.pop()[1] + piece
            self._pieces.append((stream, piece))
            if self._timer is None:
                self._timer = Timer(_OUTPUT_SECONDS, self._flush)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Pass the remaining output on."""
        with self._lock:
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            pieces, self._pieces, self._timer = self._pieces, [], None
        for stream, text in pieces:
            self._on_batch(stream, text)


@contextmanager
def _network(
    backend: SandboxBackend, hosts: Sequence[str], texts: Catalogue, detail: dict[str, Json]
) -> Iterator[NetworkAccess]:
    """Give a command access to the hosts that match the patterns ``hosts``.

    ``detail`` receives the reached and the refused hosts, or the reason why there is no access.
    """
    if not hosts:
        yield False
        return
    if not backend.supports_proxy:
        detail["no_network"] = texts("proxy.unavailable")
        yield False
        return
    from watchroom.platform.sandbox.proxy import Proxy

    with Proxy(hosts, texts) as proxy:
        yield ProxySocket(proxy.path)
    if proxy.reached:
        detail["reached_hosts"] = sorted(proxy.reached)
    if proxy.refused:
        detail["refused_hosts"] = sorted(proxy.refused)


def _approved_command(command: str, answer: Answer | None) -> str:
    """Return ``command`` as the person approved it. Raise `CommandUnanswered`, `CommandRejected`."""
    if answer is None or answer.expired:
        raise CommandUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CommandRejected(reason=decision.reason)
    changed = parse_arguments(decision.arguments).get("command") if decision.arguments else None
    return changed if isinstance(changed, str) else command


def _code_of(error: WatchroomError | OSError) -> str:
    return error.code if isinstance(error, WatchroomError) else DiskFailed.code


def _is_running(start: Row, alive: Container[str]) -> bool:
    """Return whether a process is running the command with this first row. ``alive``: the presence leases of
    live processes."""
    return start.detail.get(PRESENCE) in alive


def _check_keywords(command: str) -> None:
    """Raise `CommandBlocked` for a forbidden keyword, and `NotText`."""
    validation.encode_text(command)
    keyword = find_blocked_keyword(command)
    if keyword is not None:
        raise CommandBlocked(keyword=keyword)
