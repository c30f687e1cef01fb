"""Which client works as which agent, where several agents are attached in one folder.

All clients in a folder read the same files, so each has to be given an agent of its own. A claim says which
client, by the number and start time of its process, works as which agent. It ends with that process. Claims
are in a file in the control folder; rows of sessions count as claims, too.

A server reserves an agent before its client has done anything. A reserved agent goes to another client whose
session is that agent's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom.checkout.layout import CONTROL
from watchroom.clients.client_traces import ProcessView, find_trace
from watchroom.clients.configuration import Client
from watchroom.clients.errors import AgentNotFree, NoAgentLeft
from watchroom.clients.hook_answer import HookAnswer, refuse
from watchroom.clients.processes import ClientProcess
from watchroom.clients.session_ids import session_id_of
from watchroom.errors import WatchroomError
from watchroom.model import Json
from watchroom.rules.presence import is_unfinished, presence_of
from watchroom.rules.usage import is_subagent_step
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace
from watchroom.zones.sessions import session_path

_NAME: Final = "clients.json"
_KEY: Final = "agents of clients"
_MAX_BYTES: Final = 1_000_000


class _Claim(NamedTuple):
    """The client with the process ``pid`` works as ``agent``; not ``is_used``: the agent is reserved."""

    agent: str
    pid: int
    started: float
    boot: str = ""
    namespace: str = ""
    is_used: bool = True


class AgentClaims:
    """The claims of the ``client`` with ``process``, in ``workspace``, to one of ``agents``. Methods may be
    called from any thread."""

    def __init__(
        self, workspace: Workspace, agents: Sequence[str], client: Client, process: ClientProcess
    ) -> None:
        self._workspace = workspace
        self._agents = agents
        self._client = client
        self._process = process
        self._path = os.path.join(workspace.root, CONTROL, _NAME)

    def claim(self, given: str = "", *, is_used: bool = True) -> str:
        """Return the agent that the client works as: the one that it or a client above it has, else the agent
        of its session, else the first that no other client has. A single agent is shared by all clients.

        - ``given``: the session, as the client calls it; empty if it is not known
        - ``is_used``: the client begins to work; else the agent is only reserved

        Raises `NoAgentLeft`, `AgentNotFree`, `WorkspaceLocked`, `JournalError`, OSError.
        """
        if len(self._agents) == 1:
            return self._sole_agent()
        owner = self._find_owner(given)
        ancestors = self._find_ancestors()
        with self._workspace.journal.exclusive(_KEY):
            recorded = self._read()
            claims = [*recorded, *self._find_workers()]
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
                # Whoever reserved this agent has lost it; who works as it already shares it.
                kept = [each for each in others if each.is_used or each.agent != wanted.agent]
                self._write([*kept, wanted])
        return wanted.agent

    def find(self) -> str:
        """Return the agent that this very client works as already, empty if there is none."""
        known = (each for each in self._read() if each.pid == self._process.pid and each.is_used)
        return next((each.agent for each in known), "")

    def _sole_agent(self) -> str:
        (agent,) = self._agents
        if self.find() not in ("", agent):
            # It was given another agent, which is no longer attached.
            raise self._not_free(self.find())
        return agent

    def _not_free(self, owner: str) -> AgentNotFree:
        return AgentNotFree(agent=owner, client=self._client)

    def _choose(self, claims: Sequence[_Claim], owner: str) -> str:
        """Return ``owner``, if there is one, else the first agent, that no other client has."""
        # Where the client is gone already, only its session says who it was.
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
        """Return the agent that the session ``given`` is of, by its newest row; empty if there is none."""
        if not given:
            return ""
        zone, own = self._workspace.session_zone, session_id_of(given)
        known = {*self._agents, *self._workspace.registry.current().agents}
        found = [row for each in known if (row := zone.newest(session_path(each, own))) is not None]
        newest = max(found, key=lambda row: row.seq, default=None)
        return "" if newest is None else newest.path.partition("/")[0]

    def _find_ancestors(self) -> list[int]:
        """Return the client's process and those above it, the nearest first."""
        parents = {each.pid: each.parent for each in self._workspace.platform.processes()}
        found, pid = [self._process.pid], parents.get(self._process.pid, 0)
        while pid > 1 and pid not in found:
            found.append(pid)
            pid = parents.get(pid, 0)
        return found

    def _find_workers(self) -> list[_Claim]:
        """Return the clients that go on with sessions of the agents, by their rows: a client in another
        folder may share its agent, and claims none."""
        found, view = [], ProcessView(self._workspace)
        alive = {each.id for each in self._workspace.journal.presences() if each.is_alive}
        for agent in self._agents:
            for step in self._workspace.session_zone.heads(agent):
                if not is_unfinished(step) or is_subagent_step(step):
                    continue
                trace = find_trace(self._workspace, step.path)
                if trace is None:
                    continue
                if view.is_elsewhere(trace):
                    # Its process cannot be seen, its lease can.
                    found += [_Claim(agent, 0, 0.0)] if presence_of(step) in alive else []
                elif self._workspace.platform.process_start(trace.pid) == trace.started > 0:
                    found.append(_Claim(agent, trace.pid, trace.started))
        return found

    def _describe(self, agent: str, *, is_used: bool) -> _Claim:
        platform, process = self._workspace.platform, self._process
        namespace = platform.process_scope(process.pid).namespace
        return _Claim(agent, process.pid, process.started, platform.boot_id(), namespace, is_used)

    def _read(self) -> list[_Claim]:
        """Return the claims in the file whose clients are there, or cannot be seen from here."""
        try:
            with open(self._path, encoding="utf-8") as file:
                fields = json.loads(file.read(_MAX_BYTES))
        except (FileNotFoundError, ValueError, RecursionError):
            # Rows of sessions count all the same.
            return []
        claims = [_parse(each) for each in (fields if isinstance(fields, list) else [])]
        return [each for each in claims if each is not None and self._is_alive(each)]

    def _is_alive(self, claim: _Claim) -> bool:
        platform = self._workspace.platform
        if claim.boot != platform.boot_id():
            return False
        is_seen = claim.namespace == platform.process_scope(os.getpid()).namespace
        return not is_seen or platform.process_start(claim.pid) == claim.started > 0

    def _write(self, claims: Sequence[_Claim]) -> None:
        new = f"{self._path}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump([each._asdict() for each in claims], file)
        os.replace(new, self._path)


def refuse_client(event: str, error: WatchroomError | OSError, language: Language) -> HookAnswer:
    """Return the answer to the hook ``event`` of a client that is given no agent because of ``error``."""
    if isinstance(error, NoAgentLeft | AgentNotFree):
        return refuse(event, f"{error.message(language)} {error.suggestion(language)}")
    # Whose rules hold for a call is not known.
    return refuse(event, catalogue(language)("hook.no_attendant", reason=str(error)))


def _find_nearest(claims: Sequence[_Claim], ancestors: Sequence[int], agents: Sequence[str]) -> _Claim | None:
    """Return the claim to one of ``agents`` that the nearest of ``ancestors`` has."""
    found = (each for pid in ancestors for each in claims if each.pid == pid and each.agent in agents)
    return next(found, None)


def _parse(fields: Json) -> _Claim | None:
    if not isinstance(fields, Mapping):
        return None
    pid, started = fields.get("pid"), fields.get("started")
    if not isinstance(pid, int) or not isinstance(started, int | float):
        return None
    agent, boot, namespace = (str(fields.get(name) or "") for name in ("agent", "boot", "namespace"))
    return _Claim(agent, pid, float(started), boot, namespace, fields.get("is_used") is True)
