"""Rules that allow tool calls of agents, deny them, or require a person's approval. Pure.

The rules are in the table ``policy`` of ``config.toml``. `decide` tries them in order, and the first rule
that matches decides. The policy allows a call that no rule matches. `policy_subject` finds the paths and
commands in the arguments of a call. It knows the arguments of Watchroom's tools and of common clients, for
example ``file_path`` of ``Write``, ``command`` of ``Bash``, and the files of a patch.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from posixpath import join, normpath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, NoReturn, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.algorithms.globs import could_match_text, matches_path, matches_text
from watchroom.errors import ConfigInvalid
from watchroom.features.boards.rows import BOARD_ARGUMENT
from watchroom.model import HUMAN_PREFIX, Json

if TYPE_CHECKING:
    from watchroom.features.policy.plain_command import Doubt, PlainCommand
    from watchroom.features.policy.shell_reader import CommandParts

Verdict: TypeAlias = Literal["allow", "ask", "deny"]
"""The effect of a rule: the call is made, a person is asked, or the call is refused. In order of
strictness."""
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
PolicyMode: TypeAlias = Literal["enforce", "test"]
"""Whether rules are enforced, or only report their effect."""
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
"""The reason why a rule does not match a call; empty if it matches.

- ``command_part``: an ``allow`` rule covers the first of several commands, but not all.
- ``command_doubt``: the command is not fully understood, so no ``allow`` rule matches it.
"""

DEFAULT_TIME_ZONE: Final = "UTC"
_MAX_TIME_ZONE: Final = 60
"""Maximum characters of the name of a time zone."""
MAX_RULES: Final = 100
MAX_PATTERNS: Final = 20
"""Maximum number of patterns of one kind in a rule."""
MAX_PATTERN: Final = 200
"""Maximum characters of a pattern."""
MAX_NAME: Final = 100
"""Maximum characters of the name of a rule."""
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PATCH_TOOL: Final = "apply_patch"
"""A tool of Codex. Its argument ``command`` is a patch."""
_MINUTES: Final = 24 * 60
_TIME: Final = "([01][0-9]|2[0-4]):([0-5][0-9])"
_HOURS: Final = re.compile(f"{_TIME}-{_TIME}")
_PATTERNS: Final = ("tool", "agent", "path", "command")
_FIELDS: Final = ("name", *_PATTERNS, "hours", "days", "verdict", "mode")
MAX_PATHS: Final = 200
"""Maximum number of paths of a call that are matched."""
_MAX_PATCH_CHARACTERS: Final = 10_000_000
_PATH_ARGUMENTS: Final = (
    "filepath",
    "filename",
    "path",
    BOARD_ARGUMENT,
    "doc_id",
    "file_path",
    "notebook_path",
    "target_file",
    "relative_path",
    "source_path",
    "destination_path",
    "destination",
    "old_path",
    "new_path",
    "directory",
    "paths",
    "files",
)
"""Arguments that name a path, or a list of them."""
_LIST_ARGUMENTS: Final = ("edits", "files", "locations", "changes", "content")
"""Arguments that are lists of objects, which can name paths."""
_COMMAND_ARGUMENTS: Final = ("command", "cmd", "script")
"""Arguments that are commands. Common clients use names of arguments consistently."""
_PATCH_ARGUMENTS: Final = ("patch", "input", *_COMMAND_ARGUMENTS)
"""Arguments that can be a patch."""
_SHELL: Final = re.compile("(?:/bin/|/usr/bin/|/usr/local/bin/|/opt/homebrew/bin/)?(?:sh|bash|dash|zsh)")
_SCRIPT: Final = re.compile("-[elux]*c")
_PATCHED: Final = re.compile(r"^[ \t]*+\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$", re.MULTILINE)


class PolicySubject(NamedTuple):
    """The paths and commands of a tool call.

    - ``paths``: normalized paths, at most `MAX_PATHS`.
    - ``commands``: shell commands, one per argument. The tool executes one of them, but it is unknown which.
    - ``is_cut``: the call names further paths.
    """

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def command(self) -> str:
        """The commands as one text, for display."""
        return "\n".join(self.commands)


def policy_subject(
    arguments: Mapping[str, Json],
    *,
    folder: str = "",
    cwd: str = "",
    worktrees: Sequence[str] = (),
    resolve: Callable[[str], str] | None = None,
) -> PolicySubject:
    """Return the paths and commands of a tool call with ``arguments``.

    The tool is not needed, because common clients use argument names consistently. Without ``folder`` and
    ``cwd``, paths are relative to a zone.

    - ``folder``: the folder in which the caller was started, an absolute path. Paths below it become relative
      to it; others stay absolute.
    - ``cwd``: the current folder of the caller, an absolute path, default ``folder``.
    - ``worktrees``: absolute paths of the working trees of the repository. A path below one of them is also
      returned relative to it.
    - ``resolve``: resolves symbolic links (`os.path.realpath`). A path with a link is returned in both forms.
    """
    # Each client replaces characters that are invalid in paths in its own way, but within the same folder.
    folder, cwd = map(validation.replace_non_path_characters, (folder, cwd))
    roots = (folder, *map(validation.replace_non_path_characters, worktrees))
    commands = tuple(text for name in _COMMAND_ARGUMENTS if (text := _parse_command(arguments.get(name))))
    found: dict[str, None] = {}
    for path in _find_paths(arguments):
        for each in _normalize(path, roots, cwd or folder, resolve):
            found[each] = None
        if len(found) > MAX_PATHS:
            return PolicySubject(tuple(found)[:MAX_PATHS], commands, is_cut=True)
    return PolicySubject(tuple(found), commands)


def _parse_command(value: Json) -> str:
    """Return the command in ``value``, a text or a list of words; empty if it is neither."""
    if isinstance(value, list | tuple):
        words = [each for each in value if isinstance(each, str)]
        script = _find_script(words)
        return shlex.join(words) if script is None else script
    return value if isinstance(value, str) else ""


def _find_script(words: Sequence[str]) -> str | None:
    """Return the script if ``words`` are a common shell, ``-c`` and a script; otherwise None."""
    is_script = len(words) == 3 and bool(_SHELL.fullmatch(words[0])) and bool(_SCRIPT.fullmatch(words[1]))
    return words[2] if is_script else None


def _find_paths(arguments: Mapping[str, Json]) -> Iterator[str]:
    for name in _PATH_ARGUMENTS:
        yield from _list_texts(arguments.get(name))
    if "destination" in arguments:
        # Without a destination it can mean something else, such as the zone of a buffer.
        yield from _list_texts(arguments.get("source"))
    for name in _LIST_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, Mapping):
            # Codex passes the changes of a patch as a mapping from paths.
            yield from value if name == "changes" else ()
            continue
        for each in value if isinstance(value, list | tuple) else ():
            if isinstance(each, Mapping):
                for key in _PATH_ARGUMENTS:
                    yield from _list_texts(each.get(key))
    for name in _PATCH_ARGUMENTS:
        value = arguments.get(name)
        text = value if isinstance(value, str) else "\n".join(_list_texts(value))
        if "*** " in text:
            yield from patched_files(text[:_MAX_PATCH_CHARACTERS])


def patched_files(patch: str) -> Iterator[str]:
    """Yield the paths of the files in ``patch``. Like Codex, ignore spaces around them."""
    return (path.strip() for path in _PATCHED.findall(patch))


def _list_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))


def _normalize(
    path: str, roots: Sequence[str], cwd: str, resolve: Callable[[str], str] | None
) -> Iterator[str]:
    path = unicodedata.normalize("NFC", validation.replace_non_path_characters(path.strip()))
    if not path:
        return
    whole = join(cwd, path) if cwd else path
    yield from _list_relative_paths(whole, roots)
    if resolve is not None:
        yield from _list_relative_paths(resolve(whole), [resolve(root) if root else root for root in roots])


def _list_relative_paths(path: str, roots: Sequence[str]) -> Iterator[str]:
    """Yield ``path`` relative to each of the folders ``roots`` that contains it.

    If the first root does not contain it, also yield the normalized path.
    """
    path = normpath(path)
    # POSIX lets normpath keep two leading slashes.
    path = path[1:] if path.startswith("//") else path
    for index, root in enumerate(roots):
        beneath = normpath(root).rstrip("/") + "/" if root else ""
        if beneath and f"{path}/".startswith(beneath):
            yield path[len(beneath) :] or "."
        elif not index:
            yield path


class Hours(NamedTuple):
    """A period in minutes after midnight, ``end`` excluded. It can end on the next day."""

    start: int
    end: int


class PolicyRule(NamedTuple):
    """A rule. It matches a call if all of its non-empty conditions match.

    - ``verdict``: the effect on matching calls.
    - ``name``: a name for people, empty for none.
    - ``tool``, ``agent``, ``path``, ``command``: patterns. One pattern of each must match.
    - ``hours``: the time of day.
    - ``days``: the days on which the hours begin, 0 for Monday.
    - ``is_test``: the rule only reports its effect.
    """

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
    """The table ``policy``.

    - ``rules``: the rules in order.
    - ``mode``: in the mode ``test`` no rule is enforced.
    - ``time_zone``: the time zone of all hours, default UTC.
    """

    rules: tuple[PolicyRule, ...] = ()
    mode: PolicyMode = "enforce"
    time_zone: str = DEFAULT_TIME_ZONE

    def applies_to(self, agent: str) -> bool:
        """Return whether a rule could match calls of ``agent``. People are not subject to the policy.

        If False, `decide` needs neither the arguments nor the time.
        """
        return bool(self.rules) and not agent.startswith(HUMAN_PREFIX)


class RuleCheck(NamedTuple):
    """A rule that was tried.

    - ``number``: the position of the rule, from 1.
    - ``mismatch``: the reason why it did not match; empty if it matched.
    - ``is_test``: the rule only reports its effect.
    - ``doubt``: set if the result depends on the doubt about the command. A doubt prevents matches of
      ``allow`` rules, and causes matches of other rules.
    """

    number: int
    rule: PolicyRule
    mismatch: Mismatch
    is_test: bool
    doubt: Doubt | None = None

    @property
    def label(self) -> str:
        """The number of the rule, and its name if it has one."""
        return _build_label(self.number, self.rule.name)


class PolicyDecision(NamedTuple):
    """The decision of the policy on a call.

    - ``verdict``: the effect on the call.
    - ``number``, ``name``: the rule that decided; 0 and empty if no rule matched.
    - ``tested``: the first earlier rule that matched but only reports its effect.
    - ``checks``: the rules that were tried, in order.
    """

    verdict: Verdict = "allow"
    number: int = 0
    name: str = ""
    tested: RuleCheck | None = None
    checks: tuple[RuleCheck, ...] = ()

    @property
    def label(self) -> str:
        """The number of the rule that decided, and its name if it has one."""
        return _build_label(self.number, self.name)

    @property
    def would_differ(self) -> bool:
        """Whether a rule that only reports would have led to another decision."""
        return self.tested is not None and self.tested.rule.verdict != self.verdict


def _build_label(number: int, name: str) -> str:
    return f"{number} ({name})" if name else str(number)


def decide(
    rules: PolicyRules, agent: str, tool: str, arguments: Mapping[str, Json] | PolicySubject, now: int
) -> PolicyDecision:
    """Return the decision on a call of ``tool`` by ``agent``.

    - ``arguments``: the arguments of the call, or the result of `policy_subject` for them.
    - ``now``: nanoseconds since the epoch.
    """
    if not rules.applies_to(agent):
        return PolicyDecision()
    subject = arguments if isinstance(arguments, PolicySubject) else policy_subject(arguments)
    call = _Call(agent, tool, subject, _compute_local_time(rules, now))
    checks: list[RuleCheck] = []
    tested: RuleCheck | None = None
    for number, rule in enumerate(rules.rules, 1):
        mismatch, doubt = _find_mismatch(rule, call)
        check = RuleCheck(number, rule, mismatch, rule.is_test or rules.mode == "test", doubt)
        checks.append(check)
        if check.mismatch:
            continue
        if not check.is_test:
            return PolicyDecision(rule.verdict, number, rule.name, tested, tuple(checks))
        tested = tested or check
    return PolicyDecision(tested=tested, checks=tuple(checks))


def stricter_decision(one: PolicyDecision, other: PolicyDecision) -> PolicyDecision:
    """Return the stricter of two decisions.

    If they are equally strict, prefer a decision with `would_differ`, then ``one``.
    """
    if VERDICTS.index(other.verdict) > VERDICTS.index(one.verdict):
        return other
    return other if other.would_differ and not one.would_differ and one.verdict == other.verdict else one


class _Call:
    """A call to check. Its commands are parsed on demand."""

    def __init__(self, agent: str, tool: str, subject: PolicySubject, time: datetime) -> None:
        self.agent = agent
        self.tool = tool
        self.subject = subject
        self.time = time

    @cached_property
    def parts(self) -> tuple[CommandParts, ...]:
        """The parts of each command that it could run. Used by rules that deny or ask."""
        # The parsers are loaded on demand, because few policies have rules with commands.
        from watchroom.features.policy.shell_reader import split_command

        found = tuple(split_command(each) for each in self.subject.commands)
        # No shell parses a patch.
        is_patch = self.tool == _PATCH_TOOL
        return tuple(each._replace(doubt=None) for each in found) if is_patch else found

    @cached_property
    def plain(self) -> tuple[PlainCommand, ...]:
        """The fully understood commands. Used by rules that allow."""
        from watchroom.features.policy.plain_command import read_plain_command

        return tuple(read_plain_command(each) for each in self.subject.commands)


def _find_mismatch(rule: PolicyRule, call: _Call) -> tuple[Mismatch, Doubt | None]:
    if rule.agent and not _matches_any(rule.agent, call.agent):
        return "agent", None
    if rule.tool and not _matches_any(rule.tool, call.tool):
        return "tool", None
    when = _find_time_mismatch(rule, call.time)
    if when:
        return when, None
    if rule.path:
        return _find_path_mismatch(rule, call.subject), None
    return _find_command_mismatch(rule, call) if rule.command else ("", None)


def _matches_any(patterns: tuple[str, ...], text: str) -> bool:
    return any(matches_text(pattern, text) for pattern in patterns)


def _find_time_mismatch(rule: PolicyRule, time: datetime) -> Mismatch:
    day = time.weekday()
    if rule.hours is not None:
        start, end = rule.hours
        minute = time.hour * 60 + time.minute
        if start < end:
            is_within = start <= minute < end
        else:
            is_within = minute >= start or minute < end
            # The night from Friday to Saturday belongs to Friday.
            day = day if minute >= start else (day - 1) % len(DAYS)
        if not is_within:
            return "hours"
    return "days" if rule.days and day not in rule.days else ""


def _find_path_mismatch(rule: PolicyRule, subject: PolicySubject) -> Mismatch:
    if not subject.paths:
        return "no_path"
    if rule.verdict == "allow":
        matched = [any(matches_path(pattern, path) for pattern in rule.path) for path in subject.paths]
        return "" if all(matched) and not subject.is_cut else "path"
    # Some file systems ignore case.
    patterns = [pattern.casefold() for pattern in rule.path]
    found = any(matches_path(pattern, path.casefold()) for path in subject.paths for pattern in patterns)
    return "" if found or subject.is_cut else "path"


def _find_command_mismatch(rule: PolicyRule, call: _Call) -> tuple[Mismatch, Doubt | None]:
    if not call.subject.command.strip():
        return "no_command", None
    if rule.verdict == "allow":
        return _find_allow_mismatch(rule, call.plain)
    doubt: Doubt | None = None
    for command, found in zip(call.subject.commands, call.parts, strict=True):
        if any(_matches_any(rule.command, each) for each in (command.strip(), *found.parts)):
            return "", None
        if any(could_match_text(pattern, each) for pattern in rule.command for each in found.simple):
            return "", None
        doubt = doubt or found.doubt
    return ("", doubt) if doubt else ("command", None)


def _find_allow_mismatch(rule: PolicyRule, plain: tuple[PlainCommand, ...]) -> tuple[Mismatch, Doubt | None]:
    doubt = next((each.doubt for each in plain if each.doubt), None)
    if doubt is not None:
        return "command_doubt", doubt
    covered = [_matches_any(rule.command, each) for command in plain for each in command.commands]
    return ("" if all(covered) else "command_part" if covered[0] else "command"), None


def _compute_local_time(rules: PolicyRules, now: int) -> datetime:
    from zoneinfo import ZoneInfo

    return datetime.fromtimestamp(now / 1e9, ZoneInfo(rules.time_zone))


def parse_policy(table: object) -> PolicyRules:
    """Parse ``table``, the entry ``policy`` of the config. Raise `ConfigInvalid` for an invalid entry."""
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
        rules, _parse_mode("policy", table), _parse_time_zone(table.get("time_zone", DEFAULT_TIME_ZONE))
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
        is_test=_parse_mode(at, table) == "test",
    )


def _parse_patterns(at: str, kind: str, given: object) -> tuple[str, ...]:
    found = given if isinstance(given, list) else [given]
    if not 0 < len(found) <= MAX_PATTERNS:
        _refuse(f"{at}: {kind}: {len(found)} (1 … {MAX_PATTERNS})")
    patterns: list[str] = []
    for each in found:
        if not isinstance(each, str) or not 0 < len(each) <= MAX_PATTERN:
            _refuse(f"{at}: {kind} = {_quote(each)} (1 … {MAX_PATTERN})")
        patterns.append(unicodedata.normalize("NFC", each))
    return tuple(patterns)


def _parse_hours(at: str, given: object) -> Hours:
    found = _HOURS.fullmatch(given) if isinstance(given, str) else None
    hours = Hours(*(int(found[index]) * 60 + int(found[index + 1]) for index in (1, 3))) if found else None
    if hours is None or hours.start == hours.end or hours.start >= _MINUTES or hours.end > _MINUTES:
        _refuse(f'{at}: hours = {_quote(given)} ("09:00-18:00")')
    return hours


def _parse_days(at: str, given: object) -> tuple[int, ...]:
    found: set[int] = set()
    for each in given if isinstance(given, list) else [given]:
        first, _, last = each.partition("-") if isinstance(each, str) else ("", "", "")
        if first not in DAYS or (last or first) not in DAYS:
            _refuse(f'{at}: days = {_quote(each)} ({", ".join(DAYS)}, "mon-fri")')
        start, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % len(DAYS) for day in range(start, (end if end >= start else end + len(DAYS)) + 1)}
    if not found:
        _refuse(f"{at}: days = []")
    return tuple(sorted(found))


def _parse_time_zone(given: object) -> str:
    if given == DEFAULT_TIME_ZONE:
        # Loading the time zones takes longer than parsing the rest of the config.
        return DEFAULT_TIME_ZONE
    from zoneinfo import ZoneInfo

    # The length is limited because zoneinfo searches the name as a path of nested packages.
    if not isinstance(given, str) or not 0 < len(given) <= _MAX_TIME_ZONE:
        _refuse_time_zone(given)
    try:
        return ZoneInfo(given).key
    # Unknown names raise `ZoneInfoNotFoundError` (a KeyError). Invalid file names raise the other errors.
    except (KeyError, ValueError, OSError):
        _refuse_time_zone(given)


def _refuse_time_zone(given: object) -> NoReturn:
    _refuse(f'policy.time_zone = {_quote(given)} ("UTC", "Europe/Berlin", …)')


def _parse_mode(at: str, table: Mapping[str, object]) -> PolicyMode:
    mode = table.get("mode", "enforce")
    if mode not in MODES:
        _refuse(f"{at}: mode = {_quote(mode)} ({', '.join(MODES)})")
    return "test" if mode == "test" else "enforce"


def _check_fields(at: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        _refuse(f"{at}: {_quote(', '.join(unknown))} ({', '.join(known)})")


def _quote(given: object) -> str:
    text = repr(given)
    return text[:100] + "…" * (len(text) > 100)


def _refuse(problem: str) -> NoReturn:
    raise ConfigInvalid(problem=problem)


def dump_policy(rules: PolicyRules) -> dict[str, object]:
    """Return ``rules`` as a table without defaults: the reverse of `parse_policy`."""
    table: dict[str, object] = {}
    if rules.mode != "enforce":
        table["mode"] = rules.mode
    if rules.time_zone != DEFAULT_TIME_ZONE:
        table["time_zone"] = rules.time_zone
    if rules.rules:
        table["rules"] = [dump_rule(rule) for rule in rules.rules]
    return table


def dump_rule(rule: PolicyRule) -> dict[str, object]:
    """Return ``rule`` as an entry of the table ``policy``, without defaults."""
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
