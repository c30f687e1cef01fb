"""The registry of all keys. Bindings, footer, help, palette and the docs page are generated from it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from textual.binding import Binding, BindingType
from watchroom.texts import Catalogue

Scope: TypeAlias = Literal[
    "app",
    "list",
    "view",
    "agents",
    "session",
    "buffers",
    "tasks",
    "files",
    "documents",
    "boards",
    "board",
    "board_versions",
    "board_writing",
    "merge",
    "editor",
    "handoffs",
    "requests",
    "choices",
    "writing",
    "activity",
]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class Action(NamedTuple):
    """One thing a person can do. ``name`` is Textual's action (with arguments); its texts stand in the
    catalogue under ``action.{id}``. ``acts`` changes the workspace, so it is not offered in the past."""

    id: str
    scope: Scope
    name: str
    keys: tuple[str, ...]
    footer: bool = False
    acts: bool = False

    def label(self, texts: Catalogue) -> str:
        """One or two words, for the footer."""
        return texts(f"action.{self.id}.label")

    def help(self, texts: Catalogue) -> str:
        """A sentence, for help, palette and docs."""
        return texts(f"action.{self.id}.help")

    @property
    def target(self) -> str:
        """The action as Textual's ``run_action`` takes it: with what should do it."""
        whose = "app" if self.scope == "app" else "focused" if self.scope in OF_THE_FOCUSED else "screen"
        return f"{whose}.{self.name}"

    @property
    def shown_keys(self) -> tuple[str, ...]:
        return tuple(KEY_NAMES.get(key, key) for key in self.keys)


OF_THE_FOCUSED: Final = frozenset(
    {"list", "view", "board", "board_writing", "editor", "session", "choices", "writing"}
)
"""What these keys do is done by the widget that has the focus."""

KEY_NAMES: Final = {
    "question_mark": "?",
    "exclamation_mark": "!",
    "slash": "/",
    "escape": "esc",
    "shift+tab": "⇧tab",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "ctrl+p": "^p",
    "ctrl+c": "^c",
    "ctrl+r": "^r",
    "ctrl+s": "^s",
    "ctrl+b": "^b",
    "ctrl+f": "^f",
}

SCREENS: Final[tuple[tuple[str, str], ...]] = (
    ("1", "overview"),
    ("2", "agents"),
    ("3", "handoffs"),
    ("4", "files"),
    ("5", "documents"),
    ("6", "boards"),
    ("7", "requests"),
    ("8", "activity"),
    ("9", "tasks"),
)
"""The number key of each screen and its name."""

