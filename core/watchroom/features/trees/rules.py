"""The settings of working trees that people add: the table ``trees`` of the config. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from watchroom.errors import ConfigInvalid

_LISTS: Final = ("linked", "caches")
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "ports": (0, 1000),
    "first_port": (1024, 65_535),
    "max_copied_bytes": (0, 2**62),
}
CACHES: Final = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
LAST_PORT: Final = 65_535


class TreeSettings(NamedTuple):
    """The settings for adding working trees.

    - ``folder``: the folder of the trees, relative to the main working tree. Default: the repository's folder
      with the suffix ``.trees``, beside it.
    - ``setup``: a command of the shell that is run in a new tree; empty for none.
    - ``check``: a command of the shell that must succeed in a merge before a tree lands; empty for none.
    - ``ports``: the number of ports that a tree gets, default 10; 0 for none.
    - ``first_port``: the lowest port of all trees, default 20000.
    - ``linked``: ignored folders that are linked into a tree instead of copied, such as ``node_modules``.
    - ``max_copied_bytes``: the maximum size of the ignored files that are copied, default 1 GB. Clones of a
      file system do not count.
    - ``caches``: names of ignored files and folders that are removed with a tree, because programs make them
      again.
    """

    folder: str = ""
    setup: str = ""
    check: str = ""
    ports: int = 10
    first_port: int = 20_000
    linked: tuple[str, ...] = ()
    max_copied_bytes: int = 1_000_000_000
    caches: tuple[str, ...] = CACHES


def parse_trees(table: object) -> TreeSettings:
    """Parse ``table``, the entry ``trees`` of the config. Raise `ConfigInvalid` with the invalid entry."""
    if not isinstance(table, dict) or not table.keys() <= set(TreeSettings._fields):
        raise ConfigInvalid(problem=f"trees ({', '.join(TreeSettings._fields)})")
    fields: dict[str, object] = {}
    for name, value in table.items():
        if name in _BOUNDS:
            low, high = _BOUNDS[name]
            # True is an int.
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ConfigInvalid(problem=f"trees.{name} = {value!r} ({low} … {high})")
            fields[name] = value
        elif name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
                raise ConfigInvalid(problem=f"trees.{name} = {value!r}")
            fields[name] = tuple(value)
        elif not isinstance(value, str) or "\0" in value:
            raise ConfigInvalid(problem=f"trees.{name} = {value!r}")
        else:
            fields[name] = value
    found = TreeSettings(**cast("Mapping[str, Any]", fields))
    if found.first_port + found.ports - 1 > LAST_PORT:
        raise ConfigInvalid(problem=f"trees.first_port = {found.first_port}")
    return found


def dump_trees(settings: TreeSettings) -> dict[str, object]:
    """Return ``settings`` as the entry ``trees`` of the config, without defaults: the reverse of
    `parse_trees`."""
    defaults = TreeSettings()._asdict()
    changed = {name: value for name, value in settings._asdict().items() if value != defaults[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}
