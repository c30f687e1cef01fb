"""Errors of the runtime: limits, incomplete answers, tools that cannot be offered."""

from __future__ import annotations

from watchroom.errors import DeniedError, WatchroomError
from watchroom.texts import Language, catalogue


class LimitReached(WatchroomError):
    """A session has used up what it may. Values: limit (steps, default_steps, tokens, estimated_tokens,
    seconds, errors), most."""

    code = "limit_reached"

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language, self.package)
        what = texts(f"limit.{self.values['limit']}", **self.values)
        return texts(f"error.{self.code}.{part}", what=what)


class BudgetReached(DeniedError):
    """A budget is used up, and no person allowed the call. Values: used, a sentence that says how much."""

    code = "budget_reached"


class IncompleteAnswer(WatchroomError):
    """A model's answers were cut off or empty, twice in a row."""

    code = "incomplete_answer"


class InvalidTool(WatchroomError):
    """A tool that no model could be offered or call, or a policy for a tool that does not exist. Values:
    tool, rule."""

    code = "invalid_tool"