ACTIONS: Final[tuple[Action, ...]] = (
    *(Action(f"screen_{name}", "app", f"show_screen('{name}')", (key,)) for key, name in SCREENS),
    Action("urgent", "app", "urgent", ("exclamation_mark",), footer=True),
    Action("next_pane", "app", "next_pane", ("tab",)),
    Action("previous_pane", "app", "previous_pane", ("shift+tab",)),
    Action("back", "app", "back", ("escape",)),
    Action("help", "app", "help", ("question_mark",), footer=True),
    Action("palette", "app", "command_palette", ("ctrl+p",)),
    Action("seen", "app", "mark_as_seen", ("S",), acts=True),
    Action("alerts", "app", "cycle_alerts", ("A",)),
    Action("theme", "app", "flip_theme", ("t",)),
    Action("quit", "app", "quit", ("q", "ctrl+c")),
    Action("up", "list", "move(-1)", ("up", "k")),
    Action("down", "list", "move(1)", ("down", "j")),
    Action("page_up", "list", "page(-1)", ("pageup", "ctrl+b")),
    Action("page_down", "list", "page(1)", ("pagedown", "ctrl+f")),
    Action("first", "list", "first", ("home", "g")),
    Action("last", "list", "last", ("end", "G")),
    Action("filter", "list", "filter", ("slash",), footer=True),
    Action("open", "list", "open", ("enter", "l"), footer=True),
    Action("copy", "list", "copy", ("y",)),
    Action("view_up", "view", "scroll_by(-1)", ("up", "k")),
    Action("view_down", "view", "scroll_by(1)", ("down", "j")),
    Action("view_left", "view", "scroll_sideways(-8)", ("left", "h")),
    Action("view_right", "view", "scroll_sideways(8)", ("right", "l")),
    Action("view_page_up", "view", "scroll_pages(-1)", ("pageup", "ctrl+b")),
    Action("view_page_down", "view", "scroll_pages(1)", ("pagedown", "ctrl+f", "space")),
    Action("view_first", "view", "scroll_to_end(0)", ("home", "g")),
    Action("view_last", "view", "scroll_to_end(1)", ("end", "G")),
    Action("message", "agents", "message", ("m",), footer=True, acts=True),
    Action("pause", "agents", "pause", ("p",), footer=True, acts=True),
    Action("end_session", "agents", "end_session", ("X",), footer=True, acts=True),
    Action("older_session", "agents", "session(1)", ("left_square_bracket",), footer=True),
    Action("newer_session", "agents", "session(-1)", ("right_square_bracket",)),
    Action("buffers", "agents", "buffers", ("b",), footer=True),
    Action("fold", "session", "fold", ("enter",), footer=True),
    Action("fold_all", "session", "fold_all", ("z",), footer=True),
    Action("write_to_agent", "tasks", "message", ("m",), footer=True, acts=True),
    Action("end_agent", "tasks", "end_agent", ("X",), footer=True, acts=True),
    Action("cancel_task", "tasks", "cancel_task", ("C",), footer=True, acts=True),
    Action("task_detail", "tasks", "task_detail", ("d",), footer=True),
    Action("sandbox", "tasks", "sandbox", ("f",), footer=True),
    Action("rollback", "files", "rollback", ("r",), footer=True, acts=True),
    Action("settle", "files", "settle", ("c",), footer=True, acts=True),
    Action("mark", "files", "mark", ("m",), footer=True),
    Action("unified", "files", "flip_diff", ("d",), footer=True),
    Action("sides", "files", "flip_sides", ("s",), footer=True),
    Action("blame", "files", "flip_blame", ("b",), footer=True),
    Action("play", "documents", "play", ("p",), footer=True),
    Action("earlier", "documents", "step(-1)", ("left_square_bracket",), footer=True),
    Action("later", "documents", "step(1)", ("right_square_bracket",), footer=True),
    Action("leap_back", "documents", "leap(-1)", ("left_curly_bracket",)),
    Action("leap_ahead", "documents", "leap(1)", ("right_curly_bracket",)),
    Action("live", "documents", "live", ("L",), footer=True),
    Action("looked", "documents", "looked", ("m",), footer=True),
    Action("edit_board", "boards", "edit", ("e",), footer=True, acts=True),
    Action("board_versions", "boards", "versions", ("v",), footer=True),
    Action("outline", "boards", "outline", ("o",), footer=True),
    Action("drop_draft", "boards", "drop_draft", ("x",), footer=True),
    Action("settle_board", "boards", "settle", ("c",), footer=True, acts=True),
    Action("search", "board", "search", ("slash",), footer=True),
    Action("next_match", "board", "match(1)", ("n",)),
    Action("previous_match", "board", "match(-1)", ("N",)),
    Action("restore", "board_versions", "restore", ("r",), footer=True, acts=True),
    Action("mark_version", "board_versions", "mark", ("m",), footer=True),
    Action("save_board", "board_writing", "save", ("ctrl+s",), footer=True, acts=True),
    Action("leave_board", "board_writing", "leave", ("escape",), footer=True),
    Action("take_current", "merge", "take('current')", ("c",), footer=True, acts=True),
    Action("take_incoming", "merge", "take('incoming')", ("i",), footer=True, acts=True),
    Action("take_both", "merge", "take('both')", ("b",), footer=True, acts=True),
    Action("take_both_incoming_first", "merge", "take('both_incoming_first')", ("B",), acts=True),
    Action("take_neither", "merge", "take('neither')", ("x",), footer=True, acts=True),
    Action("whole_file", "merge", "whole_file", ("a",), footer=True, acts=True),
    Action("commit", "merge", "commit", ("w",), footer=True, acts=True),
    Action("edit", "merge", "edit", ("e",), footer=True, acts=True),
    Action("next_region", "merge", "step(1)", ("n",), footer=True),
    Action("previous_region", "merge", "step(-1)", ("p",)),
    Action("undo", "merge", "undo", ("u",), footer=True, acts=True),
    Action("redo", "merge", "redo", ("U", "ctrl+r"), acts=True),
    Action("preview", "merge", "preview", ("d",), footer=True),
    Action("base", "merge", "flip_base", ("v",)),
    Action("dismiss", "merge", "dismiss_conflict", ("D",), footer=True, acts=True),
    Action("revert", "merge", "revert", ("R",), acts=True),
    Action("finish", "editor", "finish", ("escape", "ctrl+s"), footer=True),
    Action("approve", "requests", "approve", ("a",), footer=True, acts=True),
    Action("reject", "requests", "reject", ("r",), footer=True, acts=True),
    Action("edit_arguments", "requests", "edit_arguments", ("e",), footer=True, acts=True),
    Action("write_answer", "requests", "write_answer", ("w",), footer=True, acts=True),
    Action("to_session", "requests", "to_session", ("s",), footer=True),
    Action("tick", "choices", "tick", ("space",), footer=True, acts=True),
    Action("send", "writing", "send", ("ctrl+s",), footer=True),
    Action("outcome", "activity", "next_outcome", ("o",), footer=True),
    Action("steps", "activity", "flip_steps", ("s",), footer=True),
    Action("acknowledged", "handoffs", "flip_acknowledged", ("a",), footer=True),
)


BEFORE_WIDGETS: Final = {"next_pane", "previous_pane", "finish", "save_board", "leave_board"}
"""Textual's screens and its editor take these keys otherwise."""


def bindings(scope: Scope) -> list[BindingType]:
    """Textual's bindings of one scope."""
    return [
        Binding(
            ",".join(action.keys), action.name, action.id, show=False, priority=action.id in BEFORE_WIDGETS
        )
        for action in ACTIONS
        if action.scope == scope
    ]


def offered(is_live: bool, *scopes: str) -> list[Action]:
    """The actions of these scopes that can be done now, or in a look into the past."""
    return [action for action in of_scope(*scopes) if is_live or not action.acts]


def of_scope(*scopes: str) -> list[Action]:
    return [action for action in ACTIONS if action.scope in scopes]


def scopes_of(focused: object) -> tuple[Scope, ...]:
    """Whose keys work because this widget has the focus."""
    scopes: tuple[Scope, ...] = getattr(focused, "SCOPES", ())
    return scopes


VIEW_BINDINGS: Final = bindings("view")


def keys_page(texts: Catalogue) -> str:
    """The keys as a Markdown page."""
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
            keys = " ".join(f"`{key}`" for key in action.shown_keys)
            lines.append(f"| {keys} | {action.help(texts)} |")
        lines.append("")
    return "\n".join(lines)
