"""Plug-ins: objects that other installed packages offer through entry points.

A plug-in that cannot be used is left out and reported, so a broken package never stops anything else. The
metadata of packages is read when the first plug-in of a group is needed, because that takes a process 20 ms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from watchroom.validation import PLUGIN_NAME, escape_unstorable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

OWN_PACKAGE: Final = "watchroom"
MAX_PLUGINS: Final = 100
"""Max plug-ins of a group. Others are left out."""
_MAX_REASON: Final = 300
LOGGER: Final = "watchroom.plugins"
"""The logger of problems. The arguments of a record are the fields of its `PluginProblem`."""
_log = logging.getLogger(LOGGER)


class OfferedPlugin(NamedTuple):
    """The ``value`` of an entry point ``name`` of a ``package``."""

    name: str
    package: str
    value: object


class PluginProblem(NamedTuple):
    """A plug-in that is left out.

    - ``group``, ``name``: its entry point.
    - ``package``: the package that has it.
    - ``reason``: why, in one line of English.
    """

    group: str
    name: str
    package: str
    reason: str


class Plugins(NamedTuple, Generic[T]):
    """The usable plug-ins of a group by name, and the others."""

    found: Mapping[str, T]
    problems: tuple[PluginProblem, ...] = ()


def load_plugins(group: str, check: Callable[[OfferedPlugin], T]) -> Plugins[T]:
    """Load the plug-ins of ``group``: those of Watchroom first, then by name and package.

    - ``check``: returns the value of a plug-in as it is used. Raise ValueError with the reason if it is
      invalid.

    A problem is also logged.
    """
    # Loading the module takes longer than most commands run.
    from importlib.metadata import entry_points

    found: dict[str, T] = {}
    problems: list[PluginProblem] = []
    points = [(_package_of(each), each.name, each) for each in entry_points(group=group)]
    for package, name, point in sorted(points, key=lambda each: (each[0] != OWN_PACKAGE, each[1], each[0])):
        try:
            if not PLUGIN_NAME.fullmatch(name):
                raise ValueError("the name is invalid: lower-case letters, digits, - and _, at most 40")
            if name in found:
                raise ValueError("an earlier plug-in has this name")
            if len(found) >= MAX_PLUGINS:
                raise ValueError(f"there are more than {MAX_PLUGINS} plug-ins")
            found[name] = check(OfferedPlugin(name, package, point.load()))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a package of others can raise anything
            problems.append(PluginProblem(group, _line(name, 40), _line(package, 80), describe_error(error)))
            _log.warning("%s: the plug-in %s of the package %s is left out: %s", *problems[-1])
    return Plugins(MappingProxyType(found), tuple(problems))


def _line(text: str, most: int = _MAX_REASON) -> str:
    """Return ``text`` in one printable line of at most ``most`` characters."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(shown.split())[:most]


def describe_error(error: BaseException) -> str:
    """Return the reason in ``error``, which a plug-in raised, in one line. Its type is left out for a
    ValueError."""
    kind = type(error).__name__
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  # a class of others can raise anything
        said = "?"
    return _line(escape_unstorable(said if type(error) is ValueError else f"{kind}: {said}", _MAX_REASON))


def _package_of(point: EntryPoint) -> str:
    """Return the name of the package with ``point``, ``?`` if its metadata is broken."""
    try:
        return (point.dist and point.dist.name) or "?"
    except Exception:  # noqa: BLE001  # metadata of others can be malformed in any way
        return "?"
