"""The tools by which agents of a task make others, speak to each other, and end (spec 2, AgentSociety)."""

from __future__ import annotations

from watchroom.model import HUMAN_PREFIX, MESSAGE, USER, Row
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller
from watchroom.zones.members import Member
from watchroom.zones.task_errors import AgentEnded


def spawn(caller: Caller, args: take.SpawnAgent) -> give.Spawned:
    member = caller.members.spawn(caller.actor, args.role, args.instructions, args.name or "")
    return _spawned(member)


def spawned(caller: Caller, args: take.SpawnAgent, row: Row) -> give.Spawned:
    member = next(each for each in caller.members.of_task(str(row.detail["task"])) if each.id == row.path)
    caller.members.ensure_registered(member)
    return _spawned(member)


def _spawned(member: Member) -> give.Spawned:
    return give.Spawned(agent_id=member.id, role=member.role, layer=member.layer)


def send(caller: Caller, args: take.SendMessage) -> give.Sent:
    if not caller.actor.startswith(HUMAN_PREFIX):
        return sent(caller, args, caller.members.send(caller.actor, args.to, args.payload.text))
    agent, _, session = args.to.partition("/")
    if caller.members.has_ended(agent):
        raise AgentEnded(agent=agent)
    row = caller.sessions.control(caller.actor, MESSAGE, agent, session or None, args.payload.text)
    return sent(caller, args, row)


def sent(caller: Caller, args: take.SendMessage, row: Row) -> give.Sent:
    return give.Sent(to=args.to, row=row.seq)


def terminate(caller: Caller, args: take.TerminateAgent) -> give.Terminated:
    ended = caller.members.terminate(caller.actor, args.agent_id, args.reason or "")
    return give.Terminated(ended=[each.id for each in ended])


def terminated(caller: Caller, args: take.TerminateAgent, row: Row) -> give.Terminated:
    return give.Terminated(ended=[each.id for each in caller.members.ended_with(row)])


def list_agents(caller: Caller, args: take.NoArguments) -> give.Agents:
    task = caller.members.find_active(caller.actor).task
    return give.Agents(
        agents=[
            give.ListedAgent(
                agent_id=each.id,
                role=each.role,
                made_by=each.parent or USER,
                ended=each.ended is not None or None,
            )
            for each in caller.members.of_task(task)
        ]
    )


def end_task(caller: Caller, args: take.EndTask) -> give.TaskEnded:
    task = caller.members.end_task(caller.actor, args.status, args.report, args.task_id or "")
    return give.TaskEnded(task_id=task.id, status=task.status)


def task_ended(caller: Caller, args: take.EndTask, row: Row) -> give.TaskEnded:
    return give.TaskEnded(task_id=row.path, status=args.status)
