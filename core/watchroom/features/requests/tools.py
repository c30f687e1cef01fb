"""The tool with which people answer requests. Agents do not have it."""

from __future__ import annotations

import logging
from typing import Annotated, Final

from pydantic import Field

from watchroom.errors import InvalidAnswer, JournalError
from watchroom.features.budgets.rules import budget_asked
from watchroom.features.requests.reviews import MAX_REASON_CHARACTERS
from watchroom.features.requests.rows import Answer, CallDecision, Request, decide_all
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Message, Name, ParamsModel, ResultModel, RowNumber
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset("request", audience="people")
tool = TOOLS.tool
_log = logging.getLogger("watchroom")


class DecisionParams(ParamsModel):
    call_id: Name
    approved: bool
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARACTERS)] | None = None
    arguments: str | None = None


class AnswerRequestParams(ParamsModel):
    request: RowNumber
    approved: bool | None = None
    reason: Message | None = None
    decisions: Annotated[list[DecisionParams], Field(max_length=1000)] | None = None
    text: str | None = None
    values: Annotated[list[str], Field(max_length=1000)] | None = None


class AnswerRequestResult(ResultModel):
    request: int
    outcome: str
    """The outcome: approved, rejected, mixed, edited, replied or chosen."""


@tool("answer_request")
def answer_request(context: ToolContext, params: AnswerRequestParams) -> AnswerRequestResult:
    """Answer a request as the person of ``context``.

    A raised budget is written to the settings here, because in a closed workspace it needs the person's key.
    Raise `RequestNotFound`, `InvalidAnswer`, `NotText`, `RequestExpired`, `RequestClosed`,
    `RequestCancelled`.
    """
    request = context.zones.requests.find(params.request)
    answer = _answer(request, params)
    raises_budget = budget_asked(request) is not None and "raise" in answer.values
    if raises_budget:
        context.zones.budgets.check_raise(request)
    row = context.zones.requests.answer(context.call, params.request, answer, params.reason or "")
    if raises_budget:
        try:
            context.zones.budgets.raise_budget(context.call, request)
        except JournalError:
            # The answer counts from now on, also without the settings.
            _log.exception("the budget of request %d is raised, but not in the settings", params.request)
    return AnswerRequestResult(request=params.request, outcome=str(row.detail["outcome"]))


def _answer(request: Request, params: AnswerRequestParams) -> Answer:
    if params.decisions is not None:
        if params.approved is not None:
            raise InvalidAnswer(rule="answer_each_call")
        decisions = tuple(
            CallDecision(each.call_id, each.approved, each.reason or "", each.arguments)
            for each in params.decisions
        )
        return Answer(decisions, params.text or "", tuple(params.values or ()))
    if params.approved is False and request.kind != "approve" and not (params.text or params.values):
        if budget_asked(request) is not None:
            # A budget request cannot be declined; the person can choose to stop the agent.
            raise InvalidAnswer(rule="answer_offered")
        return Answer(text=params.reason or "", declined=True)
    decided = (
        () if params.approved is None else decide_all(request, params.approved, params.reason or "").decisions
    )
    return Answer(decided, params.text or "", tuple(params.values or ()))
