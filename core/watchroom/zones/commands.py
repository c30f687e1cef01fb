"""Commands of agents as rows: one when a command begins, what it prints while it runs, one with how it ended;
and each file that it changed is a version by its agent (TASKS)."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from watchroom import validation
from watchroom.errors import DiskFailed, WatchroomError
from watchroom.model import PRESENCE, PRINTED, SYSTEM, Json, Note, Row, Write
from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.addresses import task_address
from watchroom.sandbox.backend import SandboxBackend
from watchroom.sandbox.blocklist import find_blocked_keyword
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import (
    CommandBlocked,
    CommandInterrupted,
    CommandNotStarted,
    NoSandbox,
    RepositoryRefused,
    TaskQuotaExceeded,
    WorkspaceNotBound,
)
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.output import Stream
from watchroom.sandbox.probe import SandboxProbe
from watchroom.sandbox.repositories import find_repositories_at, quarantine_new_repositories
from watchroom.sandbox.runner import CommandResult
from watchroom.sandbox.unsandboxed import UnsandboxedBackend
from watchroom.texts import catalogue
from watchroom.zones.command_approvals import CommandApprovals
from watchroom.zones.command_executor import CommandExecutor, Execution, ExecutionRequest, StopSignal
from watchroom.zones.command_output import OutputBatcher
from watchroom.zones.store import Store
from watchroom.zones.task_errors import AgentEnded
from watchroom.zones.task_files import ChangeAuthor, RecordedChanges, TaskFiles
from watchroom.zones.task_recording import OUTSIDERS

ZONE: Final = "command"
RUN: Final = "run_command"
END: Final = "end_command"
UNRECORDED: Final = "unrecorded"
"""In the detail of a last row: the code of the error for which what the command changed has no rows."""
_MAX_PATHS: Final = 100
_MAX_PATH_CHARACTERS: Final = 20_000
"""At most so many paths of changed files, of so many characters in all, are in a result."""
_MAX_KNOWN_REPOSITORIES: Final = 1000
"""So many repositories of a folder are remembered, to find those of a command that was cut off."""
_SHORT_FILE_BYTES: Final = 8192
"""Size of a file that a command may write even where the quota is exceeded: the sandbox needs some as
well."""
_MIN_RECORDING_SECONDS: Final = 1.0
"""Time to look for changes, even if the command used up its own."""


class CommandChanges(NamedTuple):
    """What a command left in its folder: the paths of files that it created, changed or removed, as far as
    they are of use to a reader, and how many more there are. ``pending`` changes are recorded with the next
    call; what is ``left_out`` no path can name, or may not be read. ``over_quota`` are the values of the
    error where the folder holds more than it may."""

    changed: tuple[str, ...] = ()
    more_changed: int = 0
    pending: int = 0
    left_out: int = 0
    quarantined: tuple[str, ...] = ()
    """The git repositories that it made, which were moved away."""
    over_quota: Mapping[str, int] = MappingProxyType({})


class CommandOutcome(NamedTuple):
    """How a command ended, its last row, and what it left."""

    result: CommandResult
    row: Row
    changes: CommandChanges


class _StartedCommand(NamedTuple):
    """A command that has its first row, at ``path``. ``repositories`` identify those that were there."""

    actor: str
    path: str
    message: str
    folder: str
    repositories: Collection[str]

    @classmethod
    def of_row(cls, row: Row, folder: str) -> _StartedCommand:
        known = cast("Sequence[str]", row.detail.get("repositories", ()))
        return cls(row.actor, row.path, row.message, folder, known)

    def author(self, **detail: Json) -> ChangeAuthor:
        return ChangeAuthor(self.actor, RUN, self.message, {"command": self.path, **detail})


class CommandZone:
    """The commands that agents run in the folders of their tasks. May be used from any thread.

    ``store`` and ``files`` keep the rows, ``approvals`` asks people where no sandbox works. ``has_ended``
    returns whether an agent has ended, and ``dispatcher`` reports that one may have; ``quarantine`` is the
    folder into which repositories are moved that commands made. ``sandbox`` are the sandboxes to choose from
    (default: those of this machine).
    """

    def __init__(
        self,
        store: Store,
        files: TaskFiles,
        approvals: CommandApprovals,
        has_ended: Callable[[str], bool],
        dispatcher: RowDispatcher,
        quarantine: str,
        sandbox: SandboxProbe | None = None,
    ) -> None:
        self._store = store
        self._files = files
        self._approvals = approvals
        self._has_ended = has_ended
        self._dispatcher = dispatcher
        self._quarantine = quarantine
        self._executor = CommandExecutor(sandbox)
        self._recovered: set[str] = set()
        """The tasks whose interrupted commands have their last rows."""

    @property
    def sandbox(self) -> SandboxProbe:
        """The sandboxes of this machine, tested when first asked for."""
        return self._executor.sandbox

    def run(self, actor: str, command: str, limits: ResourceLimits) -> CommandOutcome:
        """Run ``command`` in the folder of the task of ``actor``, to its end, the end of its time, or the end
        of ``actor``.

        ``limits`` are those of this command. Raises `WorkspaceNotBound`, `CommandBlocked`, `AgentEnded`,
        `TaskQuotaExceeded`, `NoSandbox`; where a person was asked `CommandRejected`, `CommandUnanswered` and
        `CommandStopped`; and as `run_command` does.
        """
        folder = self._files.agent_folder(actor)
        _check_keywords(command)
        backend = self.sandbox.best
        with self._executor.stoppable(actor) as stop, self._stopped_with(actor, stop):
            # From now on a row that ends the agent stops the command.
            if self._has_ended(actor):
                raise AgentEnded(agent=actor)
            if backend is None:
                backend = self._unsandboxed_backend()
                command = self._approvals.request(actor, RUN, command, folder, stop)
                _check_keywords(command)
                if self._files.agent_folder(actor) != folder:
                    # It was approved for another one.
                    raise WorkspaceNotBound(agent=actor)
            return self._run(actor, command, folder, backend, limits, stop.event)

    @contextmanager
    def _stopped_with(self, actor: str, stop: StopSignal) -> Iterator[None]:
        """Set ``stop`` if ``actor`` ends, whichever process ends it."""

        def take(row: Row) -> None:
            if self._has_ended(actor):
                stop.set()

        unsubscribe = self._dispatcher.subscribe((task_address(self._files.task_of(actor)),), take)
        try:
            yield
        finally:
            unsubscribe()

    def stop(self, agent: str) -> int:
        """Stop the commands that this process runs for ``agent``, with all that they started. They end on
        their own threads, a moment later. Returns their number."""
        return self._executor.stop(agent)

    def close(self) -> None:
        """Stop what runs, and wait until each command has its last row."""
        self._executor.close()

    def outcome(self, start: Row) -> CommandOutcome:
        """How the command ended whose first row is ``start``. Raises `CommandInterrupted` where it was cut
        off, or has not ended yet, `CommandNotStarted` where it never ran."""
        task = start.path.partition("/")[0]
        self._end_interrupted(task, self._files.task_folder(task))
        end = self._store.journal.version(ZONE, start.path, 2)
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
        return CommandOutcome(result, end, CommandChanges(**content.get("left", {})))

    def _unsandboxed_backend(self) -> SandboxBackend:
        if self._store.registry.current().unfenced_commands != "ask":
            raise NoSandbox
        return UnsandboxedBackend(CgroupFactory.detect())

    def _run(
        self,
        actor: str,
        command: str,
        folder: str,
        backend: SandboxBackend,
        limits: ResourceLimits,
        stop: Event,
    ) -> CommandOutcome:
        task = self._files.task_of(actor)
        self._end_interrupted(task, folder)
        before = self._files.record_changes(actor, until=time.monotonic() + limits.seconds)
        limits = self._limits_within_quota(before, limits)
        started = self._start(actor, task, command, folder)
        config = self._store.registry.current()
        request = ExecutionRequest(started.path, command, folder, backend, limits, config.allowed_hosts)
        protects_git = request.protects_git
        until = time.monotonic() + limits.seconds
        output = OutputBatcher(lambda stream, text: self._note_output(started, stream, text))
        try:
            execution = self._executor.execute(request, catalogue(config.language), output.write, stop)
        except WatchroomError as error:
            self._end(started, {"error": error.code, "message": error.message()}, {})
            raise
        finally:
            output.close()
        # What the others changed in the same folder cannot be told apart.
        beside: dict[str, Json] = {"beside": sorted(execution.concurrent)} if execution.concurrent else {}
        author = started.author(**beside)
        changes = CommandChanges()
        detail: dict[str, Json] = {"changed": 0, **execution.network}
        try:
            moved: list[str] = []
            # A person has approved what runs without a sandbox.
            if backend.name != UnsandboxedBackend.name:
                moved = self._quarantine_repositories(started, author, protects_git=protects_git)
            until = max(until, time.monotonic() + _MIN_RECORDING_SECONDS)
            recorded = self._files.record_task_changes(task, author, until=until)
            changes = self._describe_changes(recorded, moved)
            detail["changed"] = len(recorded.changed)
        except (WatchroomError, OSError) as error:
            # How the command ended is recorded all the same, and that its changes are not known.
            detail[UNRECORDED] = _code_of(error)
        return self._end_finished(started, execution, changes, detail)

    def _start(self, actor: str, task: str, command: str, folder: str) -> _StartedCommand:
        """Write the first row of a command."""
        path = f"{task}/{uuid.uuid4().hex[:12]}"
        message = validation.escape_unstorable(command.strip().replace("\n", " "), 200)
        known = [each.identity for each in find_repositories_at(folder)]
        detail: dict[str, Json] = {PRESENCE: self._store.journal.present()}
        if len(known) <= _MAX_KNOWN_REPOSITORIES:
            detail["repositories"] = known
        self._store.write(Write(actor, RUN, ZONE, path, command, message, 0, detail))
        return _StartedCommand(actor, path, message, folder, known)

    def _end_finished(
        self,
        started: _StartedCommand,
        execution: Execution,
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
        return CommandOutcome(result, self._end(started, content, ended), changes)

    def _end(self, started: _StartedCommand, content: Mapping[str, Json], detail: Mapping[str, Json]) -> Row:
        """Write the last row of a command."""
        # What it printed comes before how it ended.
        self._store.commits.flush()
        text = json.dumps(content, ensure_ascii=False)
        draft = Write(started.actor, END, ZONE, started.path, text, started.message, 1, detail)
        return self._store.write(draft).row

    def _end_interrupted(self, task: str, folder: str) -> None:
        """Write the last row of each command of a task that ended with the process that ran it; before that,
        move away the repositories that it made, and record what it left."""
        if task in self._recovered:
            return
        self._recovered.add(task)
        journal = self._store.journal
        if not journal.open_items(ZONE, task):
            return
        with journal.claim(f"interrupted/{task}") as is_free:
            open_commands = journal.open_items(ZONE, task) if is_free else ()
            alive = {lease.id for lease in journal.presences() if lease.is_alive} if open_commands else set()
            for head in open_commands:
                if not _is_run(head, alive):
                    self._end_row_of_interrupted(head, task, folder)

    def _end_row_of_interrupted(self, start: Row, task: str, folder: str) -> None:
        """Write the last row of an interrupted command. It comes last: whoever finds it missing, because this
        process was killed as well, does all of this again."""
        started = _StartedCommand.of_row(start, folder)
        if "repositories" in start.detail:
            backend = self.sandbox.best
            protects_git = backend is not None and backend.protects_git
            self._quarantine_repositories(started, started.author(), protects_git=protects_git)
        content, detail = '{"interrupted": true}', dict[str, Json](interrupted=True)
        try:
            # By whom is not known: people may have worked there since.
            until = time.monotonic() + _MIN_RECORDING_SECONDS
            self._files.record_task_changes(task, OUTSIDERS, until=until)
        except (WatchroomError, OSError) as error:
            # The folder may be on another machine, or gone.
            detail[UNRECORDED] = _code_of(error)
        self._store.write(Write(SYSTEM, END, ZONE, start.path, content, start.message, 1, detail))

    def _limits_within_quota(self, recorded: RecordedChanges, limits: ResourceLimits) -> ResourceLimits:
        """The limits of a command in a folder that is as it was just recorded: where the quota is exceeded,
        it can remove files and write only short ones. Raises `TaskQuotaExceeded` at twice the quota."""
        quota, usage = self._files.quota, recorded.usage
        if usage.files >= quota.max_counted or usage.bytes >= 2 * quota.bytes:
            raise TaskQuotaExceeded(**quota.error_values(usage))
        return limits._replace(file_bytes=_SHORT_FILE_BYTES) if quota.is_exceeded_by(usage) else limits

    def _quarantine_repositories(
        self, started: _StartedCommand, author: ChangeAuthor, *, protects_git: bool
    ) -> list[str]:
        """Move the git repositories that a command made out of its folder; returns the paths of the first
        hundred. One row lists them. ``protects_git``: one at the top cannot be its own."""
        target = os.path.join(self._quarantine, started.path.replace("/", "-"))
        moved = quarantine_new_repositories(
            started.folder, target, known=started.repositories, protects_git=protects_git
        )
        if not moved:
            return []
        paths = [validation.escape_unstorable(each, validation.MAX_PATH_BYTES) for each in moved[:_MAX_PATHS]]
        detail: dict[str, Json] = {
            **(author.detail or {}),
            "paths": paths,
            "count": len(moved),
            "moved_to": target,
        }
        path = f"{started.path.partition('/')[0]}/{paths[0]}"
        outcome, code = RepositoryRefused.outcome, RepositoryRefused.code
        note = Note(author.actor, RUN, "file", path, outcome, code, author.message, detail=detail)
        self._store.commits.commit(note)
        return paths

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
        note = Note(started.actor, PRINTED, ZONE, started.path, content=text, detail=detail, durable=False)
        self._store.commits.note(note)


def _code_of(error: WatchroomError | OSError) -> str:
    return error.code if isinstance(error, WatchroomError) else DiskFailed.code


def _is_run(start: Row, alive: Container[str]) -> bool:
    """Whether a process runs the command of this first row, by the leases that are ``alive``."""
    return start.detail.get(PRESENCE) in alive


def _check_keywords(command: str) -> None:
    validation.encode_text(command)
    keyword = find_blocked_keyword(command)
    if keyword is not None:
        raise CommandBlocked(keyword=keyword)
