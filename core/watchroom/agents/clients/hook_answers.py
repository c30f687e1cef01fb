"""The events that hooks report, and the answers of hooks, in the form shared by all clients. Pure."""

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
STOP_FAILURE: Final = "StopFailure"
"""An error of the model's server ended the turn."""
SUBAGENT_END: Final = "SubagentStop"
HOLDING: Final = (BEFORE, PERMISSION)
"""The events whose hooks can hold a call."""


class HookAnswer(NamedTuple):
    """The output of a hook.

    - ``said``: printed as JSON, None for nothing
    - ``error``: printed on standard error, with the exit ``status``
    - ``refusal``: the code of the refusal, empty if the call may be made
    - ``reason``: the refusal as a text
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
    """Allow the call of ``event``. ``arguments``: replace the call's arguments; None keeps them."""
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
    """Return whether ``answer`` allows the call that a `PERMISSION` event asks about."""
    decision = _specific_of(answer).get("decision")
    return isinstance(decision, Mapping) and decision.get("behavior") == "allow"


def replace_arguments(
    answer: HookAnswer, event: str, arguments: Mapping[str, Json], *, allows: bool = False
) -> HookAnswer:
    """Return ``answer`` with replaced ``arguments``. The answer must allow a call, or leave the decision to
    the client.

    ``allows``: also allow the call, because the client only takes arguments with an allowed call.
    """
    if event == PERMISSION:
        return allow(event, arguments) if is_allowed(answer) else answer
    own = {"hookEventName": event, **_specific_of(answer), "updatedInput": dict(arguments)}
    if allows:
        own["permissionDecision"] = "allow"
    return answer._replace(said={**(answer.said or {}), "hookSpecificOutput": own})


def without_bare_allowance(event: Mapping[str, Json], answer: HookAnswer) -> HookAnswer:
    """Return ``answer`` to ``event`` without an allowance that replaces no arguments."""
    own = _specific_of(answer)
    is_bare = own.get("permissionDecision") == "allow" and "updatedInput" not in own
    if event.get("hook_event_name") != BEFORE or not is_bare:
        return answer
    kept = {name: value for name, value in own.items() if not name.startswith("permissionDecision")}
    said = {**(answer.said or {}), "hookSpecificOutput": kept}
    if kept.keys() <= {"hookEventName"}:
        del said["hookSpecificOutput"]
    return answer._replace(said=said or None)


def changed_arguments(answer: HookAnswer) -> Mapping[str, Json] | None:
    """Return the arguments with which ``answer`` replaces the call's arguments, None if it keeps them."""
    own = _specific_of(answer)
    decision = own.get("decision")
    changed = (decision if isinstance(decision, Mapping) else own).get("updatedInput")
    return changed if isinstance(changed, Mapping) else None


def _specific_of(answer: HookAnswer) -> Mapping[str, Json]:
    own = answer.said.get("hookSpecificOutput") if answer.said is not None else None
    return own if isinstance(own, Mapping) else {}


def deny(event: str, reason: str, refusal: str = "permission_denied") -> HookAnswer:
    """Deny the call of ``event``. The model reads ``reason``. ``refusal``: the code of the refusal."""
    said: dict[str, Json] = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    if event == PERMISSION:
        said = {"decision": {"behavior": "deny", "message": reason}}
    return _specific(event, said)._replace(refusal=refusal, reason=reason)


def stop(event: str, reason: str) -> HookAnswer:
    """Deny the call of ``event``, and stop the client."""
    said = deny(event, reason).said or {}
    return HookAnswer({**said, "continue": False, "stopReason": reason})


def block(reason: str) -> HookAnswer:
    """Block a prompt, or the end of a turn, with ``reason``. The person reads the reason; at the end of a
    turn, the model does."""
    return HookAnswer({"decision": "block", "reason": reason})


def tell(event: str, text: str) -> HookAnswer:
    """Give the model ``text`` as additional context of ``event``. An empty text adds nothing."""
    return _specific(event, {"additionalContext": text}) if text else NOTHING


def refuse(event: str, reason: str) -> HookAnswer:
    """Refuse all work of the client: deny calls and block prompts, with ``reason``."""
    if event in HOLDING:
        return deny(event, reason)
    if event == PROMPT:
        return block(reason)
    return warn(reason) if event == START else NOTHING


def add_context(answer: HookAnswer, event: str, text: str) -> HookAnswer:
    """Return ``answer`` with ``text`` before its other text for the model. An answer without such text is
    returned unchanged."""
    if answer == NOTHING:
        return tell(event, text)
    own = answer.said.get("hookSpecificOutput") if answer.said is not None else None
    known = own.get("additionalContext") if isinstance(own, Mapping) else None
    return tell(event, f"{text}\n{known}") if isinstance(known, str) else answer


def warn(text: str) -> HookAnswer:
    """Show ``text`` to the person at the client. The client decides about the call."""
    return HookAnswer({"systemMessage": text})


def _specific(event: str, more: Mapping[str, Json]) -> HookAnswer:
    return HookAnswer({"hookSpecificOutput": {"hookEventName": event, **more}})
