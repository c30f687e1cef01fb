"""What nobody runs any more, by the leases that processes hold: before any row says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from watchroom.journal import Presence
from watchroom.model import LOST, PRESENCE, SYSTEM
from watchroom.projections.model import AgentView, Model, Need
from watchroom.projections.tasks import CommandView
from watchroom.rules.needs import URGENCY
from watchroom.rules.presence import presence_behind


def with_presences(model: Model, presences: Callable[[], Sequence[Presence]]) -> Model:
    """``model`` with what is not seen alive marked so: agents whose session nobody runs, commands, and a need
    for each process that died; the same model where all are alive. ``presences`` is asked where the model
    names any process, for leases as they are now: after the model's rows were read."""
    running = {view.agent.id: run for view in model.agents if (run := _run_by(view))}
    commands = {each.path: run for each in model.commands if (run := _command_run_by(each))}
    if not running and not commands:
        return model
    leases = {each.id: each for each in presences()}
    alive = {each.id for each in leases.values() if each.is_alive}
    if alive.issuperset(running.values()) and alive.issuperset(commands.values()):
        return model
    agents = tuple(
        view._replace(is_lost=True) if running.get(view.agent.id, "") not in {"", *alive} else view
        for view in model.agents
    )
    recorded = {need.key for need in model.needs if need.kind == "lost"}
    needs = [*model.needs]
    for lease in leases.values():
        lost = [view for view in agents if running.get(view.agent.id) == lease.id]
        if lost and not lease.is_alive and lease.id not in recorded:
            needs.append(_need_of(lease, lost))
    needs.sort(key=lambda need: URGENCY.index(need.kind))
    return model._replace(
        agents=agents,
        needs=tuple(needs),
        commands=tuple(
            each._replace(is_lost=True) if commands.get(each.path, "") not in {"", *alive} else each
            for each in model.commands
        ),
    )


def _run_by(view: AgentView) -> str:
    return presence_behind(view.session.last) if view.session is not None else ""


def _command_run_by(command: CommandView) -> str:
    presence = command.begun.detail.get(PRESENCE) if command.ended is None else None
    return presence if isinstance(presence, str) else ""


def _need_of(lease: Presence, lost: Sequence[AgentView]) -> Need:
    """As the row will tell that the next writer makes; until then its number is that of the newest step."""
    newest = max(view.session.last for view in lost if view.session is not None)
    row = newest._replace(
        actor=SYSTEM,
        tool=LOST,
        zone="workspace",
        path=lease.id,
        version=None,
        outcome="failed",
        error="not_seen_alive",
        message=lease.resume,
        detail_json="",
    )
    return Need("lost", lease.id, row, ", ".join(sorted(view.agent.id for view in lost)))
