"""Stops agents, first by a request, then with signals, and reports the proof that they have stopped.

An agent that Watchroom runs ends its session itself when it is cancelled. An attached client may be running a
command, or be in an endless loop that no hook ends. So its process gets SIGINT, then SIGTERM. Its child
processes get SIGTERM. A row records the signals and the processes that are left.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Final, NamedTuple

from watchroom.agents.clients.client_traces import (
    LEFT,
    ClientTrace,
    Leftover,
    ProcessView,
    SeenDescendants,
    describe_left,
    find_process,
    find_trace,
    record_gone,
)
from watchroom.agents.clients.processes import ClientProcess
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.sessions.client_process import PID
from watchroom.features.sessions.rows import ATTACHMENT, is_unfinished, presence_of
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.details import StepDetail
from watchroom.model import CANCEL, ENDED, Json, Row
from watchroom.texts import Catalogue, Language, catalogue
from watchroom.workspace import Workspace

STOP: Final = "stop_client"
"""The tool of the row that records the signals to a client, and whether the client has ended."""
PATIENCE: Final = 10.0
"""Default timeout for the end of a client, in seconds."""
_INTERRUPT_SECONDS: Final = 0.5
"""Seconds between SIGINT and SIGTERM. In a terminal, SIGINT only ends the current turn."""
_REPORT_SECONDS: Final = 0.5
"""Timeout for the row of another process that has ended the client, in seconds."""
_LEAVE_SECONDS: Final = 1.0
"""Seconds in which descendants of a client may end by themselves after the client."""
_LOOK_SECONDS: Final = 0.1
"""Seconds between checks of the remaining processes."""
_THREADS: Final = 16
"""Maximum number of agents that are stopped at the same time."""
_TOOL_SECONDS: Final = 1.0
"""Seconds for a running tool to end before its call is cancelled."""


class StopProof(NamedTuple):
    """Whether the stop of ``agent`` ``is_proven``, and the evidence as a text (``how``)."""

    agent: str
    is_proven: bool
    how: str


def stop_client(
    workspace: Workspace,
    agent: str,
    by: str,
    *,
    patience: float = PATIENCE,
    process_patience: float | None = None,
) -> StopProof:
    """Stop all sessions of ``agent`` in ``workspace``, as ``by`` (``human:NAME``).

    The sessions are cancelled. Sessions in Watchroom's runtime end by themselves. The process of an attached
    client and its child processes are ended with signals. A session that is marked as ended counts as running
    while a process of its client remains.

    - ``patience``: timeout for each session in seconds
    - ``process_patience``: timeout for an attached client in seconds, None for ``patience``

    Return the weakest proof of all sessions. Raise `InvalidAgentId`, `UnknownAgent`, `JournalError`.
    """
    texts = catalogue(workspace.config.language)
    workspace.registry.agent(agent)
    view = ProcessView(workspace)
    zone = workspace.session_zone
    sessions = [each for each in zone.heads(agent) if not is_subagent_step(each)]
    running = [each for each in sessions if is_unfinished(each) or find_doubt(workspace, each, texts, view)]
    if not running:
        return StopProof(agent, True, texts("stop.idle"))
    cancelled = zone.control(CallContext(by, CANCEL), agent, None, "")
    proofs = []
    for session in running:
        process = find_process(workspace, session.path)
        if process is not None:
            seconds = patience if process_patience is None else process_patience
            proofs.append(stop_process(workspace, session.path, process, cancelled, patience=seconds))
        elif is_unfinished(session):
            proofs.append(_wait_until_ended(workspace, session, patience, texts))
        else:
            said = texts("stop.claims_end", row=session.seq, left=texts("stop.unknown_client"))
            proofs.append(StopProof(agent, False, said))
    return min(proofs, key=lambda proof: proof.is_proven)


def stop_process(
    workspace: Workspace, path: str, process: ClientProcess, cause: Row, *, patience: float = PATIENCE
) -> StopProof:
    """End ``process``, the client of the session at ``path``, and its child processes.

    The client gets SIGINT, then SIGTERM if it still runs. Descendants that do not end by themselves get
    SIGTERM. Processes that only possibly belong to the client get no signal, and are reported.

    - ``cause``: the row that requests the stop. For each cause, one row records the signals and the remaining
      processes, even if two processes do this at the same time
    - ``patience``: timeout in seconds

    Return the proof that no process remains. Raise `JournalError`.
    """
    agent = path.partition("/")[0]
    texts = catalogue(workspace.config.language)
    deadline = time.monotonic() + patience
    trace = find_trace(workspace, path) or ClientTrace(process.pid, process.started)
    if ProcessView(workspace).is_elsewhere(trace):
        return _prove_elsewhere(workspace, path, cause, patience, texts)
    seen = SeenDescendants(process)
    seen.look()
    sent: list[str] = []
    is_gone = not process.is_alive
    for number, seconds in (
        (signal.SIGINT, _INTERRUPT_SECONDS),
        (signal.SIGTERM, max(0.0, patience - _INTERRUPT_SECONDS)),
    ):
        if not is_gone and process.send_signal(number):
            sent.append(number.name)
            is_gone = process.wait_gone(seconds)
    is_gone = is_gone or not process.is_alive
    left = _end_descendants(workspace, path, trace, seen, deadline) if is_gone else []

    def describe(signals: Json) -> str:
        names = " ".join(map(str, signals)) if isinstance(signals, Sequence) else ""
        said = texts("stop.gone" if is_gone else "stop.alive", signals=names or "-", pid=process.pid)
        return said if left == [] else texts("stop.and_left", said=said, left=describe_left(left, texts))

    if is_gone and not sent and left == []:
        report = _wait_for_report(workspace.journal, path, cause)
        if report is not None:
            # Its server was faster, and has recorded the signals. Processes that it saw may have ended since.
            said = describe(report.detail.get("signals"))
            return StopProof(agent, True, texts("stop.row", said=said, row=report.seq))

    said = describe(list(sent))
    detail: dict[str, Json] = {
        "signals": list(sent),
        PID: process.pid,
        "is_gone": is_gone,
        LEFT: None if left is None else [[each.pid, each.name, each.is_certain] for each in left],
        "cause": cause.seq,
        "by": cause.actor,
    }
    zone_key = f"{STOP} {path} {cause.seq}"
    row = workspace.session_zone.note(agent, STOP, path, said, detail, key=zone_key)
    # Another process may have recorded the end first, with the signals.
    how = texts("stop.row", said=describe(row.detail.get("signals")) if left else row.message, row=row.seq)
    return StopProof(agent, is_gone and left == [], how)


def _end_descendants(
    workspace: Workspace, path: str, trace: ClientTrace, seen: SeenDescendants, deadline: float
) -> list[Leftover] | None:
    """End the remaining processes of the ended client of the session at ``path``. Only processes that
    certainly belong to it get a signal.

    Return the processes that remain at ``deadline``, None if they are not visible.
    """
    record_gone(workspace, path, trace, seen.left())
    began, signalled = time.monotonic(), set[int]()
    while True:
        left = ProcessView(workspace).find_left(path, trace)
        now = time.monotonic()
        if not left or now >= deadline + _LEAVE_SECONDS:
            return left
        for each in left:
            if each.is_certain and each.pid not in signalled and now - began >= _LEAVE_SECONDS:
                signalled.add(each.pid)
                with suppress(PermissionError):
                    workspace.platform.send_signal(each.pid, each.started, signal.SIGTERM)
        if not any(each.is_certain for each in left) and now - began >= 2 * _LEAVE_SECONDS:
            # The other processes get no signal, so waiting does not help.
            return left
        time.sleep(_LOOK_SECONDS)


def _prove_elsewhere(
    workspace: Workspace, path: str, cause: Row, patience: float, texts: Catalogue
) -> StopProof:
    """Return the proof that a client on another machine, or in another namespace, has stopped. Only a report
    by its own server is a proof."""
    agent = path.partition("/")[0]
    report = _wait_for_report(workspace.journal, path, cause, patience)
    if report is None:
        return StopProof(agent, False, texts("stop.unseen"))
    is_proven = report.detail.get("is_gone") is True and report.detail.get(LEFT) == []
    return StopProof(agent, is_proven, texts("stop.row", said=report.message, row=report.seq))


def find_doubt(workspace: Workspace, step: Row, texts: Catalogue, view: ProcessView | None = None) -> str:
    """Return why it is uncertain that a session has stopped, empty if the stop is proven. ``step``: the last
    step of the session.

    Any process of this user can report the end of a session of an attached client, even the agent's own
    shell. So only the end of the client's processes is a proof. Raise `JournalError`.
    """
    begun = workspace.journal.version("session", step.path, 1)
    if begun is None or begun.detail.get(ATTACHMENT) != "attached":
        return ""
    trace = find_trace(workspace, step.path)
    if trace is None:
        return texts("stop.claims_end", row=step.seq, left=texts("stop.unknown_client"))
    left = (view or ProcessView(workspace)).find_left(step.path, trace)
    return "" if left == [] else texts("stop.claims_end", row=step.seq, left=describe_left(left, texts))


def _wait_for_report(journal: Journal, path: str, cause: Row, seconds: float = _REPORT_SECONDS) -> Row | None:
    """Wait until another process has ended the client of ``path`` because of ``cause``, and has recorded it
    in a row. None if it does not arrive within ``seconds``."""
    until = time.monotonic() + seconds
    with closing(journal.changes()) as changes:
        while (left := until - time.monotonic()) > 0:
            row = journal.last_note("session", path, path.partition("/")[0], STOP)
            if row is not None and row.detail.get("cause") == cause.seq:
                return row
            changes.wait(left)
    return None


def _wait_until_ended(workspace: Workspace, session: Row, patience: float, texts: Catalogue) -> StopProof:
    """Wait for a session that ends by itself. Return the proof that it has stopped."""
    journal, zone = workspace.journal, workspace.session_zone
    agent = session.path.partition("/")[0]
    until = time.monotonic() + patience
    changes = journal.changes()
    try:
        while True:
            last = zone.newest(session.path) or session
            if StepDetail.of(last).status in ENDED:
                return StopProof(agent, True, texts("stop.ended", row=last.seq))
            if is_abandoned(workspace, last):
                return StopProof(agent, True, texts("stop.no_process", row=last.seq))
            left = until - time.monotonic()
            if left <= 0:
                return StopProof(agent, False, texts("stop.no_answer", row=last.seq))
            changes.wait(left)
    finally:
        changes.close()


def is_abandoned(workspace: Workspace, step: Row) -> bool:
    """Return whether it is certain that no process continues the session with the newest step ``step``.

    The end of the hook that wrote the step proves nothing, because the client is another process. Raise
    `JournalError`.
    """
    lease = presence_of(step)
    if any(each.id == lease and each.is_alive for each in workspace.journal.presence.all()):
        return False
    trace = find_trace(workspace, step.path)
    if trace is not None:
        return ProcessView(workspace).find_left(step.path, trace) == []
    begun = workspace.journal.version("session", step.path, 1)
    return begun is None or begun.detail.get(ATTACHMENT) != "attached"


def running_agents(workspace: Workspace) -> list[str]:
    """Return the agents of ``workspace`` with a session whose end is not proven. Raise `JournalError`."""
    heads = workspace.session_zone.heads()
    agents = dict.fromkeys(row.path.partition("/")[0] for row in heads if is_unfinished(row))
    agents |= dict.fromkeys(doubted_agents(workspace))
    return [agent for agent in agents if agent in workspace.config.agents]


def doubted_agents(workspace: Workspace) -> list[str]:
    """Return the agents of ``workspace`` with a session that is marked as ended, but whose client may still
    be running. Raise `JournalError`."""
    view, texts = ProcessView(workspace), catalogue(workspace.config.language)
    agents: dict[str, None] = {}
    for row in workspace.session_zone.heads():
        agent = row.path.partition("/")[0]
        has_ended = agent not in agents and not is_unfinished(row) and not is_subagent_step(row)
        if has_ended and find_doubt(workspace, row, texts, view):
            agents[agent] = None
    return [*agents]


def prove_paused(
    workspace: Workspace, agents: Iterable[str], *, patience: float = PATIENCE
) -> list[StopProof]:
    """Wait at most ``patience`` seconds until all sessions of ``agents`` are paused or have ended, after
    requests to pause. Return the proof for each agent. Raise `JournalError`."""
    until = time.monotonic() + patience
    return _for_each(agents, lambda agent: _wait_until_paused(workspace, agent, until))


def check_paused(workspace: Workspace, agent: str, language: Language | None = None) -> StopProof:
    """Return the proof that ``agent`` in ``workspace`` is paused, after a request to pause.

    Each of its sessions must be paused, proven to have ended, or without a process. ``language``: the
    language of the texts, default: the workspace's. Raise `JournalError`.
    """
    texts = catalogue(language or workspace.config.language)
    proof = StopProof(agent, True, texts("stop.idle"))
    view = ProcessView(workspace)
    for last in workspace.session_zone.heads(agent):
        if is_subagent_step(last):
            continue
        if not is_unfinished(last):
            if doubt := find_doubt(workspace, last, texts, view):
                return StopProof(agent, False, doubt)
            continue
        if StepDetail.of(last).status == "paused":
            proof = StopProof(agent, True, texts("stop.paused", row=last.seq))
        elif is_abandoned(workspace, last):
            proof = StopProof(agent, True, texts("stop.no_process", row=last.seq))
        else:
            return StopProof(agent, False, texts("stop.no_answer", row=last.seq))
    return proof


def end_agents(
    workspace: Workspace, agents: Iterable[str], by: str, *, patience: float = PATIENCE
) -> list[StopProof]:
    """End the sessions of ``agents`` in ``workspace``, as ``by`` (``human:NAME``).

    A tool that still runs after a second is cancelled. Return the proof for each agent, after about
    ``patience`` seconds at most. Raise `InvalidAgentId`, `UnknownAgent`, `SessionNotFound`, `JournalError`.
    """

    def end(agent: str) -> StopProof:
        # A client may end its session before its process. Only the end of the process counts.
        tool_patience = min(_TOOL_SECONDS, patience)
        proof = stop_client(workspace, agent, by, patience=tool_patience, process_patience=patience)
        return proof if proof.is_proven else stop_client(workspace, agent, by, patience=patience)

    return _for_each(agents, end)


def _for_each(agents: Iterable[str], stop: Callable[[str], StopProof]) -> list[StopProof]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="watchroom-stop") as threads:
        return list(threads.map(stop, agents))


def _wait_until_paused(workspace: Workspace, agent: str, until: float) -> StopProof:
    changes = workspace.journal.changes()
    try:
        while True:
            proof = check_paused(workspace, agent)
            left = until - time.monotonic()
            if proof.is_proven or left <= 0:
                return proof
            changes.wait(left)
    finally:
        changes.close()
