"""The services of a workspace, which tools and front ends use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from threading import RLock
from typing import TYPE_CHECKING

from watchroom.features.alerts.service import Alerts
from watchroom.features.boards.service import Boards
from watchroom.features.budgets.service import BudgetControl
from watchroom.features.config.rows import Agent
from watchroom.features.config.store import Store
from watchroom.features.conflicts.change_notices import ChangeNotices
from watchroom.features.conflicts.service import Conflicts
from watchroom.features.documents.reverts import DocumentReversal
from watchroom.features.files.service import PrivateFiles, SharedFiles
from watchroom.features.handoffs.service import Handoffs
from watchroom.features.links.service import Links
from watchroom.features.needs.service import Acknowledgements
from watchroom.features.people.service import DecisionSigning, PeopleRegistry, SignedSettings
from watchroom.features.plans.service import Plans
from watchroom.features.policy.service import Grants, WorkspacePolicy
from watchroom.features.requests.service import Requests
from watchroom.features.reverts.service import Reverts
from watchroom.features.reverts.withdrawals import make_withdrawals
from watchroom.features.routines.service import Routines
from watchroom.features.sessions.messages import Messages
from watchroom.features.sessions.service import SessionRecords
from watchroom.features.sessions.stops import StoppedAgents
from watchroom.features.tasks.files import TaskFiles
from watchroom.features.tasks.members import Members
from watchroom.features.tasks.service import Tasks
from watchroom.features.trees.comments import TreeComments
from watchroom.features.trees.rows import REPO
from watchroom.features.trees.service import Trees
from watchroom.kernel.checkout.layout import CONTROL, QUARANTINE
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.platform import Platform
from watchroom.platform.deferred_imports import LazyPart

if TYPE_CHECKING:
    from watchroom.features.buffers.service import Buffers
    from watchroom.features.checks.service import Checks
    from watchroom.features.conflicts.notifications import Notifications
    from watchroom.features.documents.service import Documents
    from watchroom.features.people.tokens import Tokens
    from watchroom.features.races.service import Races
    from watchroom.features.tasks.commands import Commands
    from watchroom.features.trees.calls import TreeCalls
    from watchroom.features.trees.commits import AgentCommits
    from watchroom.features.trees.landing import Landings
    from watchroom.features.trees.own_trees import OwnTrees
    from watchroom.features.trees.pull_requests import PullRequests
    from watchroom.features.trees.region_notices import RegionNotices
    from watchroom.platform.sandbox.probe import SandboxProbe


class Services:
    """The services of a workspace as attributes. Services that are slow to import are created on first use.

    Args:
        store: The journal and the files.
        reconciler: Finds external edits.
        root: The workspace's folder.
        register: Adds agents to the configuration.
        sandbox: Finds the kinds of sandbox for commands; None to test this machine.
        platform: The operating system.
        is_kept_elsewhere: Returns whether another process records changes.
    """

    def __init__(
        self,
        store: Store,
        reconciler: Reconciler,
        root: str,
        register: Callable[[Iterable[Agent]], None],
        sandbox: SandboxProbe | None,
        platform: Platform,
        is_kept_elsewhere: Callable[[], bool],
    ) -> None:
        self.loading = RLock()
        self._store = store
        self._reconciler = reconciler
        self._quarantine = os.path.join(root, CONTROL, QUARANTINE)
        self._sandbox = sandbox
        self._root = root
        self._platform = platform
        self.registry = store.registry
        self.policy = WorkspacePolicy(store)
        self.private = PrivateFiles(store, reconciler)
        self.handoff = Handoffs(store)
        self.collab = SharedFiles(store)
        self.boards = Boards(store)
        self.people = PeopleRegistry(store)
        self.conflicts = Conflicts(store, self.boards, reconciler, self.people)
        self.change_notices = ChangeNotices(store)
        self.acknowledgements = Acknowledgements(store)
        self.alerts = Alerts(store)
        self.links = Links(store)
        self.signing = DecisionSigning(store, self.people)
        self.grants = Grants(store, self.people)
        self.requests = Requests(store, self.people, self.grants)
        self.settings = SignedSettings(store, self.people)
        self.budgets = BudgetControl(store, self.requests, self.settings, self.people)
        self.session_zone = SessionRecords(store, self.policy, self.people)
        self.messages = Messages(store, self.session_zone)
        self.plans = Plans(store, self.messages)
        self.stops = StoppedAgents(store, self.session_zone)
        self.tasks = Tasks(store, root, self.people)
        self.routines = Routines(store, self.people)
        self.members = Members(store, self.tasks, register)
        self.task_files = TaskFiles(store, self.tasks)
        self.trees = Trees(store, root, platform, is_kept_elsewhere)
        self.tree_comments = TreeComments(store)
        self.conflicts.write_with(REPO, self.trees.write)
        self.reverts = Reverts(
            *(store, reconciler, self.tasks, self.task_files, self.trees),
            *(self.conflicts, self.stops, self.people),
            (*make_withdrawals(store, self.people), DocumentReversal(store.journal)),
        )

    @LazyPart
    def realtime(self) -> Documents:
        """The documents that several agents edit at the same time. Edits merge automatically."""
        # The engine is loaded with the first document.
        from watchroom.features.documents.service import Documents

        return Documents(self._store)

    @LazyPart
    def buffers(self) -> Buffers:
        """The texts that agents edit for themselves until they flush them."""
        # The editor needs pydantic, which is slow to load.
        from watchroom.features.buffers.service import Buffers
        from watchroom.features.buffers.sources import SourceServices

        sources = SourceServices(
            self.registry, self.private, self.collab, self.boards, self.task_files, self._reconciler
        )
        return Buffers(self._store, sources)

    @LazyPart
    def commands(self) -> Commands:
        """The commands of agents, which run in a sandbox."""
        # The modules that start processes are loaded with the first command.
        from watchroom.features.tasks.commands import Commands

        return Commands(
            *(self._store, self.task_files, self.requests, self.budgets, self.members),
            *(self.stops.wait_until_resumed, self._quarantine, self._sandbox),
        )

    @LazyPart
    def access(self) -> Tokens:
        """The tokens with which agents connect over the network."""
        from watchroom.features.people.tokens import Tokens

        return Tokens(self._store, self.people)

    @LazyPart
    def notifications(self) -> Notifications:
        """The rows that agents have not been notified of yet."""
        from watchroom.features.conflicts.notifications import Notifications

        return Notifications(self._store, self.conflicts)

    @LazyPart
    def tree_calls(self) -> TreeCalls:
        """Checks and records what clients' own tools do in working trees."""
        # The modules are needed only for hooks.
        from watchroom.features.trees.calls import TreeCalls

        return TreeCalls(self._store, self.trees, self.region_notices)

    @LazyPart
    def region_notices(self) -> RegionNotices:
        """The notices to agents about lines that others change in other working trees."""
        # The modules are needed only in repositories.
        from watchroom.features.trees.region_notices import RegionNotices

        return RegionNotices()

    @LazyPart
    def landings(self) -> Landings:
        """Merges the commits of working trees into a branch."""
        # Only people who land trees need the modules.
        from watchroom.features.trees.landing import Landings

        return Landings(self._store, self.trees, self.people.counts)

    @LazyPart
    def pull_requests(self) -> PullRequests:
        """Makes branches with the work of each author, and opens pull requests."""
        # Only people who open pull requests need the modules.
        from watchroom.features.trees.pull_requests import PullRequests

        return PullRequests(self._store, self.trees, self.people.counts)

    @LazyPart
    def agent_commits(self) -> AgentCommits:
        """Commits and tries the work of single agents in working trees."""
        # The modules are needed only for people who commit.
        from watchroom.features.trees.commits import AgentCommits

        return AgentCommits(self._store)

    @LazyPart
    def own_trees(self) -> OwnTrees:
        """Adds, lists and removes working trees."""
        # Only commands about trees need the modules.
        from platformdirs import user_state_path

        from watchroom.features.trees.own_trees import OwnTrees

        state = str(user_state_path("watchroom", appauthor=False))
        return OwnTrees(self._store, self.trees, self._root, self._platform, state)

    @LazyPart
    def races(self) -> Races:
        """Runs several agents on one prompt, each in a working tree of its own."""
        # Only the command race needs the modules.
        from watchroom.features.races.service import Races

        return Races(self._store, self.own_trees)

    @LazyPart
    def checks(self) -> Checks:
        """Checks agents that say that they are done."""
        # Only workspaces with checks need the modules.
        from watchroom.features.checks.service import Checks

        return Checks(
            *(self._store, self.trees, lambda: self.commands, self.session_zone),
            *(self.messages, self.budgets, self.members),
        )

    def close(self) -> None:
        """Stop commands, write overdue document checkpoints, lock keys, and close folders.

        If a part fails to close, the other parts are still closed.
        """
        with ExitStack() as stack:
            stack.callback(self.task_files.close)
            stack.callback(self.trees.close)
            if (documents := Services.realtime.loaded(self)) is not None:
                stack.callback(documents.close)
            if (commands := Services.commands.loaded(self)) is not None:
                stack.callback(commands.close)
            stack.callback(self.signing.close)
