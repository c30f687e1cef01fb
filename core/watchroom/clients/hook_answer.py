"""What a hook answers its client, in the words that Claude Code and Codex share. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.model import Json

BEFORE: Final = "PreToolUse"
AFTER: Final = "PostToolUse"
PERMISSION: Final = "PermissionRequest"
PROMPT: Final = "UserPromptSubmit"
STOP: Final = "Stop"
START: Final = "SessionStart"


class HookAnswer(NamedTuple):
    """What a hook prints: ``said`` as JSON, None for nothing; ``error`` as text, with the exit ``status``.

    ``refusal``: the code of why the call is not made, empty if it may be; ``reason``: the same as a text.
    """

    said: Mapping[str, Json] | None = None
    error: str = ""
    status: int = 0
    refusal: str = ""
    reason: str = ""

    def dump(self) -> str:
        """The JSON that the hook prints, empty for nothing."""
        return "" if self.said is None else json.dumps(self.said, ensure_ascii=False)


NOTHING: Final = HookAnswer()


def allow(event: str, arguments: Mapping[str, Json] | None = None) -> HookAnswer:
    """The call that ``event`` asks about may be made, with ``arguments`` in place of its own."""
    if event == PERMISSION:
        decision: dict[str, Json] = {"behavior": "allow"}
        if arguments is not None:
            decision["updatedInput"] = dict(arguments)
        return _specific(event, {"decision": decision})
    said: dict[str, Json] = {"permissionDecision": "allow"}
    if arguments is not None:
        said["updatedInput"] = dict(arguments)
    return _specific(event, said)


def deny(event: str, reason: str, refusal: str = "permission_denied") -> HookAnswer:
    """The call that ``event`` asks about may not be made, for ``reason``, which the model reads. ``refusal``
    is the code of it."""
    said: dict[str, Json] = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if event == PERMISSION:
        said = {"decision": {"behavior": "deny", "message": reason}}
    return _specific(event, said)._replace(refusal=refusal, reason=reason)


def stop(event: str, reason: str) -> HookAnswer:
    """The call that ``event`` asks about may not be made, and the client is to stop."""
    said = deny(event, reason).said or {}
    return HookAnswer({**said, "continue": False, "stopReason": reason})


def block_prompt(reason: str) -> HookAnswer:
    """The prompt is not given to the model, for ``reason``, which the person reads."""
    return HookAnswer({"decision": "block", "reason": reason})


def tell(event: str, text: str) -> HookAnswer:
    """The model reads ``text`` beside what ``event`` brings; nothing where it is empty."""
    return _specific(event, {"additionalContext": text}) if text else NOTHING


def refuse(event: str, reason: str) -> HookAnswer:
    """The client may not work, for ``reason``: neither a call nor a prompt goes on."""
    if event in (BEFORE, PERMISSION):
        return deny(event, reason)
    if event == PROMPT:
        return block_prompt(reason)
    return warn(reason) if event == START else NOTHING


def add_context(answer: HookAnswer, event: str, text: str) -> HookAnswer:
    """Return ``answer`` with ``text`` before what else the model reads beside ``event``. An answer of another
    kind stays as it is."""
    if answer == NOTHING:
        return tell(event, text)
    own = answer.said.get("hookSpecificOutput") if answer.said is not None else None
    known = own.get("additionalContext") if isinstance(own, Mapping) else None
    return tell(event, f"{text}\n{known}") if isinstance(known, str) else answer


def warn(text: str) -> HookAnswer:
    """The person at the client reads ``text``; the client decides."""
    return HookAnswer({"systemMessage": text})


def wake(text: str) -> HookAnswer:
    """The model goes on with ``text``."""
    return HookAnswer(None, text, 2)


def _specific(event: str, more: Mapping[str, Json]) -> HookAnswer:
    return HookAnswer({"hookSpecificOutput": {"hookEventName": event, **more}})
