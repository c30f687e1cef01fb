"""Assigns agents to clients if several agents are attached in one folder, or if no agent is named.

All clients in a folder read the same files, so each must get its own agent. A claim binds an agent to a
client, by the number and start time of the client's process, and ends with that process. Claims are in a file
in the control folder. Rows of sessions also count as claims.

A server reserves an agent before its client starts to work. Another client takes the reserved agent if it
continues a session of that agent. A command that starts a client as a certain agent can reserve the agent for
the process that becomes or starts the client.

If no agent is named, each client process gets its own agent. This is the agent of the session that it
resumes, else a newly registered agent (``claude1``, ``claude2``, ``codex1``). In this case, no client is
refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from watchroom.agents.clients.client_traces import ProcessView, find_trace
from watchroom.agents.clients.hook_answers import HookAnswer, refuse
from watchroom.agents.clients.processes import ClientProcess, ancestors_of
from watchroom.agents.clients.session import session_id_of
from watchroom.errors import AgentNotFree, NoAgentLeft, WatchroomError
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.rows import is_unfinished, presence_of
from watchroom.features.sessions.service import session_path
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.journal import RowFilter
from watchroom.model import Json
from watchroom.platform import Platform
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

_NAME: Final = "clients.json"
_KEY: Final = "agents of clients"
_MAX_BYTES: Final = 1_000_000


class WorkingClient(NamedTuple):
    """A running client: its agent and its process."""

    agent: str
    pid: int


class _Claim(NamedTuple):
    """The claim of the client with the process ``pid`` to ``agent``. If not ``is_used``, the agent is only
    reserved."""

    agent: str
    pid: int
    started: float
    boot: str = ""
    namespace: str = ""
    is_used: bool = True


class AgentClaims:
    """The claims to ``agents`` in ``workspace`` from the point of view of one client.

    - ``agents``: the client works as one of these agents; empty: as its own agent
    - ``client``, ``process``: the name and the process of the client

    Methods may be called from any thread.
    """

    def __init__(
        self, workspace: Workspace, agents: Sequence[str], client: str, process: ClientProcess
    ) -> None:
        self._workspace = workspace
        self._agents = agents
        self._client = client
        self._process = process
        self._path = os.path.join(workspace.root, CONTROL, _NAME)

    def claim(self, given: str = "", *, is_used: bool = True) -> str:
        """Return the agent that the client works as.

        The first of these applies: the agent of the client or of a client above it, the agent of its session,
        the first agent without another client. If there is only one agent, all clients share it.

        - ``given``: the client's name for the session; empty if unknown
        - ``is_used``: True if the client begins to work; else the agent is only reserved

        Raise `NoAgentLeft`, `AgentNotFree`, `WorkspaceLocked`, `JournalError`, OSError.
        """
        if len(self._agents) == 1:
            return self._sole_agent()
        if not self._agents:
            return self._claim_own(given, is_used=is_used)
        owner = self._find_owner(given)
        ancestors = self._find_ancestors()
        with self._workspace.journal.exclusive(_KEY):
            recorded = self._read()
            claims = [*recorded, *self._find_workers(self._agents)]
            own = _find_nearest(claims, ancestors, self._agents)
            if own is not None and own.is_used and owner not in ("", own.agent):
                raise self._not_free(owner)
            if own is None or owner not in ("", own.agent):
                own = self._describe(self._choose(claims, owner), is_used=False)
            elif own not in recorded:
                own = self._describe(own.agent, is_used=True)
            wanted = own._replace(is_used=own.is_used or is_used)
            if wanted not in recorded and self._process.is_alive:
                others = [each for each in recorded if each.pid != wanted.pid]
                # Any reservation of this agent is lost. A client that already works as the agent shares it.
                kept = [each for each in others if each.is_used or each.agent != wanted.agent]
                self._write([*kept, wanted])
        return wanted.agent

    def reserve(self, agent: str) -> None:
        """Reserve ``agent`` for the client that this process becomes or starts. Raise `WorkspaceLocked`,
        `JournalError`, OSError."""
        with self._workspace.journal.exclusive(_KEY):
            self._write([*self._read(), self._describe(agent, is_used=False)])

    def _claim_own(self, given: str, *, is_used: bool) -> str:
        """Return the agent of this process. No other client works as this agent."""
        owner = self._find_owner(given)
        ancestors = self._find_ancestors()
        with self._workspace.journal.exclusive(_KEY):
            recorded = self._read()
            own = next((each for each in recorded if each[1:3] == self._process[:2]), None)
            others = [each for each in recorded if each != own]
            if own is None and (reserved := _find_reserved(recorded, ancestors)) is not None:
                own = self._describe(reserved.agent, is_used=False)
                others.remove(reserved)
            is_settled = own is not None and (own.is_used or owner in ("", own.agent))
            if owner and not is_settled and self._is_free(owner, others):
                own = self._describe(owner, is_used=False)
            if own is None:
                own = self._describe(self._new_agent(others), is_used=False)
            wanted = own._replace(is_used=own.is_used or is_used)
            if wanted not in recorded and self._process.is_alive:
                self._write([*others, wanted])
        return wanted.agent

    def _is_free(self, agent: str, others: Sequence[_Claim]) -> bool:
        """Return whether no other client works as ``agent``."""
        workers = [each for each in self._find_workers((agent,)) if each.pid != self._process.pid]
        return not any(each.agent == agent for each in (*others, *workers))

    def _new_agent(self, others: Sequence[_Claim]) -> str:
        """Return a registered agent without any work, named after the client."""
        taken = {each.agent for each in others}
        known = self._workspace.registry.ever_known()
        for number in count(1):
            agent = f"{self._client}{number}"
            if agent not in taken and (agent not in known or self._is_blank(agent)):
                self._workspace.register([Agent(agent)])
                return agent
        raise AssertionError

    def _is_blank(self, agent: str) -> bool:
        """Return whether ``agent`` has no rows, because its client ended before working."""
        journal = self._workspace.journal
        if next(iter(self._workspace.session_zone.heads(agent)), None) is not None:
            return False
        return not journal.rows_before(journal.last_seq() + 1, limit=1, only=RowFilter(actor=agent))

    def find(self) -> str:
        """Return the agent that this client already works as, empty if there is none."""
        known = (each for each in self._read() if each.pid == self._process.pid and each.is_used)
        return next((each.agent for each in known), "")

    def _sole_agent(self) -> str:
        (agent,) = self._agents
        if self.find() not in ("", agent):
            # Its agent is no longer attached.
            raise self._not_free(self.find())
        return agent

    def _not_free(self, owner: str) -> AgentNotFree:
        return AgentNotFree(agent=owner, client=self._client)

    def _choose(self, claims: Sequence[_Claim], owner: str) -> str:
        """Return ``owner`` if no other client works as this agent. If ``owner`` is empty, return the first
        agent without another client."""
        # If the client has ended, only its session identifies its agent.
        is_open = not owner and self._process.is_alive
        for agent in self._agents if is_open else [each for each in self._agents if each == owner]:
            others = [each for each in claims if each.agent == agent and each.pid != self._process.pid]
            if not any(each.is_used or not owner for each in others):
                return agent
        raise (
            self._not_free(owner)
            if owner
            else NoAgentLeft(agents=", ".join(self._agents), client=self._client)
        )

    def _find_owner(self, given: str) -> str:
        """Return the agent of the session ``given``, according to its newest row; empty if there is none."""
        if not given:
            return ""
        zone, own = self._workspace.session_zone, session_id_of(given)
        known = {*self._agents, *self._workspace.registry.current().agents}
        found = [row for each in known if (row := zone.newest(session_path(each, own))) is not None]
        newest = max(found, key=lambda row: row.seq, default=None)
        return "" if newest is None else newest.path.partition("/")[0]

    def _find_ancestors(self) -> list[int]:
        """Return the client's process and its ancestors, nearest first."""
        return ancestors_of(self._workspace.platform, self._process.pid)

    def _find_workers(self, agents: Sequence[str]) -> list[_Claim]:
        """Return the clients that continue sessions of ``agents``, according to their rows. A client in
        another folder can have an agent without a claim."""
        found, view = [], ProcessView(self._workspace)
        alive = {each.id for each in self._workspace.journal.presence.all() if each.is_alive}
        for agent in agents:
            for step in self._workspace.session_zone.heads(agent):
                if not is_unfinished(step) or is_subagent_step(step):
                    continue
                trace = find_trace(self._workspace, step.path)
                if trace is None:
                    continue
                if view.is_elsewhere(trace):
                    # The process is not visible here, but its lease is.
                    found += [_Claim(agent, 0, 0.0)] if presence_of(step) in alive else []
                elif self._workspace.platform.is_running(trace.pid, trace.started):
                    found.append(_Claim(agent, trace.pid, trace.started))
        return found

    def _describe(self, agent: str, *, is_used: bool) -> _Claim:
        platform, process = self._workspace.platform, self._process
        namespace = platform.process_scope(process.pid).namespace
        return _Claim(agent, process.pid, process.started, platform.boot_id(), namespace, is_used)

    def _read(self) -> list[_Claim]:
        """Return the claims in the file whose clients are running, or not visible here."""
        return _read_claims(self._path, self._workspace.platform)

    def _write(self, claims: Sequence[_Claim]) -> None:
        new = f"{self._path}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump([each._asdict() for each in claims], file)
        os.replace(new, self._path)


