"""The events that hooks report, and what a hook answers, in the words that clients share. Pure."""

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
END: Final = "SessionEnd"
FAILURE: Final = "PostToolUseFailure"
BATCH: Final = "PostToolBatch"
SUBAGENT_END: Final = "SubagentStop"
HOLDING: Final = (BEFORE, PERMISSION)
"""The events whose hooks can hold a call."""


class HookAnswer(NamedTuple):
    """What a hook prints.

    - ``said``: printed as JSON, None for nothing
    - ``error``: printed on standard error, with the exit ``status``
    - ``refusal``: the code of why the call is not made, empty if it may be made
    - ``reason``: the refusal as text
    """

    said: Mapping[str, Json] | None = None
    error: str = ""
    status: int = 0
    refusal: str = ""
    reason: str = ""

    def dump(self) -> str:
        """Return the JSON that the hook prints, empty for nothing."""
        return "" if self.said is None else json.dumps(self.said, ensure_ascii=False)


NOTHING: Final = HookAnswer()


def allow(event: str, arguments: Mapping[str, Json] | None = None) -> HookAnswer:
    """Allow the call that ``event`` asks about. ``arguments`` replace those of the call, None keeps them."""
    if event == PERMISSION:
        decision: dict[str, Json] = {"behavior": "allow"}
        if arguments is not None:
            decision["updatedInput"] = dict(arguments)
        return _specific(event, {"decision": decision})
    said: dict[str, Json] = {"permissionDecision": "allow"}
    if arguments is not None:
        said["updatedInput"] = dict(arguments)
    return _specific(event, said)


def is_allowed(answer: HookAnswer) -> bool:
    """Return whether ``answer``, to `PERMISSION`, allows the call."""
    decision = _specific_of(answer).get("decision")
    return isinstance(decision, Mapping) and decision.get("behavior") == "allow"


def replace_arguments(
    answer: HookAnswer, event: str, arguments: Mapping[str, Json], *, allows: bool = False
) -> HookAnswer:
    """Return ``answer``, which allows a call or leaves that to the client, with other ``arguments``. Whether
    the call is allowed stays as it is, unless the client takes arguments only with a call that is allowed
    (``allows``)."""
    if event == PERMISSION:
        return allow(event, arguments) if is_allowed(answer) else answer
    own = {"hookEventName": event, **_specific_of(answer), "updatedInput": dict(arguments)}
    if allows:
        own["permissionDecision"] = "allow"
    return answer._replace(said={**(answer.said or {}), "hookSpecificOutput": own})


def changed_arguments(answer: HookAnswer) -> Mapping[str, Json] | None:
    """Return the arguments by which ``answer`` replaces those of the call, None if it keeps them."""
    own = _specific_of(answer)
    decision = own.get("decision")
    changed = (decision if isinstance(decision, Mapping) else own).get("updatedInput")
    return changed if isinstance(changed, Mapping) else None


def _specific_of(answer: HookAnswer) -> Mapping[str, Json]:
    own = answer.said.get("hookSpecificOutput") if answer.said is not None else None
    return own if isinstance(own, Mapping) else {}


def deny(event: str, reason: str, refusal: str = "permission_denied") -> HookAnswer:
    """Deny the call that ``event`` asks about. The model reads ``reason``; ``refusal`` is its code."""
    said: dict[str, Json] = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if event == PERMISSION:
        said = {"decision": {"behavior": "deny", "message": reason}}
    return _specific(event, said)._replace(refusal=refusal, reason=reason)


def stop(event: str, reason: str) -> HookAnswer:
    """Deny the call that ``event`` asks about, and stop the client."""
    said = deny(event, reason).said or {}
    return HookAnswer({**said, "continue": False, "stopReason": reason})


def block(reason: str) -> HookAnswer:
    """Block a prompt, or the end of a turn, for ``reason``: the person reads it, or at a turn's end the
    model."""
    return HookAnswer({"decision": "block", "reason": reason})


def tell(event: str, text: str) -> HookAnswer:
    """Give the model ``text`` in addition to what ``event`` brings. An empty text gives nothing."""
    return _specific(event, {"additionalContext": text}) if text else NOTHING


def refuse(event: str, reason: str) -> HookAnswer:
    """Refuse any work of the client: deny calls and block prompts, for ``reason``."""
    if event in HOLDING:
        return deny(event, reason)
    if event == PROMPT:
        return block(reason)
    return warn(reason) if event == START else NOTHING


def add_context(answer: HookAnswer, event: str, text: str) -> HookAnswer:
    """Return ``answer`` with ``text`` before everything else that it gives the model. An answer of another
    kind is returned as it is."""
    if answer == NOTHING:
        return tell(event, text)
    own = answer.said.get("hookSpecificOutput") if answer.said is not None else None
    known = own.get("additionalContext") if isinstance(own, Mapping) else None
    return tell(event, f"{text}\n{known}") if isinstance(known, str) else answer


def warn(text: str) -> HookAnswer:
    """Show ``text`` to the person at the client. The client decides."""
    return HookAnswer({"systemMessage": text})


def _specific(event: str, more: Mapping[str, Json]) -> HookAnswer:
    return HookAnswer({"hookSpecificOutput": {"hookEventName": event, **more}})
