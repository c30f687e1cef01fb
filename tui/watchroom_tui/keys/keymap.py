"""Custom keys: the check of a keymap, and the names of keys for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.actions import parse
from textual.keys import Keys, _character_to_key
from watchroom.texts import Catalogue

from watchroom_tui.keys.actions import ACTIONS, SCOPES, Action, Scope, of_scope

if TYPE_CHECKING:
    from textual.dom import DOMNode

_KEY_NAMES: Final = frozenset(key.value for key in Keys)


class AmbiguousKey(NamedTuple):
    """A key with two meanings, and the other action."""

    key: str
    action: str


def find_ambiguous_key(changed: str, keymap: Mapping[str, tuple[str, ...]]) -> AmbiguousKey | None:
    """Return a key of the action ``changed`` (an action id) that ``keymap`` also gives to an action with
    another meaning. None if there is no such key."""
    mine = next(action for action in ACTIONS if action.id == changed)
    keys = {_normal(key) for key in mine.keys_in(keymap)}
    for other in ACTIONS:
        shared = keys & {_normal(key) for key in other.keys_in(keymap)}
        if shared and (other.meaning or other.id) != (mine.meaning or mine.id):
            return AmbiguousKey(min(shared), other.id)
    return None


def changed_actions(keymap: Mapping[str, tuple[str, ...]]) -> list[Action]:
    """Return the actions whose keys ``keymap`` changes."""
    return [action for action in ACTIONS if action.keys_in(keymap) is not action.keys]


def is_key(name: str) -> bool:
    """Return whether ``name`` is a key: a character, or a name such as ``f5``, ``pageup`` or ``ctrl+t``."""
    *modifiers, key = name.split("+") if len(name) > 1 else [name]
    known = len(key) == 1 or _normal(key) in _KEY_NAMES
    return known and key.isprintable() and set(modifiers) <= {"ctrl", "shift", "alt"}


def _normal(key: str) -> str:
    return _character_to_key(key) if len(key) == 1 else key


def key_hints(node: DOMNode, texts: Catalogue, keymap: Mapping[str, tuple[str, ...]], *scopes: Scope) -> str:
    """Return the keys of ``scopes`` that work in the dialog ``node``, with their labels, for the frame of the
    dialog."""
    actions = [each for each in of_scope(*scopes) if each.footer and node.check_action(*parse(each.name)[1:])]
    return " · ".join(f"{shown_pair(each, keymap)} {each.label(texts)}" for each in actions if each.keys)


_NEXT: Final = {"previous": "next", "previous row": "next row"}
"""The meaning of the key for the next item, by the meaning of the key for the previous item."""


def shown_pair(action: Action, keymap: Mapping[str, tuple[str, ...]]) -> str:
    """Return the first key of ``action``. For the previous item, add the key for the next item, unless that
    key is shown separately."""
    keys = action.shown_keys(keymap)[:1]
    if action.meaning in _NEXT:
        others = of_scope(action.scope)
        pair = (each for each in others if each.meaning == _NEXT[action.meaning] and not each.footer)
        keys += tuple(key for each in pair for key in each.shown_keys(keymap)[:1])
    return " ".join(keys)


def palette_title(action: Action, texts: Catalogue, keymap: Mapping[str, tuple[str, ...]]) -> str:
    """Return the label of ``action`` with its screen and its keys."""
    keys = " ".join(action.shown_keys(keymap)) or texts("palette.no_key")
    return f"{texts(f'scope.{action.scope}')}: {action.label(texts)}  ({keys})"


def shown_key(action_id: str, keymap: Mapping[str, tuple[str, ...]]) -> str:
    """Return the name of the first key of the action with this id, for people. ``–`` if it has no keys."""
    action = next(each for each in ACTIONS if each.id == action_id)
    return next(iter(action.shown_keys(keymap)), "–")


def why_impossible(
    action: Action, texts: Catalogue, keymap: Mapping[str, tuple[str, ...]], *, has_trees: bool
) -> str:
    """Return the reason why ``action`` is not possible on its screen now. ``has_trees``: whether the
    workspace belongs to a repository."""
    if action.scope == "timeline":
        return texts("palette.why.timeline", shown=shown_key("timeline", keymap))
    if action.in_repository and not has_trees:
        return texts("palette.why.repository")
    own = f"palette.why.{action.id}"
    return texts(own if own in texts else "palette.why.selection")


def keys_page(texts: Catalogue) -> str:
    """Return the keys as a Markdown page."""
    lines = [f"# {texts('help.title')}", ""]
    for scope in SCOPES:
        actions = of_scope(scope)
        if not actions:
            continue
        lines += [
            f"## {texts(f'scope.{scope}')}",
            "",
            f"| {texts('help.key')} | {texts('help.does')} |",
            "|---|---|",
        ]
        for action in actions:
            keys = " ".join(f"`{key}`" for key in action.shown_keys({})) or texts("help.by_name")
            lines.append(f"| {keys} | {action.help(texts)} |")
        lines.append("")
    return "\n".join(lines)
