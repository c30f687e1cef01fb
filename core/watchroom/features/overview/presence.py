"""Work that no process continues, according to the leases of processes and the processes of attached clients.
A lease expires before a row reports the process as dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model, Need, order_needs
from watchroom.features.overview.needs import covers, join_parked, lost_need
from watchroom.features.overview.processes import OpenWork
from watchroom.features.sessions.view import SessionView
from watchroom.features.tasks.view import CommandView, TaskView
from watchroom.kernel.journal import Presence
from watchroom.model import LOST, SYSTEM, Row
from watchroom.platform import detect_platform

PRESENCE_SECONDS: Final = 2.0
"""Seconds between two queries for leases. A dead process is shown within 5 seconds."""


def with_presences(model: Model, presences: Callable[[], Sequence[Presence]], folder: str = "") -> Model:
    """Return ``model`` with lost agents, tasks and commands marked, and a need for each dead process. Agents
    and tasks whose process ended normally are marked as not present. Return the same model if no process is
    missing.

    - ``presences``: returns the current leases. It must be called after the model's rows were read.
    - ``folder``: the workspace's folder in the commands of these needs; empty for a placeholder.
    """
    named = {*model.work, *(view.session.presence for view in model.agents if view.session)} - {""}
    leases = {each.id: each for each in presences()} if named else {}
    if not all(lease in leases and leases[lease].is_alive for lease in named):
        model = _Marking(model, leases).model()
    if not folder or not any(need.work != OpenWork() for need in model.needs):
        return model
    needs = (need._replace(folder=folder) if need.work != OpenWork() else need for need in model.needs)
    return model._replace(needs=tuple(needs))


def absent_work(model: Model) -> frozenset[tuple[str, str, bool]]:
    """Return the work in ``model`` that no process continues: the kind and id of agents, tasks and commands,
    and whether each is lost.

    If it changes, the model must be shown again, even without a new row.
    """
    return frozenset(
        (
            *(("agent", view.agent.id, view.is_lost) for view in model.agents if not view.is_present),
            *(("task", task.id, task.is_lost) for task in model.tasks if not task.is_present),
            *(("command", command.path, True) for command in model.commands if command.is_lost),
        )
    )


class _Marking:
    def __init__(self, model: Model, leases: Mapping[str, Presence]) -> None:
        self._model = model
        self._leases = leases
        self._platform = detect_platform()
        self._runners: dict[str, set[str]] = {}
        """The leases of the processes that last ran the agents of each task."""
        for lease, work in model.work.items():
            for task in work.tasks:
                self._runners.setdefault(task, set()).add(lease)
        self._tasks_of_lost = {view.agent.task for view in model.agents if view.is_lost and view.agent.task}
        """Tasks with an agent that is lost according to a row."""

    def model(self) -> Model:
        model = self._model
        tasks = tuple(map(self._mark_task, model.tasks))
        lost = {task.id for task in tasks if task.is_lost}
        agents = tuple(self._mark_agent(view, lost) for view in model.agents)
        needs = _share_agents([*join_parked((*model.needs, *self._new_needs()))], agents)
        return model._replace(
            agents=agents,
            tasks=tasks,
            commands=tuple(map(self._mark_command, model.commands)),
            needs=order_needs(
                _mark_client(_mark_parked(need, agents), agents)
                for need in needs
                if not any(covers(other, need) for other in needs)
            ),
        )

    def _is_alive(self, lease: str) -> bool:
        return lease in self._leases and self._leases[lease].is_alive

    def _is_dead(self, lease: str) -> bool:
        """Return whether ``lease`` has expired. A missing lease was released."""
        return lease in self._leases and not self._leases[lease].is_alive

    def _mark_agent(self, view: AgentView, lost_tasks: Set[str]) -> AgentView:
        """Return ``view`` marked according to its lease and, if its client is attached, the client's process.
        A child process ends normally when its parent dies, so its agents are lost together with their
        task."""
        session = view.session
        lease = session.presence if session else ""
        if session is None or not lease or self._is_alive(lease):
            return view
        has_ended = self._has_ended(session)
        if has_ended is False:
            return view._replace(is_present=True, is_lost=False)
        if has_ended is None and session.is_attached and not (view.is_lost or self._is_dead(lease)):
            # The lease of a hook was released, which says nothing about the client.
            return view._replace(session=session._replace(presence=""))
        is_lost = has_ended or self._is_dead(lease) or view.agent.task in lost_tasks
        return view._replace(is_present=False, is_lost=view.is_lost or (view.is_unfinished and is_lost))

    def _has_ended(self, session: SessionView) -> bool | None:
        """Return whether the attached client of ``session`` has ended, None if that is unknown."""
        return None if session.client is None else session.client.has_ended(self._platform)

    def _mark_task(self, task: TaskView) -> TaskView:
        leases = self._runners.get(task.id, set())
        if task.ended is not None or not leases:
            return task
        if any(map(self._is_alive, leases)):
            return task._replace(is_present=True, is_lost=False) if task.is_lost else task
        is_lost = task.is_lost or task.id in self._tasks_of_lost or any(map(self._is_dead, leases))
        return task._replace(is_present=False, is_lost=is_lost)

    def _mark_command(self, command: CommandView) -> CommandView:
        is_run = command.ended is not None or not command.presence or self._is_alive(command.presence)
        return command if is_run else command._replace(is_lost=True)

    def _new_needs(self) -> list[Need]:
        """Return a need for each dead process that no row reports."""
        recorded = {need.key for need in self._model.needs if need.kind == "lost"}
        needs = []
        for lease, work in self._model.work.items():
            left = work._replace(
                agents=tuple(agent for agent in work.agents if not self._is_client_running(agent)),
                tasks=tuple(task for task in work.tasks if not self._is_run(task)),
            )
            if self._is_dead(lease) and lease not in recorded and left != OpenWork():
                last = self._last_sign(lease, work)
                needs.append(lost_need(_loss(self._leases[lease], last), left, last.time))
        return needs

    def _is_client_running(self, agent: str) -> bool:
        view = self._model.agent(agent)
        session = view.session if view is not None else None
        return session is not None and self._has_ended(session) is False

    def _is_run(self, task: str) -> bool:
        return any(map(self._is_alive, self._runners[task]))

    def _last_sign(self, lease: str, work: OpenWork) -> Row:
        """Return the newest row about the ``work`` of the process with ``lease``."""
        model = self._model
        steps = [
            view.session.last for view in model.agents if view.session and view.session.presence == lease
        ]
        commands = [each.begun for each in model.commands if each.path in work.commands]
        return max((*steps, *commands), default=model.newest[0])


def _mark_parked(need: Need, agents: Iterable[AgentView]) -> Need:
    """Return ``need``. If it is about a parked agent without a process, it names the agent as its work, so
    that it shows how to resume the agent."""
    if need.kind != "parked" or all(view.is_present for view in agents if view.agent.id == need.key):
        return need
    return need._replace(work=OpenWork((need.key,)))


def _mark_client(need: Need, agents: Iterable[AgentView]) -> Need:
    """Return ``need``. If one attached client ran all of its agents, it names the client, because no command
    takes over the sessions of such a client."""
    clients = {
        view.session.attached_client if view.session is not None else ""
        for view in agents
        if view.agent.id in need.work.agents
    }
    return need._replace(client=clients.pop()) if len(clients) == 1 else need


def _share_agents(needs: Sequence[Need], agents: Sequence[AgentView]) -> list[Need]:
    """Return ``needs`` such that each agent of a lost task is in one need for a process of that task.

    An agent stays in the need of its own process, unless only another process of the task names a command to
    resume it.
    """
    losses = sorted((need for need in needs if need.kind == "lost"), key=lambda need: not need.row.message)
    owners = {agent: need for need in losses for agent in need.work.agents}
    shared: dict[str, Need] = {}
    given: set[str] = set()
    for need in losses:
        added = {
            view.agent.id
            for view in agents
            if view.is_lost
            and view.agent.task in need.work.tasks
            and _takes_in(need, owners.get(view.agent.id))
        } - given
        given |= added
        work = need.work._replace(agents=tuple(sorted({*need.work.agents, *added})))
        shared[need.key] = need if work == need.work else lost_need(need.row, work, need.opened_at)
    return [shared[need.key] if need.kind == "lost" else need for need in needs]


def _takes_in(need: Need, owner: Need | None) -> bool:
    """Return whether ``need`` may list an agent of its task. ``owner``: the need that lists the agent now,
    None if no need does."""
    return owner is None or owner is need or bool(need.row.message and not owner.row.message)


def _loss(lease: Presence, last: Row) -> Row:
    """Return the row that the next writer will append about ``lease``. It gets the number of ``last``, the
    newest row of the process."""
    return last._replace(
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
