"""The tools with which people answer agents and steer them. Agents have none of them."""

from __future__ import annotations

from watchroom.errors import InvalidAnswer
from watchroom.model import CANCEL, PAUSE, RESUME
from watchroom.rules.requests import Answer, CallDecision, Request, decide_all
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller


def answer(caller: Caller, args: take.AnswerRequest) -> give.Answered:
    request = caller.requests.find(args.request)
    row = caller.requests.answer(caller.actor, args.request, _answer(request, args), args.reason or "")
    return give.Answered(request=args.request, outcome=str(row.detail["outcome"]))


def _answer(request: Request, args: take.AnswerRequest) -> Answer:
    if args.decisions is not None:
        if args.approved is not None:
            raise InvalidAnswer(rule="answer_each_call")
        decisions = tuple(
            CallDecision(each.call_id, each.approved, each.reason or "", each.arguments)
            for each in args.decisions
        )
        return Answer(decisions, args.text or "", tuple(args.values or ()))
    decided = () if args.approved is None else decide_all(request, args.approved, args.reason or "").decisions
    return Answer(decided, args.text or "", tuple(args.values or ()))


def pause(caller: Caller, args: take.SteerAgent) -> give.Steered:
    return _steer(caller, PAUSE, args.agent_id, args.session_id, "")


def resume(caller: Caller, args: take.SteerAgent) -> give.Steered:
    return _steer(caller, RESUME, args.agent_id, args.session_id, "")


def cancel(caller: Caller, args: take.CancelAgent) -> give.Steered:
    return _steer(caller, CANCEL, args.agent_id, args.session_id, args.reason or "")


def _steer(caller: Caller, tool: str, agent: str, session: str | None, text: str) -> give.Steered:
    row = caller.sessions.control(caller.actor, tool, agent, session, text)
    return give.Steered(agent_id=agent, session_id=session, row=row.seq)
