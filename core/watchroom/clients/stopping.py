"""Stopping an agent for certain: asked first, then by signals, and what shows that it has stopped.

An agent that Watchroom runs ends its session itself when it is told to. A client that a person has started
may be amid a command or in an endless loop that no hook ends: its process gets SIGINT, then SIGTERM. Each
signal is in a row, with whether the process is gone.
"""

from __future__ import annotations

import signal
import time
from contextlib import closing
from typing import Final, NamedTuple

from watchroom.clients.processes import ClientProcess
from watchroom.journal import Journal
from watchroom.model import CANCEL, CONTINUE, ENDED, Json, Row
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
ATTACHMENT: Final = "attachment"
PID: Final = "pid"
STARTED: Final = "started"
"""Names in the detail of rows that tell of a client's process."""


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
    """Stop whatever ``agent`` does in ``workspace``, as ``by`` (``human:NAME``): cancel its sessions, wait
    until those that Watchroom runs have ended, and end the process of an attached client by signals. Returns
    after at most about ``patience`` seconds for each session, ``process_patience`` (None: the same) for that
    of an attached client, with what shows that it has stopped. Raises `InvalidAgentId`, `UnknownAgent`,
    `JournalError`."""
    zone = workspace.session_zone
    running = [each for each in zone.heads(agent) if is_unfinished(each) and not is_subagent_step(each)]
    texts = catalogue(workspace.config.language)
    workspace.registry.agent(agent)
    if not running:
        return StopProof(agent, True, texts("stop.idle"))
    cancelled = zone.control(by, CANCEL, agent, None, "")
    proofs = []
    for session in running:
        process = find_process(workspace, session.path)
        if process is None:
            proofs.append(_wait_until_ended(workspace, session, patience, texts))
        else:
            seconds = patience if process_patience is None else process_patience
            proofs.append(stop_process(workspace, session.path, process, cancelled, patience=seconds))
    # One that is not certain is what has to be said.
    return min(proofs, key=lambda proof: proof.is_proven)


def stop_process(
    workspace: Workspace, path: str, process: ClientProcess, cause: Row, *, patience: float = PATIENCE
) -> StopProof:
    """End ``process``, the client of the session at ``path``, as the row ``cause`` asks: SIGINT, and SIGTERM
    where that does not suffice. A row says what was sent and what came of it; done for the same ``cause``
    again, by another process, that is the same row. Returns what shows that it is gone, within ``patience``
    seconds. Raises `JournalError`."""
    agent = path.partition("/")[0]
    texts = catalogue(workspace.config.language)
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
    if is_gone and not sent and (told := _wait_for_report(workspace.journal, path, cause)) is not None:
        # Its server was quicker, and knows by which signal.
        return StopProof(agent, True, texts("stop.row", said=told.message, row=told.seq))
    key = "stop.gone" if is_gone else "stop.alive"
    said = texts(key, signals=" ".join(sent) or "-", pid=process.pid)
    detail: dict[str, Json] = {
        "signals": list(sent),
        PID: process.pid,
        "is_gone": is_gone,
        "cause": cause.seq,
        "by": cause.actor,
    }
    zone_key = f"{STOP} {path} {cause.seq}"
    row = workspace.session_zone.note(agent, STOP, path, said, detail, key=zone_key)
    return StopProof(agent, is_gone, texts("stop.row", said=said, row=row.seq))


def _wait_for_report(journal: Journal, path: str, cause: Row) -> Row | None:
    """The row by which another process says that it has ended the client of ``path`` for ``cause``; None
    where none comes soon."""
    until = time.monotonic() + _REPORT_SECONDS
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
    agent, journal = path.partition("/")[0], workspace.journal
    rows = (journal.last_note("session", path, agent, CONTINUE), journal.version("session", path, 1))
    for row in rows:
        detail = row.detail if row is not None else {}
        pid, started = detail.get(PID), detail.get(STARTED)
        is_number = isinstance(pid, int) and isinstance(started, int | float)
        if detail.get(ATTACHMENT) == "attached" and is_number:
            # Numbers, as was asked.
            return ClientProcess(int(pid), float(started), workspace.platform)  # type: ignore[arg-type]
    return None


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
    process = find_process(workspace, step.path)
    if process is not None:
        return not process.is_alive
    begun = workspace.journal.version("session", step.path, 1)
    return begun is None or begun.detail.get(ATTACHMENT) != "attached"
