"""The public face: opens a shared file system, hands out toolboxes, verifies, repairs, exports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from watchroom import validation
from watchroom.checkout.export import export
from watchroom.checkout.file_watcher import FileWatcher
from watchroom.checkout.host import CheckoutHost
from watchroom.checkout.layout import (
    CONFIG_PATH,
    CONTROL,
    JOURNAL_NAME,
    WATCHED_FOLDERS,
    document_at,
    watched_files,
)
from watchroom.checkout.location import cached_checkout, find_journal, keep_journal_address
from watchroom.checkout.materializer import Materializer
from watchroom.checkout.reconciler import Reconciler
from watchroom.checkout.remote_rows import RemoteRows
from watchroom.commit import AppendStatistics, GroupCommit
from watchroom.errors import CheckoutTaken, VersionConflict, WorkspaceNotFound
from watchroom.files import keep_from_git, make_private
from watchroom.follower import Follower, Repeater
from watchroom.journal import Journal, is_server_address, open_journal
from watchroom.journal.errors import JournalDenied
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.model import HUMAN_PREFIX, PEOPLE_LOST, SYSTEM, Note, Row, Write
from watchroom.platforms import Platform, detect_platform
from watchroom.registry import REGISTER, Registry
from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.addresses import row_address
from watchroom.rules.config import Agent, Config, add_agents, render_config
from watchroom.texts import Language
from watchroom.verify import BrokenVersion, Problem, repair, verify, versions_broken
from watchroom.zones import Store, Zones
from watchroom.zones.breaking import AgentBreaker
from watchroom.zones.edit_rules import edit_rules
from watchroom.zones.people import LOST_PLACE
from watchroom.zones.presence import record_lost_processes

if TYPE_CHECKING:
    from watchroom.git import Imported
    from watchroom.runtime.sessions import Sessions
    from watchroom.sandbox.probe import SandboxProbe
    from watchroom.search import SearchIndex, SearchQuery, SearchResult
    from watchroom.toolbox import Toolbox
    from watchroom.transparency import Sealing
    from watchroom.zones.realtime import RealtimeZone

_SNAPSHOT_SECONDS: Final = 10.0
"""So often it is asked whether a snapshot is missing."""
_CHECKPOINT_SECONDS: Final = 10.0
"""So often it is asked whether a checkpoint of the journal is due."""
_INDEX_SECONDS: Final = 2.0
"""So often it is asked whether there are rows that the index of searches does not have."""


class Workspace(Zones):
    """A shared file system on disk. Everything public may be called from any thread.

    Use `open` to make one, and close it (it is a context manager):

        with Workspace.open("team/", agents=["alice", "bob"]) as workspace:
            workspace.tools("alice").dispatch_tool_call("collab_list", {})

    ``root`` is its folder, ``sandbox`` finds what commands run in, ``journal`` has the rows, ``platform`` is
    the operating system; for what stands in where they are left out see `open`.
    """

    def __init__(
        self,
        root: str,
        sandbox: SandboxProbe | None = None,
        journal: Journal | None = None,
        platform: Platform | None = None,
    ) -> None:
        self.prepare_sealing: Callable[[Sealing], None] = lambda _: None
        """Called once with what seals, before the first checkpoint is due: says where those are published."""
        with ExitStack() as stack:
            self._set_up(os.path.abspath(root), sandbox, journal, platform, stack)
            self._closing = stack.pop_all()

    def _set_up(
        self,
        root: str,
        sandbox: SandboxProbe | None,
        journal: Journal | None,
        platform: Platform | None,
        stack: ExitStack,
    ) -> None:
        """Open everything. ``stack`` closes it in reverse order, whatever fails, here or while it closes."""
        if journal is not None:
            stack.callback(journal.close)
        self.root = root
        self.platform = platform or detect_platform()
        control = os.path.join(self.root, CONTROL)
        os.makedirs(control, mode=0o700, exist_ok=True)
        keep_from_git(control)
        address = find_journal(self.root) or os.path.join(control, JOURNAL_NAME)
        is_own = journal is None
        if journal is None:
            journal = stack.enter_context(closing(open_journal(address, self.platform)))
        self.journal: Journal = journal
        self._host = CheckoutHost(self.journal, self.root, control)
        self._follower = Follower("files")
        self._commits = GroupCommit(self.journal)
        self._checkout = Materializer(
            self.root,
            self.journal,
            self._commits.append,
            self._follower,
            self._host,
            self.platform,
            # The people need the checkout first. No files are written before both are there.
            lambda row: self.people.counts(row),
        )
        stack.callback(self._checkout.close)
        stack.callback(self._follower.close)
        stack.callback(self._commits.close)
        self._commits.follow(self._checkout)
        make_private(control)
        registry = Registry(self.journal)
        self._remote = RemoteRows(self.journal, self._checkout)
        stack.callback(self._remote.close)
        store = Store(self.journal, self._commits, self._checkout, self._host, self._follower, registry)
        reconciler = Reconciler(
            self.journal,
            self._checkout,
            self._commits.append,
            edit_rules(registry),
            self._host,
            self._commits.sign,
        )
        self._loading_parts = Lock()
        self._sealing: Sealing | None = None
        self._search_index: SearchIndex | None = None
        self._sessions: Sessions | None = None
        stack.callback(self._write_last_checkpoint)
        dispatcher = RowDispatcher(
            self.journal, row_address, self.record_lost_processes, AgentBreaker(store).watch
        )
        super().__init__(store, reconciler, self.root, self.register, dispatcher, sandbox)
        stack.callback(super().close)
        stack.callback(self._close_sessions)
        self.signing.anchor_with(lambda: self.sealing.newest_body())

        self._address = address if is_own else None
        """Where other processes open the journal; None where it was opened elsewhere."""
        self._snapshot_row = 0
        """Up to where no snapshot is missing, as far as is known here."""
        for name, seconds, work in (
            ("checkpoints", _CHECKPOINT_SECONDS, lambda closing: self.sealing.write_due(closing)),
            ("search", _INDEX_SECONDS, lambda closing: self.search_index.keep_up(self.journal, closing)),
            ("snapshots", _SNAPSHOT_SECONDS, self._keep_snapshots),
        ):
            stack.callback(Repeater(name, seconds, work).close)
        stack.callback(dispatcher.close)
        self.file_watcher = FileWatcher(self.watched_folders, self.watched_files, self.check, self.scan)
        """Records external edits as they are made, while anybody is subscribed."""
        stack.callback(self.file_watcher.close)

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str],
        agents: Iterable[str | Agent] = (),
        *,
        language: Language | None = None,
        create: bool = True,
        scan: bool = True,
        sandbox: SandboxProbe | None = None,
        journal: Journal | None = None,
        checkout: str | os.PathLike[str] | None = None,
        platform: Platform | None = None,
    ) -> Self:
        """Open the workspace at ``root``, making it on first use, and register ``agents``. Where ``root`` is
        the address of a database (``postgresql://…``) its rows are there, and its files in the folder
        ``checkout`` (default: one in this user's cache); the folder remembers the address.

        What a crash of an earlier writer left undone is done first. ``language`` is that of a new workspace
        (default: English). With ``create=False`` a folder that is no workspace is refused. ``scan`` compares
        every file with the journal and records edits made by hand; without it only what is touched is
        compared. ``sandbox`` finds what commands run in (default: what this machine offers), ``journal`` has
        the rows (default: the SQLite file in the control folder); it is closed with the workspace.
        ``platform`` is the operating system (default: this machine's).

        Raises `WorkspaceNotFound`, `InvalidAgentId`, `InvalidRole`, `ConfigInvalid`, `WorkspaceLocked`, and
        `JournalError` where the journal cannot be read, `CheckoutTaken` where ``checkout`` shows another one,
        `LocksUnsupported` on a file system without locks, and `PlatformUnsupported`.
        """
        path = os.fspath(root)
        given = [Agent(each) if isinstance(each, str) else each for each in agents]
        address = path if is_server_address(path) else None
        if address is not None:
            path = _find_checkout(address, checkout)
        found = address or find_journal(path)
        if journal is None and found is not None and is_server_address(found):
            journal = open_journal(found)
        # Nothing is made yet: a workspace that is refused leaves nothing behind.
        try:
            if not (found if journal is None else journal.last_seq()):
                if not create:
                    raise WorkspaceNotFound(root=os.fspath(root))
                add_agents(Config(), given)
            if address is not None and find_journal(path) is None:
                keep_journal_address(path, address)
        except BaseException:
            if journal is not None:
                journal.close()
            raise
        workspace = cls(path, sandbox, journal, platform)
        try:
            workspace._prepare(given, language, scan)
        except BaseException:
            workspace.close()
            raise
        return workspace

    def _prepare(self, agents: Iterable[Agent], language: Language | None, scan: bool) -> None:
        restarted = self._checkout.begin()
        self.record_lost_processes()
        if self.journal.head("config", CONFIG_PATH) is None:
            self._write_config(render_config(Config(language=language or "en")), 0)
        if self.journal.is_shared:
            self._join_machines()
        if scan or restarted:
            self.reverts.finish_all()
            self._reconciler.scan(after_restart=restarted)
        else:
            self._reconciler.check("config", CONFIG_PATH)
        if scan or restarted:
            self._check_documents()
        self._check_enrolments()
        self.register(agents)

    def _check_enrolments(self) -> None:
        """Pin the row by which people closed the workspace; where the one that is pinned is gone, nobody
        decides until a person has looked."""
        # Closed workspaces are few: what reads state folders is loaded for those.
        from watchroom.transparency.enrolment_pin import EnrolmentPin
        from watchroom.transparency.state_folder import state_folder

        pin = EnrolmentPin(state_folder(), self._place)
        self.people.check_lost_with(lambda: pin.is_broken(self.journal))
        self.people.pin_with(pin.keep)
        if pin.is_broken(self.journal):
            if not self.people.is_recorded_as_lost():
                self._commits.commit(Note(SYSTEM, PEOPLE_LOST, *LOST_PLACE))
        elif (founding := self.people.find_founding()) is not None:
            pin.keep(founding)

    @property
    def _place(self) -> str:
        """Where the workspace is: its folder, or the address of its database."""
        return (find_journal(self.root) if self.journal.is_shared else None) or self.root

    def _join_machines(self) -> None:
        """Follow the rows of other machines; the first checkout that somebody named is the host."""
        is_cached = self.root == cached_checkout(find_journal(self.root) or "")
        if not is_cached and self._host.find() is None:
            # An agent's login may not: then a person's does, who opens it later.
            with suppress(JournalDenied):
                self._host.move_here(SYSTEM, self._commits.commit, only_first=True)
        self._remote.start()

    @property
    def host(self) -> CheckoutHost:
        """Which of the workspace's checkouts counts."""
        return self._host

    def move_host(self, actor: str) -> Row:
        """Have edits made by hand count in this checkout from now on, by the person ``actor``
        (``human:NAME``). Returns the row, of outcome ``conflict`` where another became the host meanwhile.
        Raises `JournalError`."""
        return self._host.move_here(actor, self._commits.commit)

    def register(self, agents: Iterable[Agent]) -> None:
        """Add these ``agents``, or change what is known of them. An id alone leaves a known agent as it is.
        Raises `InvalidAgentId`, `InvalidRole`, `ConfigInvalid`."""
        given = list(agents)
        for agent in given:
            validation.check_agent_id(agent.id)
        known = self.config.agents
        # An id alone registers an unknown agent; it does not take a known one's role away.
        new = [agent for agent in given if agent.id not in known or agent != Agent(agent.id)]
        wanted = [_still_in_task(agent, known) for agent in new]
        while True:
            try:
                self.registry.add(wanted, self._write_config)
                break
            except VersionConflict:
                continue
        self._checkout.make_folders(self.config.agents)

    def _write_config(self, text: str, expected: int) -> Row:
        draft = Write(SYSTEM, REGISTER, "config", CONFIG_PATH, text, expected=expected)
        row, head = self._store.write(draft)
        if row.outcome == "conflict" and expected:
            raise VersionConflict(row, head, None, text)
        return row

    @property
    def config(self) -> Config:
        return self.registry.current()

    def tools(self, agent: str, *, language: Language | None = None) -> Toolbox:
        """The toolbox of the registered ``agent``, which answers in ``language`` (default: the workspace's).
        Raises `UnknownAgent`."""
        return self._toolbox(self.registry.agent(agent).id, language)

    def tools_for_human(
        self, name: str, *, language: Language | None = None, reads_only: bool = False
    ) -> Toolbox:
        """The toolbox of the person called ``name``, who acts as ``human:NAME``, in ``language``
        (default: the workspace's); with ``reads_only`` only those that change nothing. Raises
        `InvalidAgentId`."""
        return self._toolbox(HUMAN_PREFIX + validation.check_human_name(name), language, reads_only)

    @property
    def sessions(self) -> Sessions:
        """Where agents run: their sessions, each step a row."""
        from watchroom.runtime.sessions import Sessions

        with self._loading_parts:
            if self._sessions is None:
                self._sessions = Sessions(self.session_zone, self.requests, self.budgets, self.dispatcher)
            return self._sessions

    def _toolbox(self, actor: str, language: Language | None, reads_only: bool = False) -> Toolbox:
        # The toolbox needs pydantic, slow to load: whoever only looks does not wait for it.
        from watchroom.toolbox import Toolbox

        return Toolbox(actor, self._store, self, language or self.config.language, reads_only=reads_only)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each commit of this process, once its outcome is known. Return the function
        that ends this.

        It is called on the thread that committed, or on a background thread. What it raises is logged.
        """
        return self._commits.subscribe(listener)

    @property
    def append_statistics(self) -> AppendStatistics:
        """How often this process appended to the journal, and how many rows it made."""
        return self._commits.statistics

    def record_lost_processes(self) -> None:
        """Say by a row that a process died which ran sessions or commands here, if nobody has said so.

        Done at `open`, and every few seconds by whoever runs something.
        """
        record_lost_processes(self._store)

    def flush(self) -> None:
        """Wait until every reading so far is a row, and every file is laid out that follows behind commits:
        versions, histories, metadata and checkpoints. Raises `JournalError`, `WorkspaceLocked`."""
        self._store.flush()

    def scan(self) -> list[Row]:
        """Compare all files with the journal; returns the rows of edits by hand that were not known. Raises
        `JournalError`, `WorkspaceLocked`."""
        return [*self._reconciler.scan(), *self._check_documents()]

    def check(self, files: Iterable[str | os.PathLike[str]]) -> list[Row]:
        """Compare only these ``files`` (paths beneath the root) with the journal; returns the rows of edits
        by hand that were not known. Raises `JournalError`, `WorkspaceLocked`."""
        relative = [tuple(os.path.relpath(file, self.root).split(os.sep)) for file in files]
        documents = {name for parts in relative if (name := document_at(parts))}
        edits = self._check_documents(documents) if documents else []
        return [*self._reconciler.check_files(relative), *edits]

    @property
    def watched_folders(self) -> tuple[str, ...]:
        """The absolute paths of the folders whose files, however deep, want a `check` when they change."""
        return tuple(os.path.join(self.root, *parts) for parts in WATCHED_FOLDERS)

    @property
    def watched_files(self) -> tuple[str, ...]:
        """The absolute paths of single files for `check` that lie in none of the `watched_folders`."""
        return tuple(os.path.join(self.root, *parts) for parts in watched_files())

    def _check_documents(self, names: Iterable[str] | None = None) -> list[Row]:
        """Put right the checkpoints of these documents, or of all; the rows of what somebody wrote there."""
        documents = self._documents()
        return documents.update_checkpoints(names) if documents else []

    def _documents(self) -> RealtimeZone | None:
        """The realtime zone, if there is anything in it."""
        return self.realtime if next(self.journal.heads("realtime"), None) else None

    def verify(self) -> list[Problem]:
        """Compare journal and files, whole; returns what disagrees, empty if nothing does. It reads
        everything and changes nothing. Raises `JournalError`."""
        return verify(self._store, self._reconciler, self.task_files, self.people, self._documents())

    def broken_versions(self, rows: Iterable[Row]) -> list[BrokenVersion]:
        """What is wrong with the versions of shared files that ``rows`` made; empty if each is as its
        checksum says."""
        return versions_broken(self._store, rows)

    def repair(self) -> list[Problem]:
        """Record what differs, then lay it out again; returns what remains wrong. Raises `JournalError`,
        `WorkspaceLocked`."""
        return repair(self._store, self._reconciler, self.task_files, self.people, self._documents())

    def export(
        self,
        as_of: int,
        target: str | os.PathLike[str],
        *,
        on_left_out: Callable[[Row], None] = lambda row: None,
    ) -> int:
        """Write the files to the folder ``target`` as they stood at row ``as_of``. Return their number.
        ``on_left_out`` is called with each current version whose text cannot be read: it has no file. Raise
        `JournalError`; OSError if ``target`` cannot be written."""
        return export(self.journal, as_of, os.fspath(target), self.platform, on_left_out=on_left_out)

    def import_git(self, path: str, actor: str, *, task: str = "", revision: str = "HEAD") -> Imported:
        """Bring the texts of the commit ``revision`` of the repository at ``path`` in, as ``actor``: into the
        shared files, or into the folder of ``task``. Raises `InvalidRepository`, `GitError`, `JournalError`,
        `TaskNotFound`, `OtherMachine`, `TaskQuotaExceeded`."""
        from watchroom.git import import_into_task, import_shared

        if task:
            return import_into_task(self.task_files, self.tasks.find_here(task).id, path, actor, revision)
        return import_shared(self._store, path, actor, revision)

    def _keep_snapshots(self, closing: Event) -> None:
        last = self.journal.last_seq()
        if last - self._snapshot_row < SNAPSHOT_ROWS:
            return
        # Most journals are too short ever to need it.
        from watchroom.projections.snapshot_process import keep_missing_apart
        from watchroom.projections.snapshots import keep_missing

        # Where that fails so many rows more are another try.
        self._snapshot_row = last
        if self._address is None:
            self._snapshot_row = keep_missing(self.journal, closing)
        else:
            self._snapshot_row = keep_missing_apart(self.journal, self._address, closing)

    @property
    def search_index(self) -> SearchIndex:
        """The index of all texts of the journal, which a thread keeps up while the workspace is open."""
        # Most calls are over before anything is indexed.
        from watchroom.search import SearchIndex

        with self._loading_parts:
            if self._search_index is None:
                self._search_index = SearchIndex(os.path.join(self.root, CONTROL))
            return self._search_index

    def search(self, query: SearchQuery) -> SearchResult:
        """What ``query`` finds in all that the journal holds, as far as it is indexed: the result says up to
        which row. Raises `InvalidSearch`, `JournalError`."""
        return self.search_index.search(self.journal, query)

    @property
    def sealing(self) -> Sealing:
        """The checkpoints of the journal, which a thread writes while the workspace is open."""
        # Most calls are over before one is due.
        from watchroom.transparency import Sealing

        with self._loading_parts:
            if self._sealing is None:
                sealing = Sealing(self.journal, self._commits.commit, self._place, self.people)
                sealing.sign_with(lambda: self.signing.signer)
                self.prepare_sealing(sealing)
                self._sealing = sealing
            return self._sealing

    def close(self) -> None:
        """Write what waits, and close everything. May be called again.

        If a part fails to close, the others are closed all the same. Then the error is raised.
        """
        self._closing.close()

    def _close_sessions(self) -> None:
        if self._sessions is not None:
            self._sessions.close()

    def _write_last_checkpoint(self) -> None:
        if self._sealing is not None:
            self._sealing.write_last()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _find_checkout(address: str, checkout: str | os.PathLike[str] | None) -> str:
    """Return the folder for the files of the workspace whose journal is at ``address``. Raises
    `CheckoutTaken` if it shows another workspace, `JournalError`."""
    folder = os.path.abspath(checkout or cached_checkout(address))
    if find_journal(folder) not in (None, address):
        raise CheckoutTaken(folder=folder)
    return folder


def _still_in_task(agent: Agent, known: Mapping[str, Agent]) -> Agent:
    """Registering an agent anew gives it no way out of its task."""
    before = known.get(agent.id)
    return agent._replace(task=before.task) if before is not None and not agent.task else agent
