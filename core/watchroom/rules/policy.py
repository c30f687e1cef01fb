"""Rules that say which tool calls of agents are allowed, need a person's approval, or are denied. Pure.

They are in the table ``policy`` of ``config.toml`` and are tried in order. The first rule that matches
decides. A call that no rule matches is allowed, as far as the policy goes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn, TypeAlias, cast, get_args

from watchroom.errors import ConfigInvalid
from watchroom.model import HUMAN_PREFIX, Json
from watchroom.rules.globs import could_match_text, matches_path, matches_text
from watchroom.rules.policy_subject import PolicySubject, policy_subject

if TYPE_CHECKING:
    from watchroom.rules.command_parts import CommandParts
    from watchroom.rules.plain_command import Doubt, PlainCommand

Verdict: TypeAlias = Literal["allow", "ask", "deny"]
"""What a rule says of a call: it is made, a person is asked, or it is refused; the stricter ones later."""
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
PolicyMode: TypeAlias = Literal["enforce", "test"]
"""Whether a rule holds, or only tells what it would have done."""
MODES: Final[tuple[PolicyMode, ...]] = get_args(PolicyMode)
Mismatch: TypeAlias = Literal[
    "",
    "agent",
    "tool",
    "days",
    "hours",
    "no_path",
    "path",
    "no_command",
    "command",
    "command_part",
    "command_doubt",
]
"""Why a rule does not match a call; empty if it matches. ``command_part``: an ``allow`` rule covers the first
command of several, but not all. ``command_doubt``: the command is not wholly understood, so that no ``allow``
rule matches it."""

DEFAULT_TIME_ZONE: Final = "UTC"
_LONGEST_TIME_ZONE: Final = 60
MAX_RULES: Final = 100
MAX_PATTERNS: Final = 20
"""So many patterns may one entry of a rule have."""
MAX_PATTERN: Final = 200
MAX_NAME: Final = 100
"""Characters."""
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PATCH_TOOL: Final = "apply_patch"
"""Codex's tool whose argument ``command`` is a patch."""
_MINUTES: Final = 24 * 60
_TIME: Final = "([01][0-9]|2[0-4]):([0-5][0-9])"
_HOURS: Final = re.compile(f"{_TIME}-{_TIME}")
_PATTERNS: Final = ("tool", "agent", "path", "command")
_FIELDS: Final = ("name", *_PATTERNS, "hours", "days", "verdict", "mode")


class Hours(NamedTuple):
    """A time of day, in minutes after midnight, from ``start`` until before ``end``, which may be on the next
    day."""

    start: int
    end: int


class PolicyRule(NamedTuple):
    """What becomes of calls that match all that the rule names; of patterns of one kind, one has to match.
    What is empty matches every call. ``days`` are those on which the hours begin, 0 for Monday.
    ``is_test``: it only tells."""

    verdict: Verdict
    name: str = ""
    tool: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    hours: Hours | None = None
    days: tuple[int, ...] = ()
    is_test: bool = False


class PolicyRules(NamedTuple):
    """The table ``policy``: its ``rules`` in their order. In the ``mode`` test none of them holds. Hours are
    those of ``time_zone``."""

    rules: tuple[PolicyRule, ...] = ()
    mode: PolicyMode = "enforce"
    time_zone: str = DEFAULT_TIME_ZONE


class RuleCheck(NamedTuple):
    """A ``rule`` that was tried, with its ``number`` (from 1) and why it did not match.

    ``is_test``: the rule only reports.
    ``doubt``: what is not understood in the command, if an ``allow`` rule did not match, or another rule
    matched, for no other reason.
    """

    number: int
    rule: PolicyRule
    mismatch: Mismatch
    is_test: bool
    doubt: Doubt | None = None

    @property
    def label(self) -> str:
        """The rule's number, and its name where it has one."""
        return _label(self.number, self.rule.name)


