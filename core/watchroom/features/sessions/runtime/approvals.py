"""Checks that a person gave the approvals in a session's state.

Anyone who can write to the journal can write a step, so a step alone approves nothing. Before an approved
call runs, the session's request and its valid answer are read again. The call must be exactly the approved
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from watchroom.errors import InvalidAnswer, NotWaiting, RequestTaken
from watchroom.features.budgets.rules import budget_asked
from watchroom.features.requests.service import RequestOutcome, Requests
from watchroom.features.sessions.runtime import transitions
from watchroom.features.sessions.runtime.state import AgentState, call_key
from watchroom.features.sessions.runtime.step_rows import apply_encoded_step, decode_initial_state
from watchroom.features.sessions.service import SessionRecord
from watchroom.texts import Language


class Approvals:
    """The approvals of the session at ``path``. ``requests``: its requests to people.

    ``language``: the language of the notices for the model.
    """

    def __init__(self, requests: Requests, path: str, language: Language) -> None:
        self._requests = requests
        self._path = path
        self._language = language
        self._calls_asked: AgentState | None = None
        """The state of the request whose answer approved the current calls."""
        self._step_asked: AgentState | None = None
        """The state of the request about a budget whose answer allows the next step."""
        self._finished: frozenset[str] = frozenset()

    def remember(self, asked: AgentState) -> None:
        """Use the answer to the request of ``asked`` for later approvals."""
        if asked.asked is None:
            return
        if budget_asked(asked.asked) is not None:
            self._step_asked = asked
        elif asked.asked.kind == "approve":
            self._calls_asked, self._finished = asked, frozenset()

    def load(self, records: Sequence[SessionRecord]) -> int | None:
        """Take approvals from the newest requests in all ``records`` of the session, oldest first.

        Return the row of the answer that approves calls, None if there is none. Raise `JournalError`.
        """
        newest: dict[bool, AgentState] = {}
        for _, state in replay(records):
            if (kind := _asks_about_budget(state)) is not None:
                newest[kind] = state
        step, since = self._find_asked(records, newest.get(True))
        later = (state for record, state in replay(records) if record.row.seq > since)
        is_used = step is not None and any(state.step_count > step.step_count for state in later)
        self._step_asked = None if is_used else step
        self._calls_asked, since = self._find_asked(records, newest.get(False))
        if self._calls_asked is None:
            return None
        self._finished = _find_finished_calls(records, since)
        return since

    def keep_confirmed(self, state: AgentState) -> AgentState:
        """Return ``state`` with only the approvals that a person gave.

        For the other calls, the policy decides again: people are asked again if it requires their approval. A
        step over a budget that nobody allowed is held again. Raise `JournalError`.
        """
        if not has_approvals(state):
            return state
        kept = state
        if state.approved_tools_calling or state.approvals:
            kept = self._keep_calls(kept)
        if state.granted_step == state.step_count:
            given = self._apply_outcome(self._step_asked)
            if given is None or given.granted_step != state.granted_step:
                kept = kept.with_changes(granted_step=-1)
        return kept

    def _keep_calls(self, state: AgentState) -> AgentState:
        asked, given = self._calls_asked, self._apply_outcome(self._calls_asked)
        if asked is None or given is None:
            return state.with_changes(approved_tools_calling=(), approvals=())
        approved = tuple(
            call
            for call in state.approved_tools_calling
            if call in given.approved_tools_calling
            and call.id not in self._finished
            and call_key(state, call) == call_key(asked, call)
        )
        ids = {call.id for call in approved}
        approvals = tuple(each for each in given.approvals if each.id in ids)
        return state.with_changes(approved_tools_calling=approved, approvals=approvals)

    def _find_asked(
        self, records: Sequence[SessionRecord], newest: AgentState | None
    ) -> tuple[AgentState | None, int]:
        """Return the state in which the session made the request of the state ``newest``, and the row of the
        answer.

        The state is the newest state before the answer, because no later row can change it. None if that
        state asks something else, or if nobody answered.
        """
        outcome = self._find_outcome(newest)
        if newest is None or outcome is None:
            return None, 0
        since, asked = outcome.row.seq, None
        for record, state in replay(records):
            if record.row.seq < since:
                asked = state
        if asked is None or (asked.asked, asked.step_count) != (newest.asked, newest.step_count):
            return None, 0
        return asked, since

    def _find_outcome(self, asked: AgentState | None) -> RequestOutcome | None:
        """Return the outcome of the request of the state ``asked``, None if it approves nothing."""
        if asked is None or asked.asked is None:
            return None
        try:
            outcome = self._requests.ended(request_path(self._path, asked), asked.asked)
        except RequestTaken:
            return None
        if outcome is None or outcome.answer is None or outcome.answer.expired:
            return None
        return outcome

    def _apply_outcome(self, asked: AgentState | None) -> AgentState | None:
        """Return the state after the answer to the request of ``asked``, None if the answer approves
        nothing."""
        outcome = self._find_outcome(asked)
        if asked is None or outcome is None or outcome.answer is None:
            return None
        by, language = outcome.row.actor, self._language
        try:
            return transitions.apply_answer(asked, outcome.answer, by, language).new_state
        except (InvalidAnswer, NotWaiting):
            return None


def has_approvals(state: AgentState) -> bool:
    """Whether ``state`` claims that a person approved calls, or the next step over a budget."""
    return bool(state.approved_tools_calling or state.approvals or state.granted_step == state.step_count)


def replay(records: Iterable[SessionRecord]) -> Iterator[tuple[SessionRecord, AgentState]]:
    """Yield each of ``records``, all records of a session, with the state after it."""
    state: AgentState | None = None
    for record in records:
        text = record.text
        state = decode_initial_state(text) if state is None else apply_encoded_step(state, text)
        yield record, state


def request_path(session: str, state: AgentState) -> str:
    """Return the path of the request that the session at the path ``session`` asks in ``state``."""
    budget = budget_asked(state.asked) if state.asked is not None else None
    return f"{session}/{state.step_count}" if budget is None else str(budget["request"])


def _asks_about_budget(state: AgentState) -> bool | None:
    """Return True if ``state`` asks about a budget, False if it asks for the approval of calls, else None."""
    if state.asked is None:
        return None
    if budget_asked(state.asked) is not None:
        return True
    return False if state.asked.kind == "approve" else None


def _find_finished_calls(records: Sequence[SessionRecord], since: int) -> frozenset[str]:
    """Return the ids of the calls that have a result in a row after ``since``: an approval holds for one
    run."""
    return frozenset(
        str(message.get("tool_call_id"))
        for record in records
        if record.row.seq > since
        for message in json.loads(record.text)["messages"]
        if message.get("role") == "tool"
    )
