"""The public interface: opens a shared file system, returns toolboxes, verifies, repairs and exports."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from threading import Event, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from watchroom import validation
from watchroom.errors import CheckoutTaken, JournalDenied, VersionConflict, WorkspaceNotFound
from watchroom.features.config.edit_rules import edit_rules
from watchroom.features.config.registry import REGISTER, Registry
from watchroom.features.config.rows import Agent, Config, add_agents, dump_config
from watchroom.features.config.store import Store
from watchroom.features.documents.rows import DOCUMENT_ZONE
from watchroom.features.overview.reads import BrokenVersion
from watchroom.features.people.service import LOST_PLACE
from watchroom.features.policy.service import AgentBreaker
from watchroom.features.services import Services
from watchroom.features.sessions.rules import row_address
from watchroom.features.sessions.service import record_lost_processes
from watchroom.features.trees.place import workspace_at
from watchroom.features.trees.service import FOLLOW_SECONDS
from watchroom.history.export import export
from watchroom.history.verify import Problem, repair, verify, versions_broken
from watchroom.kernel.background import EVERY_ROW, Background
from watchroom.kernel.checkout.file_watcher import FileWatcher
from watchroom.kernel.checkout.host import CheckoutHost
from watchroom.kernel.checkout.keeper import Keeper
from watchroom.kernel.checkout.layout import (
    CONTROL,
    EDITED,
    JOURNAL_NAME,
    WATCHED_FOLDERS,
    document_at,
    place,
    watched_files,
)
from watchroom.kernel.checkout.location import cached_checkout, find_journal, keep_journal_address
from watchroom.kernel.checkout.materializer import Materializer
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.commit import AppendStatistics, GroupCommit
from watchroom.kernel.journal import BACKSTOP_SECONDS, Journal, is_server_address, open_journal
from watchroom.kernel.journal.side_stores import SNAPSHOT_ROWS
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import HUMAN_PREFIX, PEOPLE_LOST, SYSTEM, Note, Row, Write, Zone
from watchroom.platform import Platform, detect_platform
from watchroom.platform.deferred_imports import LazyPart
from watchroom.platform.files import keep_from_git, make_private
from watchroom.texts import Language

if TYPE_CHECKING:
    from watchroom.features.alerts.keeper import AlertKeeper
    from watchroom.features.alerts.payloads import AlertWording
    from watchroom.features.buffers.service import Buffers
    from watchroom.features.calls.toolbox import Toolbox
    from watchroom.features.checks.service import Checks
    from watchroom.features.conflicts.notifications import Notifications
    from watchroom.features.documents.service import Documents
    from watchroom.features.people.tokens import Tokens
    from watchroom.features.races.service import Races
    from watchroom.features.routines.service import Routines
    from watchroom.features.sessions.runtime.sessions import Sessions
    from watchroom.features.tasks.commands import Commands
    from watchroom.features.trees.calls import TreeCalls
    from watchroom.features.trees.commits import AgentCommits
    from watchroom.features.trees.landing import Landings
    from watchroom.features.trees.own_trees import OwnTrees
    from watchroom.features.trees.pull_requests import PullRequests
    from watchroom.history.fork import Fork
    from watchroom.history.git import Imported
    from watchroom.history.seal import Sealing
    from watchroom.history.search import SearchIndex, SearchQuery, SearchResult
    from watchroom.platform.sandbox.probe import SandboxProbe

_ALERT_SECONDS: Final = 2.0
"""Seconds between checks whether this process sends alerts."""
_SNAPSHOT_SECONDS: Final = 10.0
"""Seconds between checks for missing snapshots."""
_SEAL_SECONDS: Final = 10.0
"""Seconds between checks whether a seal of the journal is due."""
_INDEX_SECONDS: Final = 2.0
"""Seconds between checks for rows that are missing in the search index."""
_log = logging.getLogger("watchroom")


class Workspace:
    """A shared file system on disk. All public methods may be called from any thread.

    Use `open` to make one, and close it (it is a context manager):

        with Workspace.open("team/", agents=["alice", "bob"]) as workspace:
            workspace.tools("alice").dispatch_tool_call("collab_list", {})

    Args:
        root: Its folder.
        sandbox: Finds the kinds of sandbox for commands; see `open` for the default.
        journal: The journal with its rows. It is closed with the workspace.
        platform: The operating system.
    """

    def __init__(
        self,
        root: str,
        sandbox: SandboxProbe | None = None,
        journal: Journal | None = None,
        platform: Platform | None = None,
    ) -> None:
        self.root = os.path.abspath(root)
        self.platform = platform or detect_platform()
        self.prepare_sealing: Callable[[Sealing], None] = lambda _: None
        """Called once with the sealing, before the first seal. It decides where seals are published."""
        self.loading = RLock()
        self._errors: list[Exception] = []
        with ExitStack() as self._parts:
            self._store = self._open_store(journal)
            self._open_services(sandbox)
            self._open_background()
            self._parts = self._parts.pop_all()

    def _open_store(self, journal: Journal | None) -> Store:
        """Open the journal and the files."""
        if journal is not None:
            self._close_later("the journal", journal.close)
        control = os.path.join(self.root, CONTROL)
        os.makedirs(control, mode=0o700, exist_ok=True)
        keep_from_git(control)
        address = find_journal(self.root) or os.path.join(control, JOURNAL_NAME)
        self._address = address if journal is None else None
        """The journal's address for other processes; None if the caller opened the journal."""
        if journal is None:
            journal = open_journal(address, self.platform)
            self._close_later("the journal", journal.close)
        self.journal: Journal = journal
        self.background = Background(journal, row_address)
        """Delivers new rows of all processes, and runs the work that follows commits."""
        commits = GroupCommit(journal, self.background)
        host = CheckoutHost(journal, self.root, control)
        checkout = Materializer(
            self.root,
            journal,
            commits.append,
            self.background,
            host,
            self.platform,
            # The people need the checkout first. No files are written before both exist.
            lambda row: self.people.counts(row),
        )
        self._close_later("the files", checkout.close)
        self._close_later("background jobs", self.background.flush)
        commits.follow(checkout)
        make_private(control)
        self.registry = Registry(journal)
        """The registered agents and the settings, in their current state."""
        return Store(journal, commits, checkout, host, self.background, self.registry)

    def _open_services(self, sandbox: SandboxProbe | None) -> None:
        store = self._store
        self._keeper = Keeper(os.path.join(self.root, CONTROL), self.platform)
        self._reconciler = Reconciler(
            self.journal,
            store.checkout,
            store.commits.append,
            edit_rules(self.registry),
            store.host,
            store.commits.sign,
        )
        services = Services(
            *(store, self._reconciler, self.root, self.register, sandbox, self.platform),
            self._keeper.is_elsewhere,
        )
        self._services = services
        self._close_later("the last checkpoint of the journal", self._write_last_checkpoint)
        self._close_later("the services", services.close)
        self._close_later("sessions", self._close_sessions)
        self.policy = services.policy
        self.private = services.private
        self.handoff = services.handoff
        self.collab = services.collab
        self.boards = services.boards
        self.people = services.people
        self.conflicts = services.conflicts
        self.acknowledgements = services.acknowledgements
        self.alerts = services.alerts
        self.links = services.links
        self.signing = services.signing
        self.requests = services.requests
        self.grants = services.grants
        self.settings = services.settings
        self.budgets = services.budgets
        self.session_zone = services.session_zone
        self.messages = services.messages
        self.stops = services.stops
        self.tasks = services.tasks
        self.members = services.members
        self.task_files = services.task_files
        self.trees = services.trees
        self.reverts = services.reverts
        self.signing.anchor_with(lambda: self.sealing.newest_body())

    def _open_background(self) -> None:
        self._snapshot_row = 0
        """The row up to which no snapshot is missing, as far as this process knows."""
        background = self.background
        background.subscribe((EVERY_ROW,), AgentBreaker(self._store).watch, start=False)
        self._close_later("the keeper's lock", self._keeper.close)
        timers: tuple[tuple[str, float, Callable[[Event], object]], ...] = (
            ("seals", _SEAL_SECONDS, lambda closing: self.sealing.write_due(closing)),
            (
                "the search index",
                _INDEX_SECONDS,
                lambda closing: self.search_index.keep_up(self.journal, closing),
            ),
            ("snapshots", _SNAPSHOT_SECONDS, self._keep_snapshots),
            ("lost processes", BACKSTOP_SECONDS, self._look_after_processes),
            ("working trees", FOLLOW_SECONDS, lambda closing: self._look_after_trees()),
        )
        for name, seconds, work in timers:
            background.repeat(name, seconds, self._keeper.unless_elsewhere(work))
        self._alert_keeper: AlertKeeper | None = None
        self._close_later("alerts", self._close_alerts)
        self._close_later("the background", background.close)
        self.file_watcher = FileWatcher(
            self.watched_folders,
            self.watched_files,
            self._keeper.unless_elsewhere(self.check),
            self._keeper.unless_elsewhere(self.scan),
            self.platform,
        )
        """Records external edits when they are made, while there are subscribers and no other process keeps
        the workspace."""
        self._close_later("the file watcher", self.file_watcher.close)

    def keep(self) -> bool:
        """Do the work that one process does for all: record external edits, seal, index, write snapshots and
        detect lost processes.

        Return False if another process does it. Raise `LocksUnsupported`.
        """
        if not self._keeper.claim():
            return False
        self.file_watcher.subscribe()
        self.background.start()
        self.trees.keep()
        if self.trees.common:
            self._preview_conflicts()
        return True

    def _preview_conflicts(self) -> None:
        # Most workspaces are in no repository.
        from watchroom.features.trees.preview import DELAY_SECONDS, ConflictPreview

        def schedule(update: Callable[[], None]) -> None:
            self.background.schedule("previews", update, DELAY_SECONDS)

        ConflictPreview(self._store, self.trees, self._services.region_notices, schedule).start()

    def _look_after_trees(self) -> None:
        self.trees.look_after()
        if self.trees.common:
            self.landings.resume()

    def send_alerts(self, wording: AlertWording, environ: Mapping[str, str] = os.environ) -> None:
        """Send alerts by the configuration while the workspace is open and no other process sends them.

        The process that keeps the workspace sends them. Errors are logged. Call it once.

        Args:
            wording: The words of the messages.
            environ: The environment that resolves variables in addresses.
        """
        self.background.repeat("alerts", _ALERT_SECONDS, lambda _: self._check_alerts(wording, environ))

    def _check_alerts(self, wording: AlertWording, environ: Mapping[str, str]) -> None:
        if self._alert_keeper is None:
            if not self.config.alerts.targets:
                return
            # Most workspaces have no targets.
            from watchroom.features.alerts.keeper import AlertKeeper

            self._alert_keeper = AlertKeeper(
                *(self.journal, self.root, self.alerts, self.links, lambda: self.config.alerts),
                *(self._keeper.is_elsewhere, wording, environ),
            )
        self._alert_keeper.check()

    def _close_alerts(self) -> None:
        if self._alert_keeper is not None:
            self._alert_keeper.close()

    def _close_later(self, name: str, close: Callable[[], object]) -> None:
        """Call ``close`` when the workspace is closed. Functions that were passed later are called first."""

        def close_part() -> None:
            try:
                close()
            except Exception as error:  # noqa: BLE001  # `close` raises the first one
                _log.warning("%s could not be closed", name, exc_info=True)
                self._errors.append(error)

        self._parts.callback(close_part)

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
        """Open a workspace. Create it if it does not exist. If an earlier process crashed, write the files
        that it left out.

        Args:
            root: Its folder, a working tree or git folder of a repository that has a workspace, or the
                address of a database (``postgresql://…``) with its rows. A folder's own workspace comes
                first.
            agents: Agents to register.
            language: The language of a new workspace, default: English.
            create: If False, refuse a folder without a workspace.
            scan: Compare every file with the journal and record external edits. Otherwise files are only
                compared when they are used.
            sandbox: Finds the kinds of sandbox for commands, default: the kinds that work on this machine.
            journal: The journal with the rows, default: the SQLite file in the control folder. It is closed
                with the workspace.
            checkout: The folder of the files if the rows are in a database, default: a folder in this user's
                cache. The folder remembers the address.
            platform: The operating system, default: this machine's.

        Raises:
            WorkspaceNotFound: There is no workspace, and ``create`` is False.
            InvalidAgentId, InvalidRole, ConfigInvalid: An agent cannot be registered.
            JournalError: The journal cannot be read.
            WorkspaceLocked: Another process held a lock for too long.
            CheckoutTaken: ``checkout`` belongs to another workspace.
            LocksUnsupported, PlatformUnsupported: The file system or the operating system is not supported.
        """
        path = os.fspath(root)
        given = [Agent(each) if isinstance(each, str) else each for each in agents]
        address = path if is_server_address(path) else None
        if address is not None:
            path = _find_checkout(address, checkout)
        found = address or find_journal(path)
        if not found and journal is None:
            path = workspace_at(path) or path
            found = find_journal(path)
        if journal is None and found is not None and is_server_address(found):
            journal = open_journal(found)
        # Nothing is created yet, so that a refused workspace leaves no files behind.
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
        restarted = self._store.checkout.begin()
        self.record_lost_processes()
        if self.journal.head("config", CONFIG_PATH) is None:
            self._write_config(dump_config(Config(language=language or "en")), 0)
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
        """Pin the row with which people closed the workspace. If the pinned row was deleted, no decision
        counts until a person has checked this."""
        # Few workspaces are closed, and only these need the modules.
        from watchroom.history.seal.anchors import EnrolmentPin, state_folder

        pin = EnrolmentPin(state_folder(), self._place)
        self.people.check_lost_with(lambda: pin.is_broken(self.journal))
        self.people.pin_with(pin.keep)
        if pin.is_broken(self.journal):
            if not self.people.is_recorded_as_lost():
                self._store.commits.commit(Note(SYSTEM, PEOPLE_LOST, *LOST_PLACE))
        elif (founding := self.people.find_founding()) is not None:
            pin.keep(founding)

    @property
    def _place(self) -> str:
        """The workspace's folder, or the address of its database."""
        return (find_journal(self.root) if self.journal.is_shared else None) or self.root

    def _join_machines(self) -> None:
        """Follow the rows of other machines. The first checkout with its own folder becomes the host."""
        is_cached = self.root == cached_checkout(find_journal(self.root) or "")
        if not is_cached and self._store.host.find() is None:
            # An agent's login has no permission for this. The next person who opens the workspace does it.
            with suppress(JournalDenied):
                self._store.host.move_here(SYSTEM, self._store.commits.commit, only_first=True)
        self.background.follow("writing files", self._store.checkout.catch_up)

    @property
    def host(self) -> CheckoutHost:
        """The host: the checkout in which external edits count."""
        return self._store.host

    def find_edited_file(self, zone: Zone, path: str) -> str | None:
        """Return the absolute path of the file of ``path`` in ``zone``. None if external edits of the file do
        not count in this checkout. Raise `JournalError`."""
        if zone not in EDITED or not self.host.is_here():
            return None
        return os.path.join(self.root, *place(zone, path))

    def move_host(self, actor: str) -> Row:
        """Make this checkout the host, in which external edits count, as the person ``actor``
        (``human:NAME``). Return the row.

        Its outcome is ``conflict`` if another checkout became the host in the meantime. Raise
        `JournalError`.
        """
        return self._store.host.move_here(actor, self._store.commits.commit)

    def register(self, agents: Iterable[Agent]) -> None:
        """Register ``agents``, or change their roles. A mere id does not change a registered agent. Raise
        `InvalidAgentId`, `InvalidRole`, `ConfigInvalid`."""
        given = list(agents)
        for agent in given:
            validation.check_agent_id(agent.id)
        known = self.config.agents
        # A mere id registers an unknown agent. It does not remove the role of a known agent.
        new = [agent for agent in given if agent.id not in known or agent != Agent(agent.id)]
        wanted = [_still_in_task(agent, known) for agent in new]
        while True:
            try:
                self.registry.add(wanted, self._write_config)
                break
            except VersionConflict:
                continue
        self._store.checkout.make_folders(self.config.agents)

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
        """Return the toolbox of the registered ``agent``. ``language``: the language of its answers, default
        the workspace's. Raise `UnknownAgent`."""
        return self._toolbox(self.registry.agent(agent).id, language)

    def tools_for_human(
        self, name: str, *, language: Language | None = None, reads_only: bool = False
    ) -> Toolbox:
        """Return the toolbox of a person, who acts as ``human:NAME``. Raise `InvalidAgentId`.

        Args:
            name: The person's name.
            language: The language of its answers, default: the workspace's.
            reads_only: Offer only tools that change nothing.
        """
        return self._toolbox(HUMAN_PREFIX + validation.check_human_name(name), language, reads_only)

    @property
    def realtime(self) -> Documents:
        """The documents that several agents edit at the same time. Edits merge automatically."""
        return self._services.realtime

    @property
    def buffers(self) -> Buffers:
        """The texts that agents edit for themselves until they flush them."""
        return self._services.buffers

    @property
    def commands(self) -> Commands:
        """The commands of agents, which run in a sandbox."""
        return self._services.commands

    @property
    def access(self) -> Tokens:
        """The tokens with which agents connect over the network."""
        return self._services.access

    @property
    def tree_calls(self) -> TreeCalls:
        """Checks and records the effects of clients' own tools in working trees."""
        return self._services.tree_calls

    @property
    def agent_commits(self) -> AgentCommits:
        """Commits and tries the work of single agents in working trees."""
        return self._services.agent_commits

    @property
    def landings(self) -> Landings:
        """Merges the commits of working trees into a branch, such as the branch of the main tree."""
        return self._services.landings

    @property
    def pull_requests(self) -> PullRequests:
        """Makes branches with one commit per author of a working tree, and opens pull requests."""
        return self._services.pull_requests

    @property
    def own_trees(self) -> OwnTrees:
        """Adds, lists and removes working trees."""
        return self._services.own_trees

    @property
    def routines(self) -> Routines:
        """Starts agents regularly, or when a file or a git ref changes."""
        return self._services.routines

    @property
    def races(self) -> Races:
        """The races of several agents on one prompt."""
        return self._services.races

    @property
    def checks(self) -> Checks:
        """The checks of agents that say that they are done."""
        return self._services.checks

    @property
    def notifications(self) -> Notifications:
        """The rows that agents have not been notified of yet."""
        return self._services.notifications

    @LazyPart
    def sessions(self) -> Sessions:
        """The sessions in which agents run. Each step is a row."""
        from watchroom.features.sessions.runtime.sessions import Sessions

        return Sessions(self.session_zone, self.requests, self.budgets, self.background)

    def _toolbox(self, actor: str, language: Language | None, reads_only: bool = False) -> Toolbox:
        # The toolbox needs pydantic, which loads slowly. Readers do not need it.
        from watchroom.features.calls.toolbox import Toolbox

        return Toolbox(
            actor, self._store, self._services, language or self.config.language, reads_only=reads_only
        )

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` on a background thread after commits of this process. Return an unsubscribe
        function.

        Commits in quick succession cause one call. Errors of ``listener`` are logged.
        """
        return self.background.on_append(listener)

    @property
    def append_statistics(self) -> AppendStatistics:
        """The number of appends of this process, and the number of their rows."""
        return self._store.commits.statistics

    def record_lost_processes(self) -> None:
        """Record dead processes that ran sessions or commands here, unless they are already recorded.

        `open` does this, and every process that delivers rows does it every five seconds.
        """
        record_lost_processes(self._store)

    def _look_after_processes(self, _: Event) -> None:
        if self.background.is_delivering:
            self.record_lost_processes()

    def flush(self) -> None:
        """Wait until all earlier reads are rows, and all files that follow commits are written: versions,
        histories, metadata and checkpoints. Raise `JournalError`, `WorkspaceLocked`."""
        self._store.flush()

    def scan(self) -> list[Row]:
        """Compare all files with the journal. Return the rows of new external edits. Raise `JournalError`,
        `WorkspaceLocked`."""
        return [*self._reconciler.scan(), *self._check_documents()]

    def check(self, files: Iterable[str | os.PathLike[str]]) -> list[Row]:
        """Compare ``files`` (paths below the root) with the journal. Return the rows of new external edits.
        Raise `JournalError`, `WorkspaceLocked`."""
        relative = [tuple(os.path.relpath(file, self.root).split(os.sep)) for file in files]
        documents = {name for parts in relative if (name := document_at(parts))}
        edits = self._check_documents(documents) if documents else []
        return [*self._reconciler.check_files(relative), *edits]

    @property
    def watched_folders(self) -> tuple[str, ...]:
        """The absolute paths of the folders whose files, at any depth, must be passed to `check` when they
        change."""
        return tuple(os.path.join(self.root, *parts) for parts in WATCHED_FOLDERS)

    @property
    def watched_files(self) -> tuple[str, ...]:
        """The absolute paths of single files, outside of the `watched_folders`, that must be passed to
        `check` when they change."""
        return tuple(os.path.join(self.root, *parts) for parts in watched_files())

    def _check_documents(self, names: Iterable[str] | None = None) -> list[Row]:
        """Correct the checkpoints of the documents ``names``, default: all. Return the rows of external
        edits."""
        documents = self._documents()
        return documents.update_checkpoints(names) if documents else []

    def _documents(self) -> Documents | None:
        """The realtime documents, None if the workspace has no documents."""
        return self.realtime if next(self.journal.heads(DOCUMENT_ZONE), None) else None

    def verify(self) -> list[Problem]:
        """Compare the whole journal with all files. Return the differences. Reads all data and changes
        nothing. Raise `JournalError`."""
        return verify(self._store, self._reconciler, self.task_files, self.people, self._documents())

    def broken_versions(self, rows: Iterable[Row]) -> list[BrokenVersion]:
        """Return the versions of shared files among ``rows`` whose text does not match its checksum."""
        return versions_broken(self._store, rows)

    def repair(self) -> list[Problem]:
        """Record the differences, then write the files again. Return the differences that remain. Raise
        `JournalError`, `WorkspaceLocked`."""
        return repair(self._store, self._reconciler, self.task_files, self.people, self._documents())

    def export(
        self,
        as_of: int,
        target: str | os.PathLike[str],
        *,
        on_left_out: Callable[[Row], None] = lambda row: None,
    ) -> int:
        """Write the files as of row ``as_of`` to the folder ``target``. Return their number.

        ``on_left_out`` is called with each current version without a file, because its text cannot be read.
        Raise `JournalError`; OSError if ``target`` cannot be written.
        """
        return export(self.journal, as_of, os.fspath(target), self.platform, on_left_out=on_left_out)

    @classmethod
    def fork(
        cls,
        journal: Journal,
        until: int,
        out: str | os.PathLike[str],
        on_progress: Callable[[int, int], None] = lambda _, __: None,
    ) -> Fork:
        """Create a workspace in the new folder ``out`` from the rows of ``journal`` up to row ``until``.

        ``on_progress`` is called after each batch with the number of the last copied row, and ``until``.
        Raise FileExistsError if ``out`` exists, `JournalError`, `WorkspaceLocked`, OSError.
        """
        from watchroom.history.fork import fork_workspace

        def write_files(root: str) -> None:
            with cls.open(root, create=False) as workspace:
                workspace.flush()

        return fork_workspace(journal, until, out, write_files, on_progress)

    def import_git(self, path: str, actor: str, *, task: str = "", revision: str = "HEAD") -> Imported:
        """Import the texts of a commit of a git repository.

        Args:
            path: The repository.
            actor: Who imports them.
            task: The task that gets the files in its folder. By default, they become shared files.
            revision: The commit.

        Raises:
            InvalidRepository, GitError: The repository or the commit cannot be read.
            TaskNotFound, OtherMachine, TaskQuotaExceeded: The task cannot take the files.
            JournalError: The journal cannot be read or written.
        """
        from watchroom.history.git import import_into_task, import_shared

        if task:
            return import_into_task(self.task_files, self.tasks.find_here(task).id, path, actor, revision)
        return import_shared(self._store, path, actor, revision)

    def _keep_snapshots(self, closing: Event) -> None:
        last = self.journal.last_seq()
        if last - self._snapshot_row < SNAPSHOT_ROWS:
            return
        # Most journals are too short to need snapshots.
        from watchroom.features.overview.snapshots import keep_missing, keep_missing_apart

        # After a failure, it is tried again after the same number of rows.
        self._snapshot_row = last
        if self._address is None:
            self._snapshot_row = keep_missing(self.journal, closing)
        else:
            self._snapshot_row = keep_missing_apart(self.journal, self._address, closing)

    @LazyPart
    def search_index(self) -> SearchIndex:
        """The index of all texts of the journal. It is updated while the workspace is open."""
        # Most processes end before any indexing starts.
        from watchroom.history.search import SearchIndex

        return SearchIndex(os.path.join(self.root, CONTROL))

    def search(self, query: SearchQuery) -> SearchResult:
        """Search all indexed texts of the journal. The result has the last indexed row. Raise
        `InvalidSearch`, `JournalError`."""
        return self.search_index.search(self.journal, query)

    @LazyPart
    def sealing(self) -> Sealing:
        """The seals of the journal, which are written while the workspace is open."""
        # Most processes end before a seal is due.
        from watchroom.history.seal import Sealing

        sealing = Sealing(self.journal, self._store.commits.commit, self._place, self.people)
        sealing.sign_with(lambda: self.signing.signer)
        self.prepare_sealing(sealing)
        return sealing

    def close(self) -> None:
        """Finish the scheduled work, and close everything. May be called again.

        If a part fails to close, the other parts are still closed. Then the first error is raised.
        """
        self._parts.close()
        errors, self._errors = self._errors, []
        if errors:
            raise errors[0]

    def _close_sessions(self) -> None:
        if (sessions := Workspace.sessions.loaded(self)) is not None:
            sessions.close()

    def _write_last_checkpoint(self) -> None:
        if (sealing := Workspace.sealing.loaded(self)) is not None:
            sealing.write_last()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _find_checkout(address: str, checkout: str | os.PathLike[str] | None) -> str:
    """Return the folder for the files of the workspace whose journal is at ``address``. Raise
    `CheckoutTaken` if it belongs to another workspace, `JournalError`."""
    folder = os.path.abspath(checkout or cached_checkout(address))
    if find_journal(folder) not in (None, address):
        raise CheckoutTaken(folder=folder)
    return folder


def _still_in_task(agent: Agent, known: Mapping[str, Agent]) -> Agent:
    """Return ``agent`` with its task, because registering it again must not release it from the task."""
    before = known.get(agent.id)
    return agent._replace(task=before.task) if before is not None and not agent.task else agent