class PolicyDecision(NamedTuple):
    """What the policy says of a call: the ``verdict``, by the rule of that ``number`` and ``name``; 0 where
    none matched. ``tested`` is a rule before it that would have decided if it were no test."""

    verdict: Verdict = "allow"
    number: int = 0
    name: str = ""
    tested: RuleCheck | None = None
    checks: tuple[RuleCheck, ...] = ()
    """The rules that were tried, in their order."""

    @property
    def label(self) -> str:
        """The number of the rule that decided, and its name where it has one."""
        return _label(self.number, self.name)

    @property
    def would_differ(self) -> bool:
        """Whether a rule that is a test would have decided otherwise."""
        return self.tested is not None and self.tested.rule.verdict != self.verdict


def _label(number: int, name: str) -> str:
    return f"{number} ({name})" if name else str(number)


def decide(
    rules: PolicyRules, agent: str, tool: str, arguments: Mapping[str, Json] | PolicySubject, now: int
) -> PolicyDecision:
    """Return what ``rules`` say of a call of ``tool`` by ``agent`` at ``now`` (nanoseconds since the epoch).
    ``arguments`` are those of the call, or what `policy_subject` found in them. People are not subject to
    the policy."""
    if agent.startswith(HUMAN_PREFIX) or not rules.rules:
        return PolicyDecision()
    subject = arguments if isinstance(arguments, PolicySubject) else policy_subject(arguments)
    call = _Call(agent, tool, subject, _local_time(rules, now))
    checks: list[RuleCheck] = []
    tested: RuleCheck | None = None
    for number, rule in enumerate(rules.rules, 1):
        mismatch, doubt = _mismatch(rule, call)
        check = RuleCheck(number, rule, mismatch, rule.is_test or rules.mode == "test", doubt)
        checks.append(check)
        if check.mismatch:
            continue
        if not check.is_test:
            return PolicyDecision(rule.verdict, number, rule.name, tested, tuple(checks))
        tested = tested or check
    return PolicyDecision(tested=tested, checks=tuple(checks))


def stricter_decision(one: PolicyDecision, other: PolicyDecision) -> PolicyDecision:
    """That of the decisions ``one`` and ``other`` that lets less happen; the first where they are the
    same."""
    if VERDICTS.index(other.verdict) > VERDICTS.index(one.verdict):
        return other
    return other if other.would_differ and not one.would_differ and one.verdict == other.verdict else one


class _Call:
    """A call as rules look at it. Its command is read when a rule needs it."""

    def __init__(self, agent: str, tool: str, subject: PolicySubject, time: datetime) -> None:
        self.agent = agent
        self.tool = tool
        self.subject = subject
        self.time = time

    @cached_property
    def parts(self) -> tuple[CommandParts, ...]:
        """What each command could run, for rules that deny or ask."""
        # Only rules with commands load the readers.
        from watchroom.rules.command_parts import split_command

        found = tuple(split_command(each) for each in self.subject.commands)
        # A patch is text that no shell reads.
        is_patch = self.tool == _PATCH_TOOL
        return tuple(each._replace(doubt=None) for each in found) if is_patch else found

    @cached_property
    def plain(self) -> tuple[PlainCommand, ...]:
        """Each command as far as it is wholly understood, for rules that allow."""
        from watchroom.rules.plain_command import read_plain_command

        return tuple(read_plain_command(each) for each in self.subject.commands)


def _mismatch(rule: PolicyRule, call: _Call) -> tuple[Mismatch, Doubt | None]:
    if rule.agent and not _matches_any(rule.agent, call.agent):
        return "agent", None
    if rule.tool and not _matches_any(rule.tool, call.tool):
        return "tool", None
    when = _time_mismatch(rule, call.time)
    if when:
        return when, None
    if rule.path:
        return _path_mismatch(rule, call.subject), None
    return _command_mismatch(rule, call) if rule.command else ("", None)


def _matches_any(patterns: tuple[str, ...], text: str) -> bool:
    return any(matches_text(pattern, text) for pattern in patterns)


def _time_mismatch(rule: PolicyRule, time: datetime) -> Mismatch:
    day = time.weekday()
    if rule.hours is not None:
        start, end = rule.hours
        minute = time.hour * 60 + time.minute
        if start < end:
            is_within = start <= minute < end
        else:
            is_within = minute >= start or minute < end
            # The night from Friday to Saturday is Friday's.
            day = day if minute >= start else (day - 1) % len(DAYS)
        if not is_within:
            return "hours"
    return "days" if rule.days and day not in rule.days else ""


