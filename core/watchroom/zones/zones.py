"""All zones of a workspace over one store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING

from watchroom.checkout.layout import CONTROL, QUARANTINE
from watchroom.checkout.reconciler import Reconciler
from watchroom.registry import Registry
from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.config import Agent
from watchroom.zones.acknowledgements import Acknowledgements
from watchroom.zones.alerts import Alerts
from watchroom.zones.boards import BoardZone
from watchroom.zones.budgets import BudgetZone
from watchroom.zones.collab import CollabZone
from watchroom.zones.conflict_settlement import ConflictSettlement
from watchroom.zones.decision_signing import DecisionSigning
from watchroom.zones.document_reverts import DocumentReversal
from watchroom.zones.handoff import HandoffZone
from watchroom.zones.leases import Leases
from watchroom.zones.members import Members
from watchroom.zones.messages import Messages
from watchroom.zones.people import PeopleZone
from watchroom.zones.policy_guard import PolicyGuard
from watchroom.zones.private import PrivateZone
from watchroom.zones.requests import RequestZone
from watchroom.zones.revert_withdrawals import make_withdrawals
from watchroom.zones.reverts import RevertZone
from watchroom.zones.sessions import SessionZone
from watchroom.zones.settings import SettingsZone
from watchroom.zones.stops import StopZone
from watchroom.zones.store import Store
from watchroom.zones.task_files import TaskFiles
from watchroom.zones.tasks import Tasks

if TYPE_CHECKING:
    from watchroom.sandbox.probe import SandboxProbe
    from watchroom.zones.buffers.zone import BufferZone
    from watchroom.zones.commands import CommandZone
    from watchroom.zones.notifications import Notifications
    from watchroom.zones.realtime import RealtimeZone
    from watchroom.zones.tokens import Tokens


class Zones:
    """Everything that tools act in, as attributes; what is slow to load is loaded with its first use.

    ``store`` has the journal and the files beneath ``root``, ``reconciler`` finds edits made by hand,
    ``register`` adds agents to the config, ``dispatcher`` delivers new rows, ``sandbox`` finds what commands
    run in.
    """

    def __init__(
        self,
        store: Store,
        reconciler: Reconciler,
        root: str,
        register: Callable[[Iterable[Agent]], None],
        dispatcher: RowDispatcher,
        sandbox: SandboxProbe | None,
    ) -> None:
        self._store = store
        self._reconciler = reconciler
        self._quarantine = os.path.join(root, CONTROL, QUARANTINE)
        self._sandbox = sandbox
        self.dispatcher = dispatcher
        """Delivers new rows, whichever process made them."""
        self.registry: Registry = store.registry
        """Who works here, as it is now."""
        self.policy = PolicyGuard(store)
        self.private = PrivateZone(store, reconciler)
        self.handoff = HandoffZone(store)
        self.collab = CollabZone(store)
        self.boards = BoardZone(store, Leases(store))
        self.people = PeopleZone(store)
        self.conflicts = ConflictSettlement(store, self.collab, self.boards, reconciler, self.people)
        self.acknowledgements = Acknowledgements(store)
        self.alerts = Alerts(store)
        self.signing = DecisionSigning(store, self.people)
        self.requests = RequestZone(store, self.people)
        self.settings = SettingsZone(store, self.people)
        self.budgets = BudgetZone(store, self.requests, self.settings, self.people)
        self.session_zone = SessionZone(store, self.policy, self.people)
        self.messages = Messages(store, self.session_zone)
        self.stops = StopZone(store, self.session_zone)
        self.tasks = Tasks(store, root, self.people)
        self.members = Members(store, self.tasks, register)
        self.task_files = TaskFiles(store, self.tasks)
        self.reverts = RevertZone(
            *(store, reconciler, self.tasks, self.task_files, self.conflicts, self.stops, self.people),
            (*make_withdrawals(store, self.people), DocumentReversal(store.journal)),
        )
        self._loading = Lock()
        self._realtime: RealtimeZone | None = None
        self._buffers: BufferZone | None = None
        self._commands: CommandZone | None = None

    @property
    def realtime(self) -> RealtimeZone:
        """The documents that several edit at once and that merge by themselves."""
        # The engine is loaded with the first document.
        from watchroom.zones.realtime import RealtimeZone

        with self._loading:
            if self._realtime is None:
                self._realtime = RealtimeZone(self._store)
            return self._realtime

    @property
    def buffers(self) -> BufferZone:
        """The texts that agents have to themselves until they flush them."""
        # The editor needs pydantic, slow to load.
        from watchroom.zones.buffers.sources import SourceZones
        from watchroom.zones.buffers.zone import BufferZone

        with self._loading:
            if self._buffers is None:
                sources = SourceZones(
                    self.registry, self.private, self.collab, self.boards, self.task_files, self._reconciler
                )
                self._buffers = BufferZone(self._store, sources)
            return self._buffers

    @property
    def commands(self) -> CommandZone:
        """Where agents' commands run, in a sandbox."""
        # What starts processes is loaded with the first of them.
        from watchroom.zones.command_approvals import CommandApprovals
        from watchroom.zones.commands import CommandZone

        with self._loading:
            if self._commands is None:
                approvals = CommandApprovals(self._store, self.requests, self.dispatcher)
                self._commands = CommandZone(
                    *(self._store, self.task_files, approvals, self.members.has_ended, self.dispatcher),
                    *(self._quarantine, self._sandbox),
                )
            return self._commands

    @property
    def access(self) -> Tokens:
        """The tokens by which agents come in over the network."""
        from watchroom.zones.tokens import Tokens

        return Tokens(self._store, self.people)

    @property
    def notifications(self) -> Notifications:
        """What has come for agents that they were not told yet."""
        from watchroom.zones.notifications import Notifications

        return Notifications(self._store, self.conflicts)

    def close(self) -> None:
        """Stop commands, write overdue document checkpoints, lock keys, and close folders.

        If a part fails to close, the others are closed all the same.
        """
        with ExitStack() as stack:
            stack.callback(self.task_files.close)
            if self._realtime is not None:
                stack.callback(self._realtime.close)
            if self._commands is not None:
                stack.callback(self._commands.close)
            stack.callback(self.signing.close)