def reserve_for_launch(workspace: Workspace, agent: str, client: str) -> None:
    """Reserve ``agent`` for the ``client`` that this process becomes. Raise as `AgentClaims.claim`."""
    pid = os.getpid()
    process = ClientProcess(pid, workspace.platform.process_start(pid), workspace.platform)
    AgentClaims(workspace, (), client, process).reserve(agent)


def find_working(root: str, platform: Platform) -> list[WorkingClient]:
    """Return the clients that work in the workspace at ``root`` according to their claims. Raise OSError."""
    claims = _read_claims(os.path.join(root, CONTROL, _NAME), platform)
    return [WorkingClient(each.agent, each.pid) for each in claims]


def _read_claims(path: str, platform: Platform) -> list[_Claim]:
    """Return the claims in the file at ``path`` whose clients are running, or not visible here."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.loads(file.read(_MAX_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        # Rows of sessions still count as claims.
        return []
    claims = [_parse(each) for each in (fields if isinstance(fields, list) else [])]
    return [each for each in claims if each is not None and _is_alive(each, platform)]


def _is_alive(claim: _Claim, platform: Platform) -> bool:
    if platform.has_restarted(claim.boot):
        return False
    is_seen = claim.namespace == platform.process_scope(os.getpid()).namespace
    return not is_seen or platform.is_running(claim.pid, claim.started)


def refuse_client(event: str, error: WatchroomError | OSError, language: Language) -> HookAnswer:
    """Return the answer to the hook ``event`` of a client that gets no agent because of ``error``."""
    if isinstance(error, NoAgentLeft | AgentNotFree):
        return refuse(event, f"{error.message(language)} {error.suggestion(language)}")
    # Without an agent, the applicable rules are unknown.
    return refuse(event, catalogue(language)("hook.no_attendant", reason=str(error)))


def _find_nearest(claims: Sequence[_Claim], ancestors: Sequence[int], agents: Sequence[str]) -> _Claim | None:
    """Return the claim to one of ``agents`` by the nearest of ``ancestors``."""
    found = (each for pid in ancestors for each in claims if each.pid == pid and each.agent in agents)
    return next(found, None)


def _find_reserved(claims: Sequence[_Claim], ancestors: Sequence[int]) -> _Claim | None:
    """Return the reservation by the nearest of ``ancestors`` with a claim, None if that claim is used."""
    found = (each for pid in ancestors for each in claims if each.pid == pid)
    nearest = next(found, None)
    return None if nearest is None or nearest.is_used else nearest


def _parse(fields: Json) -> _Claim | None:
    if not isinstance(fields, Mapping):
        return None
    pid, started = fields.get("pid"), fields.get("started")
    if not isinstance(pid, int) or not isinstance(started, int | float):
        return None
    agent, boot, namespace = (str(fields.get(name) or "") for name in ("agent", "boot", "namespace"))
    return _Claim(agent, pid, float(started), boot, namespace, fields.get("is_used") is True)
