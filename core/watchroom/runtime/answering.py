"""What people do to a session, as pure transitions: answer it, write to it, pause, resume and cancel it."""

from __future__ import annotations

import json

from watchroom.errors import NotWaiting
from watchroom.model import ENDED, SYSTEM, Json, actor_kind
from watchroom.rules.requests import Answer, CallDecision, Option, Request, check_answer, decide_all
from watchroom.runtime.events import (
    Cancelled,
    Event,
    HumanAnswered,
    MessageReceived,
    Paused,
    Resumed,
)
from watchroom.runtime.messages import Function, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from watchroom.runtime.state import AgentState, StepResult, now
from watchroom.texts import Language, catalogue


def answered(state: AgentState, answer: Answer, by: str, language: Language = "en") -> StepResult:
    """The session with ``answer`` to what it asks, given by ``by`` (``human:NAME``).

    Approved calls run with the next steps; of a rejected one the model is told, with the reason. An answer
    that expired rejects: without a person's word nothing is done. Raises `NotWaiting`, `InvalidAnswer`.
    """
    asked = state.asked
    if asked is None or state.status not in ("waiting_for_human_input", "paused"):
        raise NotWaiting(session=state.session_id)
    if not answer.expired:
        check_answer(asked, answer)
    if asked.kind == "approve":
        after = _decided(state, answer, by, language)
    else:
        after = state.with_messages(_said(state, asked, answer, by, language))
    is_paused = state.status == "paused"
    after = after.but(
        asked=None,
        pending_tools_calling=(),
        status="paused" if is_paused else "running",
        paused_from="running" if is_paused else None,
    )
    return _result(state, after, "answer", HumanAnswered(answer=answer, by=by))


def expired(state: AgentState, language: Language = "en") -> StepResult:
    """The session whose request nobody answered in time. Raises `NotWaiting`."""
    reason = catalogue(language)("request.nobody_answered")
    is_approval = state.asked is not None and state.asked.kind == "approve"
    decisions = decide_all(state.asked, False, reason).decisions if state.asked and is_approval else ()
    return answered(state, Answer(decisions=decisions, expired=True), SYSTEM, language)


def told(state: AgentState, text: str, by: str) -> StepResult:
    """The session with a message from ``by``: one that had ended goes on. Tool calls must have their results
    first, so the message waits in no state where `can_be_told` does not hold."""
    message = UserMessage(content=text, author=by)
    after = state.with_messages(message)
    if state.status in ENDED:
        after = _begun_anew(after, by).but(status="running")
    elif state.status == "idle":
        after = after.but(status="running")
    return _result(state, after, "message", MessageReceived(message=message))


def can_be_told(state: AgentState) -> bool:
    """Whether a message fits in now: models refuse one between a call and its result."""
    return not state.open_calls


def paused(state: AgentState, by: str) -> StepResult:
    """The session held where it is; nothing happens until `resumed`."""
    return _result(state, state.but(status="paused", paused_from=state.status), "pause", Paused(by=by))


def resumed(state: AgentState, by: str) -> StepResult:
    """A session that was paused, or that an error ended, going on. After an error failures count anew, and by
    a person's word steps do."""
    status = state.paused_from if state.status == "paused" and state.paused_from else "running"
    after = _begun_anew(state, by) if state.status == "error" else state
    after = after.but(status=status, paused_from=None)
    return _result(state, after, "resume", Resumed(by=by))


def _begun_anew(state: AgentState, by: str) -> AgentState:
    """A session that had ended, without what was counted towards its end. Only people grant it more steps."""
    after = state.but(error=None, errors_in_a_row=0, failed_turn=-1, incomplete_answers=0)
    is_person = actor_kind(by) == "human"
    return after.but(granted_from=state.step_count) if is_person and state.status == "error" else after


def cancelled(state: AgentState, by: str, reason: str = "", language: Language = "en") -> StepResult:
    """The session ended for good. Calls without a result get one, so that the transcript is whole."""
    message = catalogue(language)("request.cancelled", by=by, reason=_because(reason, language))
    content = _json({"success": False, "error": "cancelled", "message": message})
    results = [ToolMessage(tool_call_id=call.id, content=content) for call in state.open_calls]
    after = state.with_messages(*results).but(
        status="cancelled",
        asked=None,
        pending_tools_calling=(),
        approved_tools_calling=(),
        approvals=(),
        paused_from=None,
    )
    return _result(state, after, "cancel", Cancelled(by=by, reason=reason))


def _decided(state: AgentState, answer: Answer, by: str, language: Language) -> AgentState:
    calls = {call.id: call for call in state.pending_tools_calling}
    approved: list[ToolCall] = []
    refusals: list[Message] = []
    for decision in answer.decisions:
        call = calls[decision.call_id]
        if decision.approved:
            approved.append(_with_arguments(call, decision))
        else:
            told_why = _nobody(language) if answer.expired else _rejection(decision, by, language)
            refusals.append(ToolMessage(tool_call_id=call.id, content=_json(told_why)))
    agreed = {call.id for call in approved}
    asked = state.asked.calls if state.asked is not None else ()
    return state.with_messages(*refusals).but(
        approved_tools_calling=tuple(approved), approvals=tuple(each for each in asked if each.id in agreed)
    )


def _with_arguments(call: ToolCall, decision: CallDecision) -> ToolCall:
    if decision.arguments is None:
        return call
    return ToolCall(id=call.id, function=Function(name=call.function.name, arguments=decision.arguments))


def _rejection(decision: CallDecision, by: str, language: Language) -> Json:
    texts = catalogue(language)
    reason = _because(decision.reason, language)
    return {
        "success": False,
        "error": "rejected",
        "message": texts("request.rejected", by=by, reason=reason),
        "suggestion": texts("request.rejected_suggestion"),
        "by": by,
        "reason": decision.reason,
    }


def _because(reason: str, language: Language) -> str:
    return catalogue(language)("request.because", reason=reason) if reason else ""


def _nobody(language: Language) -> Json:
    return {"success": False, "error": "no_answer", "message": catalogue(language)("request.nobody_answered")}


def _said(state: AgentState, asked: Request, answer: Answer, by: str, language: Language) -> Message:
    """The answer as the model reads it: the result of the open call that asked, or a message of its own."""
    named = asked.metadata.get("tool_call_id")
    call = next((each.id for each in state.open_calls if each.id == named), None)
    texts = catalogue(language)
    if call is not None:
        if answer.expired:
            return ToolMessage(tool_call_id=call, content=_json(_nobody(language)))
        given: Json = list(answer.values) if asked.kind == "select" else answer.text
        return ToolMessage(tool_call_id=call, content=_json({"success": True, "answer": given, "by": by}))
    if answer.expired:
        return SystemMessage(content=texts("request.nobody_answered"))
    text = answer.text if asked.kind == "prompt" else "\n".join(_labels(asked.options, answer.values))
    return UserMessage(content=text, author=by)


def _labels(options: tuple[Option, ...], values: tuple[str, ...]) -> list[str]:
    return [option.value for option in options if option.value in values]


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _result(before: AgentState, after: AgentState, kind: str, event: Event) -> StepResult:
    state = after.but(events=(*before.events, event), last_modified=now())
    return StepResult(events=(event,), new_state=state, instruction=kind)
