"""Stop an agent, first by asking, then by signals, and show what proves that it has stopped.

An agent that Watchroom runs ends its session itself when it is told to. A client that a person has started
may be amid a command or in an endless loop that no hook ends: its process gets SIGINT, then SIGTERM. What it
has started gets SIGTERM. Each signal is in a row, with what is left.
"""

from __future__ import annotations

import signal
import time
from contextlib import closing, suppress
from typing import Final, NamedTuple

from watchroom.clients.client_traces import (
    ATTACHMENT,
    LEFT,
    PID,
    ClientTrace,
    Leftover,
    ProcessView,
    SeenDescendants,
    describe_left,
    find_trace,
    record_gone,
)
from watchroom.clients.processes import ClientProcess
from watchroom.journal import Journal
from watchroom.model import CANCEL, ENDED, Json, Row
from watchroom.rules.details import StepDetail
from watchroom.rules.presence import is_unfinished, presence_of
from watchroom.rules.usage import is_subagent_step
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace

STOP: Final = "stop_client"
"""The tool of the row that says which signals a client got, and whether it is gone."""
PATIENCE: Final = 10.0
"""Seconds until a client has to be gone."""
_INTERRUPT_SECONDS: Final = 0.5
"""So long a client may take to end by SIGINT; its terminal only ends what it is at."""
_REPORT_SECONDS: Final = 0.5
"""So long the row of another process that ended it is waited for."""
_LEAVE_SECONDS: Final = 1.0
"""Seconds in which what a client has started may end by itself once the client is gone."""
_LOOK_SECONDS: Final = 0.1


class StopProof(NamedTuple):
    """How ``agent`` stopped: ``is_proven`` says whether it is certain, ``how`` what shows it."""

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
    """Stop whatever ``agent`` does in ``workspace``, as ``by`` (``human:NAME``).

    Its sessions are cancelled. Those that Watchroom runs are waited for; the process of an attached client is
    ended by signals, and so is what it has started. A session that says that it has ended counts as running
    while something of its client is left. ``patience``: seconds for each session; ``process_patience``: those
    for an attached client, None: the same. Returns what shows that it has stopped. Raises `InvalidAgentId`,
    `UnknownAgent`, `JournalError`.
    """
    texts = catalogue(workspace.config.language)
    workspace.registry.agent(agent)
    view = ProcessView(workspace)
    zone = workspace.session_zone
    sessions = [each for each in zone.heads(agent) if not is_subagent_step(each)]
    running = [each for each in sessions if is_unfinished(each) or find_doubt(workspace, each, texts, view)]
    if not running:
        return StopProof(agent, True, texts("stop.idle"))
    cancelled = zone.control(by, CANCEL, agent, None, "")
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
    # One that is not certain is what has to be said.
    return min(proofs, key=lambda proof: proof.is_proven)


def stop_process(
    workspace: Workspace, path: str, process: ClientProcess, cause: Row, *, patience: float = PATIENCE
) -> StopProof:
    """End ``process``, the client of the session at ``path``, and what it has started, as the row ``cause``
    asks.

    The client gets SIGINT, and SIGTERM if it is still there; then its descendants that have not ended by
    themselves get SIGTERM. Processes that may belong to it are left alone, and reported. A row says what was
    sent and what is left; done for the same ``cause`` again, by another process, it is the same row. Returns
    what shows, within ``patience`` seconds, that nothing is left. Raises `JournalError`.
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
    if is_gone and not sent and left == []:
        told = _wait_for_report(workspace.journal, path, cause)
        if told is not None:
            # Its server was quicker, and knows by which signal.
            return StopProof(agent, True, texts("stop.row", said=told.message, row=told.seq))
    said = texts("stop.gone" if is_gone else "stop.alive", signals=" ".join(sent) or "-", pid=process.pid)
    if left != []:
        said = texts("stop.and_left", said=said, left=describe_left(left, texts))
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
    # Another process may have been first to say what was done.
    how = texts("stop.row", said=said if left else row.message, row=row.seq)
    return StopProof(agent, is_gone and left == [], how)


def _end_descendants(
    workspace: Workspace, path: str, trace: ClientTrace, seen: SeenDescendants, deadline: float
) -> list[Leftover] | None:
    """End what the client of the session at ``path``, which is gone, has left. Only what certainly belongs to
    it gets a signal. Returns what is still there at ``deadline``, None if that cannot be seen."""
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
            # Nothing that is done here ends these.
            return left
        time.sleep(_LOOK_SECONDS)


def _prove_elsewhere(
    workspace: Workspace, path: str, cause: Row, patience: float, texts: Catalogue
) -> StopProof:
    """What shows that a client has stopped that runs where it cannot be seen: its own server says so."""
    agent = path.partition("/")[0]
    told = _wait_for_report(workspace.journal, path, cause, patience)
    if told is None:
        return StopProof(agent, False, texts("stop.unseen"))
    is_proven = told.detail.get("is_gone") is True and told.detail.get(LEFT) == []
    return StopProof(agent, is_proven, texts("stop.row", said=told.message, row=told.seq))


def find_doubt(workspace: Workspace, step: Row, texts: Catalogue, view: ProcessView | None = None) -> str:
    """Return why it is not proven that nothing goes on with the session that has ended with ``step``; empty
    if it is proven. Any process of this user can report the end of a session of an attached client, the
    agent's own shell, too: only that its processes are gone is a proof. Raises `JournalError`."""
    begun = workspace.journal.version("session", step.path, 1)
    if begun is None or begun.detail.get(ATTACHMENT) != "attached":
        return ""
    trace = find_trace(workspace, step.path)
    if trace is None:
        return texts("stop.claims_end", row=step.seq, left=texts("stop.unknown_client"))
    left = (view or ProcessView(workspace)).find_left(step.path, trace)
    return "" if left == [] else texts("stop.claims_end", row=step.seq, left=describe_left(left, texts))


def _wait_for_report(journal: Journal, path: str, cause: Row, seconds: float = _REPORT_SECONDS) -> Row | None:
    """The row by which another process says that it has ended the client of ``path`` for ``cause``; None
    where none comes soon."""
    until = time.monotonic() + seconds
    with closing(journal.changes()) as changes:
        while (left := until - time.monotonic()) > 0:
            row = journal.last_note("session", path, path.partition("/")[0], STOP)
            if row is not None and row.detail.get("cause") == cause.seq:
                return row
            changes.wait(left)
    return None


def find_process(workspace: Workspace, path: str) -> ClientProcess | None:
    """The process of the client that a person has started and that runs the session at ``path``, by the rows
    of ``workspace``; None where none is known."""
    trace = find_trace(workspace, path)
    return None if trace is None else ClientProcess(trace.pid, trace.started, workspace.platform)


def _wait_until_ended(workspace: Workspace, session: Row, patience: float, texts: Catalogue) -> StopProof:
    """What shows that a session has stopped that ends itself."""
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
    """Whether it is certain that no process goes on after ``step``, the newest of a session in ``workspace``.
    A hook that took the step has ended since, and says nothing of its client: that is a process of its own.
    Raises `JournalError`."""
    lease = presence_of(step)
    if any(each.id == lease and each.is_alive for each in workspace.journal.presences()):
        return False
    trace = find_trace(workspace, step.path)
    if trace is not None:
        return ProcessView(workspace).find_left(step.path, trace) == []
    begun = workspace.journal.version("session", step.path, 1)
    return begun is None or begun.detail.get(ATTACHMENT) != "attached"
