"""The settings of checks (the list ``checks`` of the config), and the consequences of results. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.algorithms.globs import matches_path
from watchroom.errors import ConfigInvalid

MAX_CHECKS: Final = 20
MAX_COMMAND: Final = 10_000
"""Maximum characters of a command."""
_MAX_NAME: Final = 60
_MAX_PATTERNS: Final = 100
_MAX_PATTERN: Final = 1000
_SECONDS: Final = (1.0, 7200.0)
_ATTEMPTS: Final = (0, 10)

CheckState: TypeAlias = Literal["passed", "failed", "timed_out", "not_run", "interrupted"]
"""How a check ended.

- ``passed``: its exit status was 0.
- ``failed``: it had another exit status.
- ``timed_out``: it was ended at its time limit.
- ``not_run``: it could not run, for example because the agent has no folder with files to check.
- ``interrupted``: the process that ran it ended.
"""
CHECK_STATES: Final[tuple[CheckState, ...]] = get_args(CheckState)
CheckSequel: TypeAlias = Literal["done", "back", "unproven", "held", "superseded", "again"]
"""The consequence of a result.

- ``done``: nothing, because the check passed.
- ``back``: the result was sent back to the agent.
- ``unproven``: a person decides, because the attempts are used up or the result cannot be sent back.
- ``held``: nothing, because a person or a budget holds the agent.
- ``superseded``: nothing, because the agent has continued its work.
- ``again``: the interrupted check is repeated.
"""
CHECK_SEQUELS: Final[tuple[CheckSequel, ...]] = get_args(CheckSequel)
AgentStanding: TypeAlias = Literal["idle", "busy", "held", "ended"]
"""The state of an agent when its check ends.

- ``idle``: it waits for a prompt.
- ``busy``: it works again.
- ``held``: a person paused or cancelled it, or one of its budgets is used up.
- ``ended``: no process takes prompts for it.
"""


class CheckSettings(NamedTuple):
    """A check.

    - ``name``: shown to people and agents.
    - ``command``: a command of the shell. Exit status 0 means that the check passed.
    - ``paths``: patterns. The check applies if the agent has, or may have, changed a matching file since the
      check last passed. Empty: it always applies.
    - ``time_limit``: seconds, default 600.
    - ``attempts``: how often a failure is sent back to the agent, default 2.
    """

    name: str
    command: str
    paths: tuple[str, ...] = ()
    time_limit: float = 600.0
    attempts: int = 2


def parse_checks(given: object) -> tuple[CheckSettings, ...]:
    """Parse ``given``, the entry ``checks`` of the config. Raise `ConfigInvalid` with the invalid entry."""
    if not isinstance(given, list) or len(given) > MAX_CHECKS:
        raise ConfigInvalid(problem=f"checks (0 … {MAX_CHECKS})")
    found = tuple(_parse_check(number, table) for number, table in enumerate(given, 1))
    names = [each.name for each in found]
    if len({*names}) < len(names):
        raise ConfigInvalid(problem=f"checks: name ({', '.join(names)})")
    return found


def _parse_check(number: int, table: object) -> CheckSettings:
    place = f"checks.{number}"
    if not isinstance(table, dict) or not table.keys() <= set(CheckSettings._fields):
        raise ConfigInvalid(problem=f"{place} ({', '.join(CheckSettings._fields)})")
    name, command = table.get("name"), table.get("command")
    if not _is_text(name, _MAX_NAME) or not str(name).isprintable():
        raise ConfigInvalid(problem=f"{place}.name = {name!r} (1 … {_MAX_NAME})")
    if not _is_text(command, MAX_COMMAND):
        raise ConfigInvalid(problem=f"{place}.command (1 … {MAX_COMMAND})")
    paths = table.get("paths", [])
    is_list = isinstance(paths, list) and len(paths) <= _MAX_PATTERNS
    if not is_list or not all(_is_text(each, _MAX_PATTERN) for each in paths):
        raise ConfigInvalid(problem=f"{place}.paths")
    numbers = {
        field: table[field]
        for field, bounds in (("time_limit", _SECONDS), ("attempts", _ATTEMPTS))
        if field in table and _check_number(f"{place}.{field}", table[field], bounds)
    }
    if not isinstance(numbers.get("attempts", 0), int):
        raise ConfigInvalid(problem=f"{place}.attempts = {numbers['attempts']!r}")
    return CheckSettings(str(name), str(command), tuple(paths), **cast("Mapping[str, Any]", numbers))


def _check_number(place: str, value: object, bounds: tuple[float, float]) -> bool:
    low, high = bounds
    # True is an int.
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigInvalid(problem=f"{place} = {value!r} ({low:g} … {high:g})")
    return True


def _is_text(value: object, limit: int) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= len(value) <= limit and "\0" not in value


def dump_checks(checks: Sequence[CheckSettings]) -> list[dict[str, object]]:
    """Return ``checks`` as the entry of the config, without defaults: the reverse of `parse_checks`."""
    defaults = CheckSettings("", "")._asdict()
    return [
        {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in each._asdict().items()
            if value != defaults[name]
        }
        for each in checks
    ]


def applies(check: CheckSettings, changed: Collection[str]) -> bool:
    """Return whether ``check`` applies. ``changed``: the paths that the agent has changed since the check
    last passed, relative to the agent's folder."""
    return not check.paths or any(matches_path(pattern, path) for pattern in check.paths for path in changed)


def choose_sequel(state: CheckState, standing: AgentStanding, sent: int, attempts: int) -> CheckSequel:
    """Return the consequence of a result.

    - ``standing``: the state of the agent now.
    - ``sent``: how often a failure of this check was sent back since it last passed, or since a person last
      gave the agent a prompt.
    - ``attempts``: see `CheckSettings`.
    """
    if state == "passed":
        return "done"
    if standing == "busy":
        return "superseded"
    if standing == "held":
        return "held"
    # The agent cannot help if a check could not run.
    is_answerable = standing == "idle" and state in ("failed", "timed_out")
    return "back" if is_answerable and sent < attempts else "unproven"
