"""Transitions of a session's state that people cause: answer, message, pause, resume, cancel. Pure."""

from __future__ import annotations

import json
from dataclasses import replace

from watchroom.errors import NotWaiting, TooManyRequests
from watchroom.features.budgets.rules import budget_asked
from watchroom.features.requests.rows import (
    Answer,
    CallDecision,
    Option,
    PendingCall,
    Request,
    check_answer,
    decide_all,
)
from watchroom.features.sessions.runtime.events import (
    Cancelled,
    Failed,
    HumanAnswered,
    MessageReceived,
    Paused,
    Resumed,
)
from watchroom.features.sessions.runtime.messages import (
    Function,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from watchroom.features.sessions.runtime.state import AgentState, Event, StepResult
from watchroom.features.sessions.runtime.step_results import describe_error
from watchroom.model import ENDED, SYSTEM, Json, actor_kind
from watchroom.texts import Language, catalogue


def apply_answer(state: AgentState, answer: Answer, by: str, language: Language = "en") -> StepResult:
    """Return the step in which ``by`` (``human:NAME``) answers the request of ``state``.

    Approved calls run in the next steps. The model gets the reason of a rejection immediately. It gets the
    message with an approval together with the call's result. An expired answer rejects all calls.
    ``language``: the language of texts for the model. Raise `NotWaiting`, `InvalidAnswer`.
    """
    asked = state.asked
    if asked is None or state.status not in ("waiting_for_human_input", "paused"):
        raise NotWaiting(session=state.session_id)
    if not answer.expired:
        check_answer(asked, answer)
    if budget_asked(asked) is not None:
        return _apply_budget_choice(state, answer, by, language)
    if asked.kind == "approve":
        after = _apply_decisions(state, answer, by, language)
    else:
        after = state.with_messages(_answer_message(state, asked, answer, by, language))
    after = _without_request(after.with_changes(pending_tools_calling=()))
    return _build_result(state, after, "answer", HumanAnswered(answer=answer, by=by))


def _apply_budget_choice(state: AgentState, answer: Answer, by: str, language: Language) -> StepResult:
    """Return the step that allows the held call or ends the session. If the budget was raised, it is checked
    again."""
    if answer.expired or "stop" in answer.values:
        reason = catalogue(language)("request.nobody_answered" if answer.expired else "budget.stopped")
        return cancel(state, by, reason, language)
    after = _without_request(state)
    if "once" in answer.values:
        after = after.with_changes(granted_step=state.step_count)
    return _build_result(state, after, "answer", HumanAnswered(answer=answer, by=by))


def release(state: AgentState, by: str) -> StepResult:
    """Return the step in which ``state`` continues because ``by`` made its request unnecessary."""
    return _build_result(state, _without_request(state), "resume", Resumed(by=by))


def _without_request(state: AgentState) -> AgentState:
    is_paused = state.status == "paused"
    return state.with_changes(
        asked=None, status="paused" if is_paused else "running", paused_from="running" if is_paused else None
    )


def apply_expiry(state: AgentState, language: Language = "en") -> StepResult:
    """Return the step in which the request of ``state`` expires. ``language``: the language of texts for the
    model. Raise `NotWaiting`."""
    return _apply_no_answer(state, SYSTEM, catalogue(language)("request.nobody_answered"), language)


def apply_refused_request(state: AgentState, error: TooManyRequests, language: Language = "en") -> StepResult:
    """Return the step in which the request of ``state`` is not opened because of ``error``. Its calls are not
    approved. ``language``: the language of texts for the model. Raise `NotWaiting`."""
    result = _apply_no_answer(state, SYSTEM, error.report(language), language)
    events = (Failed(error=describe_error(error, language)), *result.events)
    after = result.new_state.with_changes(events=(*state.events, *events))
    return result.model_copy(update={"events": events, "new_state": after})


def apply_withdrawal(state: AgentState, by: str, language: Language = "en") -> StepResult:
    """Return the step in which the request of ``state`` is withdrawn by ``by``.

    Withdrawn calls are not approved. The model gets a message in ``language``. A call that was held by a
    budget is checked again. Raise `NotWaiting`.
    """
    if state.asked is not None and budget_asked(state.asked) is not None:
        return release(state, by)
    return _apply_no_answer(state, by, catalogue(language)("request.withdrawn"), language)


def _apply_no_answer(state: AgentState, by: str, reason: str, language: Language) -> StepResult:
    """Return the step in which the request of ``state`` ends without an answer. ``reason``: a text."""
    is_approval = state.asked is not None and state.asked.kind == "approve"
    decisions = decide_all(state.asked, False, reason).decisions if state.asked and is_approval else ()
    return apply_answer(state, Answer(decisions=decisions, text=reason, expired=True), by, language)


def add_message(state: AgentState, text: str, by: str, *, is_verified: bool = True) -> StepResult:
    """Return the step in which ``by`` sends ``text``. A session that had ended continues.

    Only for a ``state`` that `accepts_message`. If ``by`` is a person and ``is_verified`` (the message is
    signed, or needs no signature), the count for the step limit restarts.
    """
    message = UserMessage(content=text, author=by)
    after = state.with_messages(message)
    is_person = is_verified and actor_kind(by) == "human"
    if state.status == "parked":
        # Each request to a model before the reset fails, so only a person continues a parked session.
        if is_person:
            after = after.with_changes(status="running", limit=None, error=None)
    elif state.status in ENDED:
        after = _reset_failures(after, is_person=is_person).with_changes(status="running")
    elif state.status == "idle":
        after = after.with_changes(status="running")
    return _build_result(state, after, "message", MessageReceived(message=message))


def accepts_message(state: AgentState) -> bool:
    """Whether ``state`` can take a message now. Models refuse a message between a call and its result."""
    return not state.open_calls


def pause(state: AgentState, by: str) -> StepResult:
    """Return the step in which ``by`` pauses ``state`` until `resume`."""
    if state.status == "parked":
        # A pause replaces the parking, so that no leave ends it.
        after = state.with_changes(status="paused", paused_from="running", limit=None, error=None)
    else:
        after = state.with_changes(status="paused", paused_from=state.status)
    return _build_result(state, after, "pause", Paused(by=by))


def resume(state: AgentState, by: str) -> StepResult:
    """Return the step in which ``by`` resumes ``state``, which was paused, parked or ended by an error.

    After an error, the count of failures restarts. If ``by`` is a person, the count of steps restarts too.
    """
    status = state.paused_from if state.status == "paused" and state.paused_from else "running"
    is_person = actor_kind(by) == "human"
    after = _reset_failures(state, is_person=is_person) if state.status == "error" else state
    if state.status == "parked":
        after = after.with_changes(limit=None, error=None)
    after = after.with_changes(status=status, paused_from=None)
    return _build_result(state, after, "resume", Resumed(by=by))


def _reset_failures(state: AgentState, *, is_person: bool) -> AgentState:
    """Return ``state``, which had ended, without its counts of failures. If a person continues it after an
    error (``is_person``), the count of steps also restarts."""
    after = state.with_changes(error=None, errors_in_a_row=0, failed_turn=-1, incomplete_answers=0)
    return (
        after.with_changes(granted_from=state.step_count) if is_person and state.status == "error" else after
    )


def cancel(state: AgentState, by: str, reason: str = "", language: Language = "en") -> StepResult:
    """Return the step in which ``by`` cancels ``state`` for ``reason``. Open calls get a result, so that the
    transcript is complete. ``language``: the language of texts for the model."""
    message = catalogue(language)("request.cancelled", by=by, reason=_format_reason(reason, language))
    content = _to_json({"success": False, "error": "cancelled", "message": message})
    results = [ToolMessage(tool_call_id=call.id, content=content) for call in state.open_calls]
    after = state.with_messages(*results).with_changes(
        status="cancelled",
        asked=None,
        pending_tools_calling=(),
        approved_tools_calling=(),
        approvals=(),
        paused_from=None,
        limit=None,
    )
    return _build_result(state, after, "cancel", Cancelled(by=by, reason=reason))


def _apply_decisions(state: AgentState, answer: Answer, by: str, language: Language) -> AgentState:
    calls = {call.id: call for call in state.pending_tools_calling}
    asked = {call.id: call for call in (state.asked.calls if state.asked is not None else ())}
    approved: list[ToolCall] = []
    approvals: list[PendingCall] = []
    refusals: list[Message] = []
    for decision in answer.decisions:
        call, shown = calls.get(decision.call_id), asked[decision.call_id]
        if call is None or (call.function.name, call.function.arguments) != (shown.name, shown.arguments):
            # People were not asked about exactly this call, so its policy decides again.
            continue
        if decision.approved:
            approved.append(_replace_arguments(call, decision))
            approvals.append(_with_notice(shown, decision, by, language))
        else:
            earlier = shown.notice
            told_why = (
                _no_answer_result(answer, language)
                if answer.expired
                else _rejection_result(decision, by, language, earlier)
            )
            refusals.append(ToolMessage(tool_call_id=call.id, content=_to_json(told_why)))
    return state.with_messages(*refusals).with_changes(
        approved_tools_calling=tuple(approved), approvals=tuple(approvals)
    )


def _with_notice(asked: PendingCall, decision: CallDecision, by: str, language: Language) -> PendingCall:
    """Return ``asked`` with the messages of this approval and of earlier approvals."""
    if not decision.reason:
        return asked
    said = catalogue(language)("request.approved", by=by, reason=decision.reason)
    return replace(asked, notice="\n".join(each for each in (asked.notice, said) if each))


def _replace_arguments(call: ToolCall, decision: CallDecision) -> ToolCall:
    if decision.arguments is None:
        return call
    return ToolCall(id=call.id, function=Function(name=call.function.name, arguments=decision.arguments))


def _rejection_result(decision: CallDecision, by: str, language: Language, earlier: str) -> Json:
    """Return the result of a rejected call. ``earlier``: the message with an earlier approval."""
    texts = catalogue(language)
    reason = _format_reason(decision.reason, language)
    told: dict[str, Json] = {"notice": earlier} if earlier else {}
    return {
        **told,
        "success": False,
        "error": "rejected",
        "message": texts("request.rejected", by=by, reason=reason),
        "suggestion": texts("request.rejected_suggestion"),
        "by": by,
        "reason": decision.reason,
    }


def _format_reason(reason: str, language: Language) -> str:
    return catalogue(language)("request.because", reason=reason) if reason else ""


def _no_answer_result(answer: Answer, language: Language) -> Json:
    return {"success": False, "error": "no_answer", "message": _no_answer_text(answer, language)}


def _no_answer_text(answer: Answer, language: Language) -> str:
    """Return the reason why there is no answer, by default that nobody answered in time."""
    return answer.text or catalogue(language)("request.nobody_answered")


def _declined_result(answer: Answer, by: str, language: Language) -> Json:
    """Return the result of a question that a person declined to answer."""
    texts = catalogue(language)
    return {
        "success": False,
        "error": "rejected",
        "message": texts("request.declined", by=by, reason=_format_reason(answer.text, language)),
        "suggestion": texts("request.declined_suggestion"),
        "by": by,
        "reason": answer.text,
    }


def _answer_message(
    state: AgentState, asked: Request, answer: Answer, by: str, language: Language
) -> Message:
    """Return the answer as the result of the open call that asked, or as a message if no call asked."""
    named = asked.metadata.get("tool_call_id")
    call = next((each.id for each in state.open_calls if each.id == named), None)
    if call is not None:
        if answer.expired:
            return ToolMessage(tool_call_id=call, content=_to_json(_no_answer_result(answer, language)))
        if answer.declined:
            return ToolMessage(tool_call_id=call, content=_to_json(_declined_result(answer, by, language)))
        given: Json = list(answer.values) if asked.kind == "select" else answer.text
        return ToolMessage(tool_call_id=call, content=_to_json({"success": True, "answer": given, "by": by}))
    if answer.expired:
        return SystemMessage(content=_no_answer_text(answer, language))
    if answer.declined:
        reason = _format_reason(answer.text, language)
        return SystemMessage(content=catalogue(language)("request.declined", by=by, reason=reason))
    text = answer.text if asked.kind == "prompt" else "\n".join(_labels(asked.options, answer.values))
    return UserMessage(content=text, author=by)


def _labels(options: tuple[Option, ...], values: tuple[str, ...]) -> list[str]:
    return [option.value for option in options if option.value in values]


def _to_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _build_result(before: AgentState, after: AgentState, kind: str, event: Event) -> StepResult:
    state = after.with_changes(events=(*before.events, event))
    return StepResult(events=(event,), new_state=state, instruction=kind)