def _path_mismatch(rule: PolicyRule, subject: PolicySubject) -> Mismatch:
    if not subject.paths:
        return "no_path"
    if rule.verdict == "allow":
        matched = [any(matches_path(pattern, path) for pattern in rule.path) for path in subject.paths]
        return "" if all(matched) and not subject.is_cut else "path"
    # Some disks take upper and lower case for one.
    patterns = [pattern.casefold() for pattern in rule.path]
    found = any(matches_path(pattern, path.casefold()) for path in subject.paths for pattern in patterns)
    return "" if found or subject.is_cut else "path"


def _command_mismatch(rule: PolicyRule, call: _Call) -> tuple[Mismatch, Doubt | None]:
    if not call.subject.command.strip():
        return "no_command", None
    if rule.verdict == "allow":
        return _allow_mismatch(rule, call.plain)
    doubt: Doubt | None = None
    for command, found in zip(call.subject.commands, call.parts, strict=True):
        if any(_matches_any(rule.command, each) for each in (command.strip(), *found.parts)):
            return "", None
        if any(could_match_text(pattern, each) for pattern in rule.command for each in found.simple):
            return "", None
        doubt = doubt or found.doubt
    return ("", doubt) if doubt else ("command", None)


def _allow_mismatch(rule: PolicyRule, plain: tuple[PlainCommand, ...]) -> tuple[Mismatch, Doubt | None]:
    doubt = next((each.doubt for each in plain if each.doubt), None)
    if doubt is not None:
        return "command_doubt", doubt
    covered = [_matches_any(rule.command, each) for command in plain for each in command.commands]
    return ("" if all(covered) else "command_part" if covered[0] else "command"), None


def _local_time(rules: PolicyRules, now: int) -> datetime:
    from zoneinfo import ZoneInfo

    return datetime.fromtimestamp(now / 1e9, ZoneInfo(rules.time_zone))


def parse_policy(table: object) -> PolicyRules:
    """Return the rules that ``table``, the entry ``policy`` of the config, says. Raises `ConfigInvalid`,
    which names the entry that is wrong."""
    if not isinstance(table, dict):
        _refuse("policy")
    _check_fields("policy", table, ("mode", "time_zone", "rules"))
    given = table.get("rules", [])
    if not isinstance(given, list):
        _refuse("policy.rules ([[policy.rules]])")
    if len(given) > MAX_RULES:
        _refuse(f"policy.rules: {len(given)} (0 … {MAX_RULES})")
    rules = tuple(_parse_rule(f"policy.rules {number}", each) for number, each in enumerate(given, 1))
    return PolicyRules(
        rules, _mode("policy", table), _parse_time_zone(table.get("time_zone", DEFAULT_TIME_ZONE))
    )


