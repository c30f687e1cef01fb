"""Commands of agents as rows: one when it begins, what it prints while it runs, one with how it ended; and
each file that it changed is a version by its agent (spec 2, CommandExecutor)."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from threading import Condition, Event, Lock
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from watchroom import validation
from watchroom.errors import DiskFailed, WatchroomError
from watchroom.locks import is_alive, this_process
from watchroom.model import PRESENCE, PRINTED, SYSTEM, Json, Note, Row, Write
from watchroom.sandbox.backend import NetworkAccess, ProxySocket, SandboxBackend
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
from watchroom.sandbox.repositories import (
    GIT_FOLDER,
    find_repositories,
    find_repositories_at,
    open_folder,
    quarantine_repositories,
)
from watchroom.sandbox.runner import CommandResult, run_command
from watchroom.sandbox.unsandboxed import UnsandboxedBackend
from watchroom.texts import catalogue
from watchroom.zones.approvals import Approvals, Stop
from watchroom.zones.command_output import OutputBatcher
from watchroom.zones.store import Store
from watchroom.zones.task_errors import AgentEnded
from watchroom.zones.task_files import ChangeAuthor, RecordedChanges, TaskFiles

ZONE: Final = "command"
RUN: Final = "run_command"
END: Final = "end_command"
_MOST_CHANGED: Final = 100
_MOST_KNOWN: Final = 1000
"""So many repositories of a folder are remembered, to find those that a command made which was cut off."""
_MOST_CHARACTERS: Final = 20_000
"""So many paths of changed files, of so many characters in all, are told."""
_SHORT_FILE: Final = 8192
"""Bytes of a file that even a command may write that is to make room: the sandbox needs some as well."""
_LEAST_SECONDS: Final = 1.0
"""So long its changes are looked for, even if a command used up its time."""


class CommandChanges(NamedTuple):
    """What a command left in its folder: the paths of files that it made, changed or removed, but no more
    than anybody reads, and how many more there are. ``pending`` changes are looked at with the next call;
    what is ``left_out`` no path can name, or nobody may look into. ``over_quota`` are the values of the
    refusal where the folder holds more than it may."""

    changed: tuple[str, ...] = ()
    more_changed: int = 0
    pending: int = 0
    left_out: int = 0
    quarantined: tuple[str, ...] = ()
    """The git repositories that it made, which were moved away."""
    over_quota: Mapping[str, int] = MappingProxyType({})


class Ran(NamedTuple):
    """How a command ended, its last row, and what it left."""

    finished: CommandResult
    row: Row
    left: CommandChanges


class Commands:
    """May be used from any thread."""

    def __init__(
        self,
        store: Store,
        files: TaskFiles,
        approvals: Approvals,
        has_ended: Callable[[str], bool],
        quarantine: str,
        sandbox: SandboxProbe | None = None,
    ) -> None:
        """``has_ended`` knows of each agent whether it works no more; ``quarantine`` is where repositories
        are moved that commands made; ``sandbox`` are those to use: by default this machine's, tested when
        first asked for."""
        self._store = store
        self._files = files
        self._approvals = approvals
        self._has_ended = has_ended
        self._quarantine = quarantine
        self._sandbox = sandbox
        self._lock = Lock()
        self._ended = Condition(self._lock)
        self._stops: dict[str, list[Stop]] = {}
        """Of each agent the commands that are running, by what ends them."""
        self._beside: dict[str, set[str]] = {}
        """Of each command that runs here those that ran in the same folder meanwhile."""
        self._looked_through: set[str] = set()
        """The tasks whose interrupted commands have their last rows."""

    @property
    def sandbox(self) -> SandboxProbe:
        """What commands can be sandboxed in with on this machine; tried when first asked for."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = SandboxProbe.run()
            return self._sandbox

    def run(self, actor: str, command: str, limits: ResourceLimits) -> Ran:
        """Run a command in the folder of the actor's task, to its end or the end of its time. Raises
        `WorkspaceNotBound`, `CommandBlocked`, `TaskQuotaExceeded`, `NoSandbox`, where a person was asked
        `CommandRejected`, `CommandUnanswered` and `CommandStopped`, and what keeps it from starting:
        `CommandNotStarted`, `InvalidCommand`, `FolderNotFound`, `FolderTooWide`."""
        folder = self._files.folder(actor)
        _check(command)
        backend = self.sandbox.best
        with self._stoppable(actor) as stop:
            # Who ended it before now did not find the command, and after that does.
            if self._has_ended(actor):
                raise AgentEnded(agent=actor)
            if backend is None:
                backend = self._unsandboxed()
                command = self._approvals.ask(actor, RUN, command, folder, stop)
                _check(command)
                if self._files.folder(actor) != folder:
                    # It was approved of for another one.
                    raise WorkspaceNotBound(agent=actor)
            return self._run(actor, command, folder, backend, limits, stop.event)

    def _unsandboxed(self) -> SandboxBackend:
        if self._store.registry.current().unfenced_commands != "ask":
            raise NoSandbox
        return UnsandboxedBackend(CgroupFactory.detect())

    def close(self) -> None:
        """End what runs, and wait until each of them has its last row."""
        with self._ended:
            for stops in self._stops.values():
                for stop in stops:
                    stop.set()
            self._ended.wait_for(lambda: not any(self._stops.values()))
        self._approvals.close()

    def stop(self, agent: str) -> int:
        """End the commands that this process runs for an agent, with all that they started; returns how many
        there are. They end on their own threads, a moment later."""
        with self._lock:
            stops = tuple(self._stops.get(agent, ()))
        for stop in stops:
            stop.set()
        return len(stops)

    def outcome(self, begun: Row) -> Ran:
        """How the command ended that began with this row. Raises `CommandInterrupted` where it was cut off,
        or has no end yet, `CommandNotStarted` where it never ran."""
        task = begun.path.partition("/")[0]
        self._end_interrupted(task, self._files.folder_of(task))
        end = self._store.journal.version(ZONE, begun.path, 2)
        told = json.loads(self._store.content(end)) if end else {}
        if end is None or "interrupted" in told:
            raise CommandInterrupted
        if "exitCode" not in told:
            raise CommandNotStarted(reason=told.get("message", ""))
        finished = CommandResult(
            stdout=told["stdout"],
            stderr=told["stderr"],
            exit_code=told["exitCode"],
            timed_out=told["timedOut"],
            stopped=told["stopped"],
            seconds=told["seconds"],
            truncated=told["cut"],
        )
        return Ran(finished, end, CommandChanges(**told.get("left", {})))

    @contextlib.contextmanager
    def _running(self, path: str) -> Iterator[set[str]]:
        """While a command runs: the others of its task that run meanwhile, here."""
        task = path.partition("/")[0]
        with self._lock:
            others = {each for each in self._beside if each.partition("/")[0] == task}
            for each in others:
                self._beside[each].add(path)
            beside = self._beside[path] = others
        try:
            yield beside
        finally:
            with self._lock:
                del self._beside[path]

    @contextlib.contextmanager
    def _stoppable(self, actor: str) -> Iterator[Stop]:
        stop = Stop(Event(), Event())
        with self._lock:
            self._stops.setdefault(actor, []).append(stop)
        try:
            yield stop
        finally:
            with self._ended:
                self._stops[actor].remove(stop)
                self._ended.notify_all()

    def _run(
        self,
        actor: str,
        command: str,
        folder: str,
        backend: SandboxBackend,
        limits: ResourceLimits,
        stop: Event,
    ) -> Ran:
        task = self._files.task_of(actor)
        self._end_interrupted(task, folder)
        path = f"{task}/{uuid.uuid4().hex[:12]}"
        before = self._files.take_in(actor, until=time.monotonic() + limits.seconds)
        limits = self._within_quota(before, limits)
        message = validation.escape_unstorable(command.strip().replace("\n", " "), 200)
        known = [each.identity for each in find_repositories_at(folder)]
        begun: dict[str, Json] = {
            "process": this_process(),
            PRESENCE: self._store.journal.present(),
        }
        if len(known) <= _MOST_KNOWN:
            begun["repositories"] = known
        self._store.write(Write(actor, RUN, ZONE, path, command, message, 0, begun))
        printing = OutputBatcher(lambda stream, text: self._note(actor, path, stream, text))
        hosts = self._store.registry.current().allowed_hosts
        reached: dict[str, Json] = {}
        # Nothing can be mounted over a link.
        protects_git = backend.protects_git and not os.path.islink(os.path.join(folder, GIT_FOLDER))
        until = time.monotonic() + limits.seconds
        try:
            with self._running(path) as beside, self._network(hosts, backend, reached) as network:
                finished = run_command(
                    command,
                    folder,
                    backend=backend,
                    limits=limits,
                    network=network,
                    on_output=printing.write,
                    stop=stop,
                )
        except WatchroomError as error:
            self._end(actor, path, message, {"error": error.code, "message": error.message()}, {})
            raise
        finally:
            printing.close()
        if "no_network" in reached:
            finished = finished._replace(stderr=f"{reached['no_network']}\n{finished.stderr}")
        about: dict[str, Json] = {"command": path}
        if beside:
            # What they changed in the same folder cannot be told apart.
            about["beside"] = sorted(beside)
        author = ChangeAuthor(actor, RUN, message, about)
        left, count = CommandChanges(), 0
        try:
            quarantined: list[str] = []
            if backend.name != UnsandboxedBackend.name:
                # Of what runs without a backend a person has approved.
                quarantined = self._move_repositories(folder, known, author, protects_git=protects_git)
            until = max(until, time.monotonic() + _LEAST_SECONDS)
            recorded = self._files.take_in_of(task, author, until=until)
            left, count = self._left(recorded, quarantined), len(recorded.changed)
        except (WatchroomError, OSError) as error:
            # How the command ended is told all the same, and that nobody knows what it changed.
            reached["unrecorded"] = error.code if isinstance(error, WatchroomError) else DiskFailed.code
        told: dict[str, Json] = {
            "stdout": finished.stdout,
            "stderr": finished.stderr,
            "exitCode": finished.exit_code,
            "timedOut": finished.timed_out,
            "stopped": finished.stopped,
            "seconds": round(finished.seconds, 3),
            "cut": finished.truncated,
            "left": {name: value for name, value in left._asdict().items() if value},
        }
        detail: dict[str, Json] = {
            "exit_code": finished.exit_code,
            "timed_out": finished.timed_out,
            "stopped": finished.stopped,
            "changed": count,
            **reached,
        }
        return Ran(finished, self._end(actor, path, message, told, detail), left)

    def _within_quota(self, recorded: RecordedChanges, limits: ResourceLimits) -> ResourceLimits:
        """What a command may use in a folder that is as it was just recorded: in one that holds more than it
        may, it can remove files and write only short ones. Raises `TaskQuotaExceeded` where it holds twice as
        much."""
        quota, usage = self._files.quota, recorded.usage
        if usage.files >= quota.most_files or usage.bytes >= 2 * quota.bytes:
            raise TaskQuotaExceeded(**quota.told(usage))
        return limits._replace(file_bytes=_SHORT_FILE) if quota.is_exceeded_by(usage) else limits

    def _move_repositories(
        self, folder: str, known: Container[str], author: ChangeAuthor, *, protects_git: bool
    ) -> list[str]:
        """Move the git repositories out of a command's folder that were not there when it began; returns the
        paths of the first hundred. One row lists them. ``protects_git``: one at the top cannot be its own."""
        path = str((author.detail or {})["command"])
        to = os.path.join(self._quarantine, path.replace("/", "-"))
        with open_folder(folder) as opened:
            if opened is None:
                return []
            new = [each for each in find_repositories(opened) if each.identity not in known]
            if protects_git:
                new = [each for each in new if each.parts != (GIT_FOLDER,) or each.is_link]
            moved = quarantine_repositories(opened, new, to) if new else []
        if not moved:
            return []
        shown = [
            validation.escape_unstorable(each, validation.MAX_PATH_BYTES) for each in moved[:_MOST_CHANGED]
        ]
        detail: dict[str, Json] = {**(author.detail or {}), "paths": shown, "count": len(moved)}
        at = f"{path.partition('/')[0]}/{shown[0]}"
        outcome, code = RepositoryRefused.outcome, RepositoryRefused.code
        detail["moved_to"] = to
        note = Note(author.actor, RUN, "file", at, outcome, code, author.message, detail=detail)
        self._store.committer.commit(note)
        return shown

    def _left(self, recorded: RecordedChanges, quarantined: Sequence[str]) -> CommandChanges:
        paths = recorded.changed
        shown: list[str] = []
        room = _MOST_CHARACTERS
        for path in paths[:_MOST_CHANGED]:
            room -= len(path)
            if room < 0:
                break
            shown.append(path)
        quota = self._files.quota
        return CommandChanges(
            tuple(shown),
            len(paths) - len(shown),
            recorded.pending,
            recorded.left_out,
            tuple(quarantined),
            quota.told(recorded.usage) if quota.is_exceeded_by(recorded.usage) else {},
        )

    def _end_interrupted(self, task: str, folder: str) -> None:
        """Give each command of a task its last row that ended with the process that ran it, and move away the
        repositories that it made."""
        if task in self._looked_through:
            return
        self._looked_through.add(task)
        for begun in self._store.journal.heads(ZONE, f"{task}/"):
            if begun.version != 1 or is_alive(str(begun.detail.get("process", ""))):
                continue
            told = Write(
                SYSTEM,
                END,
                ZONE,
                begun.path,
                '{"interrupted": true}',
                begun.message,
                1,
                {"interrupted": True},
            )
            with self._store.committer.exclusively() as commit:
                head = self._store.journal.head(ZONE, begun.path)
                is_last = head is not None and head.seq == begun.seq
                if is_last:
                    commit(told)
            if is_last and "repositories" in begun.detail:
                about = ChangeAuthor(begun.actor, RUN, begun.message, {"command": begun.path})
                known = cast("Sequence[str]", begun.detail["repositories"])
                backend = self.sandbox.best
                self._move_repositories(
                    folder, known, about, protects_git=backend is not None and backend.protects_git
                )

    @contextlib.contextmanager
    def _network(
        self, hosts: Sequence[str], backend: SandboxBackend, reached: dict[str, Json]
    ) -> Iterator[NetworkAccess]:
        """A way to these hosts, while a command runs; ``reached`` is told which were spoken to, which were
        asked for in vain, or why there is no such way."""
        if not hosts:
            yield False
            return
        said = catalogue(self._store.registry.current().language)
        if not backend.supports_proxy:
            reached["no_network"] = said("proxy.unavailable")
            yield False
            return
        from watchroom.sandbox.proxy import Proxy

        with Proxy(hosts, said) as proxy:
            yield ProxySocket(proxy.path)
        if proxy.reached:
            reached["reached_hosts"] = sorted(proxy.reached)
        if proxy.refused:
            reached["refused_hosts"] = sorted(proxy.refused)

    def _note(self, actor: str, path: str, stream: Stream, text: str) -> None:
        detail = {"stream": stream}
        self._store.committer.note(
            Note(actor, PRINTED, ZONE, path, content=text, detail=detail, durable=False)
        )

    def _end(
        self, actor: str, path: str, message: str, told: Mapping[str, Json], detail: Mapping[str, Json]
    ) -> Row:
        # What it printed comes before how it ended.
        self._store.committer.flush()
        text = json.dumps(told, ensure_ascii=False)
        return self._store.write(Write(actor, END, ZONE, path, text, message, 1, detail)).row


def _check(command: str) -> None:
    validation.encode_text(command)
    keyword = find_blocked_keyword(command)
    if keyword is not None:
        raise CommandBlocked(keyword=keyword)
