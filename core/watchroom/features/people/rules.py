"""Which rows change protected state, and who can make them. Pure.

Only people can change protected state: answers to requests, settings, enrolments, tokens, settled conflicts,
resumed agents, budgets, ends of tasks, seen needs, and routines. The effect of a row follows from its zone,
path, version and detail. Its tool and actor do not determine the effect, because anyone who can write to the
journal can choose them. Every reader of protected state first calls
`watchroom.features.people.decisions.find_flaw`, which applies these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.zones import SHARED, ZONES
from watchroom.model import (
    ANSWER,
    ASK,
    BEGIN_CHECK,
    CANCEL,
    DISMISS,
    END_CHECK,
    END_TASK,
    GRANT,
    IDENTIFY,
    MESSAGE,
    PAUSE,
    RELEASE_AGENTS,
    RESOLVE,
    RESUME,
    REVERT,
    REVERT_WORK,
    REVOKE_GRANT,
    SEEN,
    SET_BUDGET,
    SETTLING_TOOLS,
    STOP_AGENTS,
    USE_GRANT,
    WITHDRAW,
    ActorKind,
    Row,
    Zone,
)

Effect: TypeAlias = Literal[
    "ask",
    "answer",
    "withdraw",
    "grant",
    "use_grant",
    "answer_by_grant",
    "revoke_grant",
    "person",
    "settings",
    "budget",
    "token",
    "settle",
    "edit",
    "revert",
    "resume",
    "pause",
    "message",
    "stop",
    "release",
    "end_task",
    "seen",
    "routine",
    "run_routine",
    "stop_routine",
    "identify",
    "check",
]
"""The effect of a row on protected state.