def _parse_rule(at: str, table: object) -> PolicyRule:
    if not isinstance(table, dict):
        _refuse(at)
    _check_fields(at, table, _FIELDS)
    verdict = table.get("verdict")
    if verdict not in VERDICTS:
        _refuse(f"{at}: verdict = {verdict!r} ({', '.join(VERDICTS)})")
    if "path" in table and "command" in table:
        _refuse(f"{at}: path, command (path | command)")
    name = table.get("name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME or not name.isprintable():
        _refuse(f"{at}: name (1 … {MAX_NAME})")
    patterns = {kind: _parse_patterns(at, kind, table[kind]) for kind in _PATTERNS if kind in table}
    for pattern in patterns.get("path", ()):
        if pattern != "/" and any(part in ("", ".", "..") for part in pattern.removeprefix("/").split("/")):
            _refuse(f"{at}: path = {pattern!r}")
    return PolicyRule(
        cast("Verdict", verdict),
        name,
        **patterns,
        hours=_parse_hours(at, table["hours"]) if "hours" in table else None,
        days=_parse_days(at, table["days"]) if "days" in table else (),
        is_test=_mode(at, table) == "test",
    )


def _parse_patterns(at: str, kind: str, given: object) -> tuple[str, ...]:
    found = given if isinstance(given, list) else [given]
    if not 0 < len(found) <= MAX_PATTERNS:
        _refuse(f"{at}: {kind}: {len(found)} (1 … {MAX_PATTERNS})")
    patterns: list[str] = []
    for each in found:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_PATTERN:
            _refuse(f"{at}: {kind} = {_shown(each)} (1 … {MAX_PATTERN})")
        patterns.append(unicodedata.normalize("NFC", each))
    return tuple(patterns)


def _parse_hours(at: str, given: object) -> Hours:
    found = _HOURS.fullmatch(given) if isinstance(given, str) else None
    hours = Hours(*(int(found[index]) * 60 + int(found[index + 1]) for index in (1, 3))) if found else None
    if hours is None or hours.start == hours.end or hours.start >= _MINUTES or hours.end > _MINUTES:
        _refuse(f'{at}: hours = {_shown(given)} ("09:00-18:00")')
    return hours


def _parse_days(at: str, given: object) -> tuple[int, ...]:
    found: set[int] = set()
    for each in given if isinstance(given, list) else [given]:
        first, _, last = each.partition("-") if isinstance(each, str) else ("", "", "")
        if first not in DAYS or (last or first) not in DAYS:
            _refuse(f'{at}: days = {_shown(each)} ({", ".join(DAYS)}, "mon-fri")')
        start, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % len(DAYS) for day in range(start, (end if end >= start else end + len(DAYS)) + 1)}
    if not found:
        _refuse(f"{at}: days = []")
    return tuple(sorted(found))


def _parse_time_zone(given: object) -> str:
    if given == DEFAULT_TIME_ZONE:
        # To load the zones takes longer than all else that reads a config.
        return DEFAULT_TIME_ZONE
    from zoneinfo import ZoneInfo

    # A longer name is looked for as a package, each of its parts within the one before it.
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST_TIME_ZONE:
        _refuse_time_zone(given)
    try:
        return ZoneInfo(given).key
    # A name that is no file's, or that of no time zone (`ZoneInfoNotFoundError` is a KeyError).
    except (KeyError, ValueError, OSError):
        _refuse_time_zone(given)


def _refuse_time_zone(given: object) -> NoReturn:
    _refuse(f'policy.time_zone = {_shown(given)} ("UTC", "Europe/Berlin", …)')


def _mode(at: str, table: Mapping[str, object]) -> PolicyMode:
    mode = table.get("mode", "enforce")
    if mode not in MODES:
        _refuse(f"{at}: mode = {_shown(mode)} ({', '.join(MODES)})")
    return "test" if mode == "test" else "enforce"


def _check_fields(at: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        _refuse(f"{at}: {_shown(', '.join(unknown))} ({', '.join(known)})")


def _shown(given: object) -> str:
    text = repr(given)
    return text[:100] + "…" * (len(text) > 100)


def _refuse(problem: str) -> NoReturn:
    raise ConfigInvalid(problem=problem)


def policy_as_table(rules: PolicyRules) -> dict[str, object]:
    """Return ``rules`` as the table that says them, without what has its default: the reverse of
    `parse_policy`."""
    table: dict[str, object] = {}
    if rules.mode != "enforce":
        table["mode"] = rules.mode
    if rules.time_zone != DEFAULT_TIME_ZONE:
        table["time_zone"] = rules.time_zone
    if rules.rules:
        table["rules"] = [rule_as_table(rule) for rule in rules.rules]
    return table


def rule_as_table(rule: PolicyRule) -> dict[str, object]:
    """Return ``rule`` as its entry says it."""
    table: dict[str, object] = {"name": rule.name} if rule.name else {}
    for kind in _PATTERNS:
        patterns: tuple[str, ...] = getattr(rule, kind)
        if patterns:
            table[kind] = patterns[0] if len(patterns) == 1 else list(patterns)
    if rule.hours is not None:
        table["hours"] = "-".join(f"{at // 60:02}:{at % 60:02}" for at in rule.hours)
    if rule.days:
        table["days"] = [DAYS[day] for day in rule.days]
    table["verdict"] = rule.verdict
    if rule.is_test:
        table["mode"] = "test"
    return table
