"""The parser of one command: arguments in any unambiguous order, and errors in one sentence."""

from __future__ import annotations

import argparse
from argparse import ONE_OR_MORE, OPTIONAL, ZERO_OR_MORE, Action
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.arguments.workspace_argument import (
    WorkspaceArgument,
    find_working_repository,
    is_workspace_place,
    workspace_of,
)

_MANY: Final = 1_000_000
_BOUNDS: Final[Mapping[str | int | None, tuple[int, int]]] = {
    None: (1, 1),
    OPTIONAL: (0, 1),
    ZERO_OR_MORE: (0, _MANY),
    ONE_OR_MORE: (1, _MANY),
}
"""The minimum and maximum number of an argument's values, by its ``nargs``."""


class CommandParser(argparse.ArgumentParser):
    """Parses the arguments of a command.

    Options can be anywhere. Workspaces and words of a fixed list are recognised anywhere among the other
    arguments. The other arguments are assigned in the order of declaration. The default workspace is the
    nearest workspace, from the working directory upwards. Set ``texts`` before parsing.
    """

    texts: Catalogue
    _form = ""
    """The command's synopsis."""

    def add_argument(self, *names: Any, **options: Any) -> Action:
        action = super().add_argument(*names, **options)
        if not action.option_strings and action.choices is None:
            action.metavar = action.metavar or action.dest.upper()
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = list(args)
        end = given.index("--") if "--" in given else len(given)
        # Computed before the positional arguments are hidden from argparse.
        self._form = self._synopsis()
        self.usage = self.format_usage().partition(" ")[2].strip().replace("%", "%%")
        everything = self._actions
        self._actions = self._get_optional_actions()
        try:
            namespace, values = super().parse_known_args(given[:end], namespace)
        finally:
            self._actions = everything
        unknown = next((each for each in values if each.startswith("-") and each != "-"), None)
        if unknown is not None:
            self.error(unknown_word(unknown, list(self._option_string_actions), "option", self.texts))
        for action, found in self._assign([*values, *given[end + 1 :]]):
            setattr(namespace, action.dest, self._value(action, found))
        return namespace, []

    def error(self, message: str) -> NoReturn:
        """End the command with ``message`` and the synopsis."""
        end = "" if message.endswith(("?", ".", "。", "？")) else "."
        help_text = self.texts("cli.typed.help", synopsis=self._form)
        self.exit(2, f"{self.prog}: {message}{end} {help_text}\n")

    def _assign(self, values: Sequence[str]) -> list[tuple[Action, list[str]]]:
        """Return the values of each positional argument, in the order of declaration.

        Only the last argument without a fixed meaning can have a variable number of values.
        """
        actions, left = self._get_positional_actions(), list(values)
        found: dict[str, list[str]] = {}
        for action in actions:
            fitting = next((each for each in left if _is_recognised(action, each)), None)
            if fitting is not None:
                found[action.dest] = [fitting]
                left.remove(fitting)
        place = next((each for each in actions if isinstance(each, WorkspaceArgument)), None)
        free = [each for each in actions if each.dest not in found and each is not place]
        fewest, most = (sum(_BOUNDS[each.nargs][bound] for each in free) for bound in (0, 1))
        if place is not None and place.dest not in found:
            nearest = place.finds_nearest()
            if len(left) > most or (nearest is None and len(left) > fewest):
                # The command then reports that the value is not a workspace.
                found[place.dest] = [left.pop(0)]
            elif nearest is not None:
                found[place.dest] = [nearest]
            else:
                self._refuse_places(free, left)
        if len(left) < fewest:
            self._refuse_missing(free[len(left)])
        if len(left) > most:
            self.error(self._text("unexpected", given=sanitize(left[int(most)])))
        for action in free:
            count = _BOUNDS[action.nargs][1]
            found[action.dest], left = left[:count], left[count:]
        return [(each, found[each.dest]) for each in actions]

    def _value(self, action: Action, found: list[str]) -> object:
        """Return the value of the argument ``action`` from the strings ``found``."""
        if isinstance(action, WorkspaceArgument):
            found = list(map(workspace_of, found))
        for each in found:
            if action.choices is not None and each not in action.choices:
                known = list(map(str, action.choices))
                self.error(unknown_word(each, known, action.dest, self.texts))
        kind = action.type if callable(action.type) else str
        try:
            converted = [kind(each) for each in found]
        except ValueError:
            self.error(self._text("no_number", what=_name(action), given=sanitize(found[0])))
        if action.nargs in (ZERO_OR_MORE, ONE_OR_MORE):
            return converted
        return converted[0] if converted else action.default

    def _refuse_places(self, free: Sequence[Action], left: Sequence[str]) -> NoReturn:
        """End the command because no workspace is given or found."""
        for action, given in zip(free, left, strict=False):
            if action.choices is not None and given not in action.choices:
                known = ", ".join(map(str, action.choices))
                self.error(self._text("neither", given=sanitize(given), known=known))
        place = find_working_repository()
        if place is None:
            self.error(self._text("no_workspace"))
        self.error(self._text("not_supervised", folder=sanitize(place.main)))

    def _refuse_missing(self, action: Action) -> NoReturn:
        if action.choices is None:
            self.error(self._text("missing", what=_name(action)))
        known = ", ".join(map(str, action.choices))
        self.error(self._text("missing_choice", what=_name(action), known=known))

    def _text(self, key: str, **values: object) -> str:
        return self.texts(f"cli.typed.{key}", **values)

    def _synopsis(self) -> str:
        """Return the synopsis, without optional arguments."""
        words = [self.prog, *map(_shape, self._get_positional_actions())]
        required = [each for each in self._get_optional_actions() if each.required]
        words += [f"{each.option_strings[-1]} {each.metavar or each.dest.upper()}" for each in required]
        return " ".join(words)


def unknown_word(given: str, known: Sequence[str], kind: str, texts: Catalogue) -> str:
    """Return the error that ``given`` is unknown. It suggests the nearest known word, or lists the known
    words.

    - ``known``: the known words.
    - ``kind``: the text key for the kind of word, such as ``option``.
    """
    # Loaded only for errors.
    from difflib import get_close_matches

    values = {"what": texts(f"cli.typed.kind.{kind}"), "given": sanitize(given)}
    bare = {each.lstrip("-"): each for each in known}
    near = get_close_matches(given.lstrip("-"), bare, 1)
    if near:
        return texts("cli.typed.did_you_mean", near=bare[near[0]], **values)
    if kind in ("option", "command"):
        return texts("cli.typed.unknown", **values)
    return texts("cli.typed.choose", known=", ".join(known), **values)


def _is_recognised(action: Action, value: str) -> bool:
    if isinstance(action, WorkspaceArgument):
        return is_workspace_place(value)
    return action.choices is not None and value in action.choices


def _name(action: Action) -> str:
    return str(action.metavar or action.dest.upper())


def _shape(action: Action) -> str:
    """Return the argument as written in a synopsis."""
    name = _name(action)
    if action.nargs == OPTIONAL:
        return f"[{name}]"
    return {ZERO_OR_MORE: f"[{name} …]", ONE_OR_MORE: f"{name} …"}.get(str(action.nargs), name)