- ``answer_by_grant``: Watchroom's answer to a request, because a person's grant covers its call.
- ``edit``: a person's version of a shared file or board. It also settles the conflicts of that path.
- ``message``: a message of a person to an agent.
- ``check``: the start or the result of a check of an agent's work.
"""

ADD_PERSON: Final = "add_person"
REVOKE_PERSON: Final = "revoke_person"
SIGN_SETTINGS: Final = "sign_settings"
MAKE_TOKEN: Final = "make_token"  # noqa: S105
REVOKE_TOKEN: Final = "revoke_token"  # noqa: S105
ADD_ROUTINE: Final = "add_routine"
RUN_ROUTINE: Final = "run_routine"
STOP_ROUTINE: Final = "stop_routine"
ROUTINE_PREFIX: Final = "routine/"
"""The prefix of the paths in the zone ``workspace`` whose versions add, run and stop routines."""
STOPPED_PATH: Final = "stopped"
"""The path in the zone ``workspace`` whose versions list the stopped agents."""
ID_PATH: Final = "id"
"""The path in the zone ``workspace`` whose first version is the id of the workspace."""
_STEERED: Final[tuple[Zone, ...]] = ("session", "agent")
"""The zones of messages to agents."""
SETTLED_ZONES: Final = tuple(
    zone for zone, spec in ZONES.items() if spec.on_edit == "conflict" or spec.is_shared
)
"""The zones whose conflicts people settle."""


class EffectRule(NamedTuple):
    """Who can cause an effect.

    - ``tools``: the tools that can cause it; empty for any tool.
    - ``actors``: the kinds of actor that can cause it.
    - ``is_signed``: in a closed workspace, a person's row counts only if it is signed.
    - ``role``: the minimum role of the signer.
    - ``is_restricting``: the effect only stops or ends something, so it needs no signature.
    - ``is_reported``: a row without a valid signature becomes a need.
    """

    tools: frozenset[str]
    actors: frozenset[ActorKind]
    is_signed: bool = False
    role: Literal["owner", "supervisor"] = "supervisor"
    is_restricting: bool = False
    is_reported: bool = True


_PEOPLE: Final = frozenset[ActorKind]({"human"})
_ANYONE: Final = frozenset[ActorKind]({"human", "agent", "system", "outside"})


def _decision(*tools: str) -> EffectRule:
    return EffectRule(frozenset(tools), _PEOPLE, is_signed=True)


def _owner_decision(*tools: str) -> EffectRule:
    return EffectRule(frozenset(tools), _PEOPLE, is_signed=True, role="owner")


EFFECT_RULES: Final[Mapping[Effect, EffectRule]] = {
    "ask": EffectRule(frozenset({ASK}), frozenset({"agent"})),
    "answer": _decision(ANSWER),
    "withdraw": EffectRule(frozenset({WITHDRAW}), frozenset({"system", "human"}), is_restricting=True),
    "grant": _decision(GRANT),
    # These two count only for a grant that counts; `decisions` checks that.
    "use_grant": EffectRule(frozenset({USE_GRANT}), frozenset({"system"}), is_reported=False),
    "answer_by_grant": EffectRule(frozenset({ANSWER}), frozenset({"system"}), is_reported=False),
    "revoke_grant": EffectRule(
        frozenset({REVOKE_GRANT}), frozenset({"human", "system"}), is_restricting=True
    ),
    "person": _owner_decision(ADD_PERSON, REVOKE_PERSON),
    "settings": _owner_decision(SIGN_SETTINGS),
    "budget": _decision(SET_BUDGET),
    "token": _owner_decision(MAKE_TOKEN),
    "settle": _decision(RESOLVE, DISMISS, REVERT),
    "edit": EffectRule(frozenset(), _PEOPLE, is_signed=True, is_reported=False),
    "revert": _decision(REVERT_WORK),
    "resume": _decision(RESUME),
    "pause": EffectRule(frozenset({PAUSE, CANCEL}), frozenset({"human", "system"}), is_restricting=True),
    "message": EffectRule(frozenset({MESSAGE}), _PEOPLE, is_signed=True, is_reported=False),
    "stop": EffectRule(frozenset({STOP_AGENTS}), _PEOPLE, is_restricting=True),
    "release": _decision(RELEASE_AGENTS),
    # Any second version ends a task. This rule decides whether the task ends as done.
    "end_task": EffectRule(frozenset({END_TASK}), frozenset({"human", "agent", "system"}), is_signed=True),
    "seen": _decision(SEEN),
    "routine": _decision(ADD_ROUTINE),
    "run_routine": _decision(RUN_ROUTINE),
    "stop_routine": EffectRule(
        frozenset({STOP_ROUTINE}), frozenset({"human", "system"}), is_restricting=True
    ),
    "identify": EffectRule(frozenset({IDENTIFY}), _ANYONE),
    "check": EffectRule(frozenset({BEGIN_CHECK, END_CHECK}), frozenset({"system"})),
}
"""The rule for each effect: who can cause it."""
DECISION_TOOLS: Final = frozenset(
    tool for rule in EFFECT_RULES.values() if rule.is_signed and rule.is_reported for tool in rule.tools
) | {REVOKE_TOKEN}
"""The tools of people that need a key in a closed workspace. Pausing, stopping and cancelling agents needs no
key."""


def effect_of(row: Row) -> Effect | None:
    """Return the effect of ``row`` on protected state, None if it has none.

    A refused note has no effect. A version that claims to be refused is forged, and is treated like any other
    version.
    """
    if row.version is not None:
        return _effect_of_version(row, row.version)
    return _effect_of_note(row) if row.outcome == "ok" else None


def has_right_form(row: Row, effect: Effect) -> bool:
    """Whether the tool, kind of actor and fields of ``row`` are valid for ``effect``."""
    rule = EFFECT_RULES[effect]
    if row.outcome != "ok" or row.seq < 0 or (rule.tools and row.tool not in rule.tools):
        return False
    if row.kind not in rule.actors:
        return False
    if effect == "ask":
        return row.path.partition("/")[0] == row.actor
    if effect == "check":
        return row.zone == "agent"
    if effect == "person":
        return row.deleted == (row.tool == REVOKE_PERSON)
    if effect == "resume":
        return row.zone == "session"
    if effect == "settle":
        return row.zone in SETTLED_ZONES
    if effect == "seen":
        need, seen, actor = (row.detail.get(name) for name in ("need", "row", "actor"))
        return isinstance(need, str) and type(seen) is int and isinstance(actor, str)
    return True


def _effect_of_note(row: Row) -> Effect | None:
    if row.tool == SEEN:
        return "seen"
    if row.tool in (BEGIN_CHECK, END_CHECK):
        return "check"
    if row.zone in _STEERED:
        if row.tool == RESUME:
            return "resume"
        if row.tool in (PAUSE, CANCEL):
            return "pause"
        # In the zone ``agent``, agents of a task and Watchroom itself also send messages.
        if row.tool == MESSAGE and (row.zone == "session" or row.kind == "human"):
            return "message"
    return "settle" if row.tool in SETTLING_TOOLS else None


def _effect_of_version(row: Row, version: int) -> Effect | None:
    if row.zone == "request":
        if version == 1:
            return "ask"
        if row.tool != ANSWER:
            return "withdraw"
        return "answer_by_grant" if row.kind == "system" else "answer"
    if row.zone == "grant":
        return "revoke_grant" if row.deleted else "grant" if version == 1 else "use_grant"
    if row.zone in _EFFECTS_OF_ZONES:
        # Anyone can edit the config file. In a closed workspace, a budget in that file closes no need.
        return "budget" if row.tool == SET_BUDGET else _EFFECTS_OF_ZONES[row.zone]
    if row.zone == "token":
        # Revoking a token only removes a permission.
        return None if row.deleted else "token"
    if row.zone == "workspace" and (found := _effect_of_path(row)) is not None:
        return found
    if row.zone == "task":
        return "end_task" if version > 1 else None
    if row.zone == "revert":
        # The second version only records that the revert is finished.
        return "revert" if version == 1 else None
    if row.tool == REVERT_WORK and row.kind == "human":
        return "revert"
    if row.tool in SETTLING_TOOLS or (row.zone in SHARED and _names(row, "resolves")):
        return "settle"
    return "edit" if row.zone in SHARED and row.kind == "human" else None


def _effect_of_path(row: Row) -> Effect | None:
    """Return the effect of a version of a path in the zone ``workspace``."""
    if row.path in _EFFECTS_OF_PATHS:
        return "release" if row.tool == RELEASE_AGENTS else _EFFECTS_OF_PATHS[row.path]
    if row.path.startswith(ROUTINE_PREFIX):
        return _EFFECTS_ON_ROUTINES.get(row.tool, "routine")
    return None


def _names(row: Row, name: str) -> bool:
    """Whether the detail of ``row`` has the field ``name``. For speed, search the text before parsing it."""
    return (name in row.detail_json or "\\u" in row.detail_json) and name in row.detail


_EFFECTS_OF_ZONES: Final[Mapping[Zone, Effect | None]] = {
    "person": "person",
    "settings": "settings",
    "config": None,
}
_EFFECTS_ON_ROUTINES: Final[Mapping[str, Effect]] = {RUN_ROUTINE: "run_routine", STOP_ROUTINE: "stop_routine"}
_EFFECTS_OF_PATHS: Final[Mapping[str, Effect]] = {STOPPED_PATH: "stop", ID_PATH: "identify"}
