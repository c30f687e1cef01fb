"""The connections of the dashboard to other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from watchroom_tui.formatters.machines import RemoteNeed

if TYPE_CHECKING:
    from watchroom.serving.machines.address import Machine
    from watchroom.serving.machines.connection import Machines, MachineView, Outcome
    from watchroom.serving.machines.messages import FarAnswer

    from watchroom_tui.context import Dashboard


class MachinesChanged(Message):
    """The machines have changed."""

    def __init__(self, views: tuple[MachineView, ...]) -> None:
        super().__init__()
        self.views = views


class AnswerSettled(Message):
    """The fate of an answer to another machine is known, or has become unknown."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


class MachineLinks:
    """Connects ``app`` to ``machines``."""

    def __init__(self, app: Dashboard, machines: Sequence[Machine]) -> None:
        self._app = app
        self._known = machines
        self._machines: Machines | None = None
        self._is_closed = False

    def open(self) -> None:
        """Begin to connect, if there are machines. Call this in a thread, because it loads a slow library."""
        if not self._known:
            return
        from watchroom.serving.machines.connection import Machines

        app = self._app
        machines = Machines(
            self._known,
            app.person,
            app.language,
            app.version,
            lambda views: app.post_message(MachinesChanged(views)),
            lambda outcome: app.post_message(AnswerSettled(outcome)),
        )
        machines.start()
        self._machines = machines
        app.post_message(MachinesChanged(machines.views))
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """End all connections. Call this in a thread."""
        self._is_closed = True
        machines, self._machines = self._machines, None
        if machines is not None:
            machines.close()

    def answer(
        self, item: RemoteNeed, decision: FarAnswer, text: str = "", values: Sequence[str] = ()
    ) -> None:
        """Send an answer. `AnswerSettled` reports its fate."""
        if self._machines is not None:
            self._machines.answer(item.view.name, item.need, decision, text, values)
