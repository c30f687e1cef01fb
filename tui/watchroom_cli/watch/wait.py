"""The command wait: wait until an agent needs a person, is idle, or has ended."""

from __future__ import annotations

import math
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import closing
from typing import Final

from watchroom.errors import UnknownAgent
from watchroom.features.overview.goals import GOALS, Ending, Goal, GoalState, find_state
from watchroom.features.overview.model import Model
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.features.sessions.view import RequestView
from watchroom.kernel.journal import BACKSTOP_SECONDS, Journal
from watchroom.model import Json, timestamp
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json

TIMED_OUT: Final = 124
"""The exit status after the timeout, like timeout(1)."""
_BATCH_SECONDS: Final = 0.05
"""Seconds during which rows are collected before the state is derived again."""
_CHUNK: Final = 2000
_ENDINGS: Final[Mapping[Ending, str]] = {
    "done": "session.status.done",
    "error": "session.status.error",
    "cancelled": "session.status.cancelled",
    "lost": "legend.agents.lost",
    "ended": "cli.wait.by_others",
}
"""The text key of each ending of a session."""


def declare_wait(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agent", help=texts("cli.wait.agent"))
    parser.add_argument(
        "--until", choices=GOALS, action="append", required=True, help=texts("cli.wait.until")
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help=texts("cli.wait.timeout"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_wait(args: Namespace, texts: Catalogue) -> int:
    """Return 0 if a goal is reached, `TIMED_OUT` after the timeout."""
    timeout: float | None = args.timeout
    if timeout is not None and not 0 <= timeout < math.inf:
        raise WrongUsage(texts("cli.wait.not_negative"))
    goals: tuple[Goal, ...] = tuple(dict.fromkeys(args.until))
    with closing(open_journal(args.dir)) as journal:
        waiter = _Waiter(journal, args.agent, goals)
        state = waiter.wait(timeout)
        now = journal.now()
    if state.reached is None:
        listed = ", ".join(goals)
        print(
            texts(
                "cli.wait.timed_out", agent=sanitize(args.agent), state=_describe(state, texts), goals=listed
            ),
            file=sys.stderr,
        )
        return TIMED_OUT
    if args.json:
        print_json(_as_json(args.agent, state, waiter.row, now, texts))
    else:
        print(texts("cli.wait.reached", agent=sanitize(args.agent), state=_describe(state, texts)))
    return 0


class _Waiter:
    """Follows ``journal`` until one of ``goals`` holds for ``agent``."""

    def __init__(self, journal: Journal, agent: str, goals: tuple[Goal, ...]) -> None:
        self._journal = journal
        self._agent = agent
        self._goals = goals
        self._fold = open_fold(journal)

    @property
    def row(self) -> int:
        """The number of the last row read."""
        return self._fold.seq

    def wait(self, timeout: float | None) -> GoalState:
        """Wait until a goal holds, and return the agent's state. ``timeout``: seconds, None for no timeout.
        Raise `UnknownAgent` if the agent is not registered, and `JournalError`."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        # Opened before the first read, so that no row in between is missed.
        with closing(self._journal.changes()) as changes:
            while True:
                has_rows = self._read_rows()
                now = self._journal.now()
                state = self._find_state(now)
                left = deadline - time.monotonic()
                if state.reached is not None or left <= 0:
                    return state
                if has_rows:
                    time.sleep(min(_BATCH_SECONDS, left))
                    continue
                moment = math.inf if state.next_change is None else (state.next_change - now) / 1e9
                changes.wait(max(0.0, min(BACKSTOP_SECONDS, moment, left)))

    def _read_rows(self) -> bool:
        """Apply the new rows. Return whether new rows were read."""
        before = self._fold.seq
        while rows := self._journal.rows(self._fold.seq, limit=_CHUNK):
            self._fold.apply(rows)
        return self._fold.seq > before

    def _find_state(self, now: int) -> GoalState:
        model: Model = with_presences(self._fold.model(), self._journal.presence.all)
        state = find_state(model, self._agent, self._goals, now)
        if state is None:
            known = ", ".join(view.agent.id for view in model.agents)
            raise UnknownAgent(agent=sanitize(self._agent), known=known or "-")
        return state


def _describe(state: GoalState, texts: Catalogue) -> str:
    """Return the state in a few words, with the requests that the agent waits for."""
    word = texts(f"legend.agents.{state.status}")
    if state.reached == "ended" and state.ending is not None:
        word = texts("cli.wait.ended", how=texts(_ENDINGS[state.ending]))
    if not state.requests:
        return word
    asked = texts("watch.separator").join(
        texts("cli.wait.request", request=each.id, what=labels.request_text(each, texts))
        for each in state.requests
    )
    return texts("cli.wait.asks", state=word, what=asked)


def _as_json(agent: str, state: GoalState, row: int, now: int, texts: Catalogue) -> dict[str, Json]:
    return {
        "agent": agent,
        "until": state.reached,
        "status": state.status,
        "ending": state.ending,
        "session": state.session,
        "row": row,
        "time": timestamp(now),
        "waits_for": [_request_as_json(each, texts) for each in state.requests],
    }


def _request_as_json(request: RequestView, texts: Catalogue) -> dict[str, Json]:
    return {
        "request": request.id,
        "kind": request.kind,
        "what": labels.request_text(request, texts),
        "session": request.session,
        "since": timestamp(request.row.time),
        "expires": timestamp(request.expires) if request.expires is not None else "",
    }
