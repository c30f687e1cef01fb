"""The registry of all keys. Bindings, footer, help, palette and the docs page are generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

from textual.actions import parse
from textual.binding import Binding, BindingType
from watchroom.texts import Catalogue

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.screen import Screen

Scope: TypeAlias = Literal[
    "app",
    "timeline",
    "list",
    "view",
    "overview",
    "search",
    "agents",
    "session",
    "buffers",
    "tasks",
    "files",
    "changes",
    "line_comments",
    "documents",
    "boards",
    "board_versions",
    "board_writing",
    "merge",
    "compare",
    "finding",
    "editor",
    "handoffs",
    "requests",
    "choices",
    "review",
    "grants",
    "writing",
    "activity",
    "usage",
    "confirm",
    "unlock",
    "budget",
    "grant",
    "revert",
    "agent_commit",
    "commit",
    "landing",
    "machine_need",
    "dialog",
]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class Action(NamedTuple):
    """An action of a person. Its texts are in the catalogue under ``action.{id}``.

    - ``name``: Textual's action, with arguments.
    - ``footer``: whether the footer shows the action.
    - ``acts``: whether the action changes the workspace, so that it is not offered in the past.
    - ``meaning``: the meaning of its keys on every screen, default: its id. Actions with the same keys have
      the same meaning.
    - ``in_repository``: whether the action is possible only in a repository.
    """

    id: str
    scope: Scope
    name: str
    keys: tuple[str, ...] = ()
    footer: bool = False
    acts: bool = False
    meaning: str = ""
    in_repository: bool = False

    def label(self, texts: Catalogue) -> str:
        """Return a label of one or two words for the footer."""
        return texts(f"action.{self.id}.label")

    def help(self, texts: Catalogue) -> str:
        """Return a sentence for help, palette and docs."""
        return texts(f"action.{self.id}.help")

    def synonyms(self, texts: Catalogue) -> str:
        """Return other words by which the palette finds the action, separated by commas."""
        key = f"action.{self.id}.synonyms"
        return texts(key) if key in texts else ""

    @property
    def target(self) -> str:
        """The action and its receiver, for Textual's ``run_action``."""
        whose = "app" if self.scope in OF_THE_APP else "focused" if self.scope in OF_THE_FOCUSED else "screen"
        return f"{whose}.{self.name}"

    def keys_in(self, keymap: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the keys of the action in ``keymap``, which maps action ids to keys. A shortcut that changes
        the workspace uses the keys of the action with the same meaning, unless ``keymap`` contains the
        shortcut's own id."""
        shared = keymap.get(self.meaning, self.keys) if self.acts else self.keys
        return keymap.get(self.id, shared)

    def shown_keys(self, keymap: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the names of the keys for people."""
        return tuple(KEY_NAMES.get(key, key) for key in self.keys_in(keymap))


OF_THE_APP: Final = frozenset({"app", "timeline"})
"""The scopes of the actions that the app runs, on every screen."""
OF_THE_FOCUSED: Final = frozenset(
    {
        "list",
        "view",
        "search",
        "board_writing",
        "editor",
        "session",
        "choices",
        "review",
        "grants",
        "changes",
        "line_comments",
    }
)
"""The scopes of the actions that the focused widget runs."""

SCREEN_OF_SCOPE: Final[Mapping[Scope, str]] = {
    "overview": "overview",
    "agents": "agents",
    "session": "agents",
    "tasks": "tasks",
    "files": "files",
    "changes": "files",
    "line_comments": "files",
    "documents": "documents",
    "boards": "boards",
    "handoffs": "handoffs",
    "requests": "requests",
    "choices": "requests",
    "review": "requests",
    "grants": "requests",
    "activity": "activity",
    "usage": "usage",
}
"""The screen on which the keys of a scope work. Other scopes belong to views that open from a screen."""

KEY_NAMES: Final = {
    "question_mark": "?",
    "exclamation_mark": "!",
    "greater_than_sign": ">",
    "colon": ":",
    "slash": "/",
    "semicolon": ";",
    "comma": ",",
    "full_stop": ".",
    "minus": "-",
    "plus": "+",
    "escape": "esc",
    "shift+tab": "⇧tab",
    "shift+enter": "⇧enter",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    **{f"ctrl+{letter}": f"^{letter}" for letter in "pcfjrstx"},
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
    ("0", "usage"),
)
"""The number key and the name of each screen."""

OPEN: Final = ("enter", "l")
BACK: Final = ("escape", "h")
PREVIOUS: Final = ("left_square_bracket",)
NEXT: Final = ("right_square_bracket",)

ACTIONS: Final[tuple[Action, ...]] = (
    *(Action(f"screen_{name}", "app", f"show_screen('{name}')", (key,)) for key, name in SCREENS),
    Action("urgent", "app", "urgent", ("exclamation_mark",), footer=True),
    Action("next_pane", "app", "next_pane", ("tab",)),
    Action("previous_pane", "app", "previous_pane", ("shift+tab",)),
    Action("back", "app", "back", BACK, meaning="back"),
    Action("help", "app", "help", ("question_mark",), footer=True),
    Action("find", "app", "search_everything", ("ctrl+f",)),
    Action("palette", "app", "command_palette", ("colon", "ctrl+p")),
    Action("seen", "app", "mark_as_seen", ("S",), acts=True, meaning="seen"),
    Action("new_task", "app", "new_task", ("N",), acts=True),
    Action("stop_all", "app", "stop_all", ("ctrl+x",), acts=True),
    Action("budget", "app", "set_budget", acts=True),
    Action("alerts", "app", "cycle_alerts"),
    Action("theme", "app", "flip_theme"),
    Action("quit", "app", "quit", ("q", "ctrl+c")),
    Action("timeline", "timeline", "toggle_timeline", ("T",)),
    Action("previous_row", "timeline", "step_row(-1)", ("comma",), footer=True, meaning="previous row"),
    Action("next_row", "timeline", "step_row(1)", ("full_stop",), meaning="next row"),
    Action("previous_marker", "timeline", "step_marker(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_marker", "timeline", "step_marker(1)", NEXT, meaning="next"),
    Action("play_rows", "timeline", "toggle_playing", ("space",), footer=True, meaning="mark"),
    Action("slower", "timeline", "change_speed(-1)", ("minus",)),
    Action("quicker", "timeline", "change_speed(1)", ("plus",), footer=True),
    Action("revert_since", "timeline", "revert_since", ("V",), footer=True, meaning="revert work"),
    Action("compare_moments", "timeline", "mark_moment", ("B",), footer=True, meaning="both"),
    Action("write_report", "timeline", "write_report", ("W",)),
    Action("up", "list", "move(-1)", ("up", "k"), meaning="up"),
    Action("down", "list", "move(1)", ("down", "j"), meaning="down"),
    Action("page_up", "list", "page(-1)", ("pageup",), meaning="page up"),
    Action("page_down", "list", "page(1)", ("pagedown",), meaning="page down"),
    Action("first", "list", "first", ("home", "g"), meaning="first"),
    Action("last", "list", "last", ("end", "G"), meaning="last"),
    Action("filter", "list", "filter", ("slash",), footer=True, meaning="search"),
    Action("open", "list", "open", OPEN, footer=True, meaning="open"),
    Action("copy", "list", "copy", ("y",), meaning="copy"),
    Action("view_up", "view", "scroll_by(-1)", ("up", "k"), meaning="up"),
    Action("view_down", "view", "scroll_by(1)", ("down", "j"), meaning="down"),
    Action("view_left", "view", "scroll_sideways(-8)", ("left",)),
    Action("view_right", "view", "scroll_sideways(8)", ("right",)),
    Action("view_page_up", "view", "scroll_pages(-1)", ("pageup",), meaning="page up"),
    Action("view_page_down", "view", "scroll_pages(1)", ("pagedown",), meaning="page down"),
    Action("view_first", "view", "scroll_to_end(0)", ("home", "g"), meaning="first"),
    Action("view_last", "view", "scroll_to_end(1)", ("end", "G"), meaning="last"),
    Action("search", "view", "search", ("slash",), footer=True, meaning="search"),
    Action("next_match", "view", "match(1)", ("n",), footer=True),
    Action("previous_match", "view", "match(-1)", ("P",)),
    Action("copy_text", "view", "copy", ("y",), meaning="copy"),
    Action("keep_search", "search", "keep", ("enter",), footer=True, meaning="open"),
    Action("end_search", "search", "clear", ("escape",), footer=True, meaning="back"),
    Action("message", "agents", "message", ("m",), footer=True, acts=True, meaning="message"),
    Action("pause", "agents", "pause", ("p",), footer=True, acts=True, meaning="pause"),
    Action(
        "resume_at_reset",
        "agents",
        "resume_at_reset",
        ("a",),
        footer=True,
        acts=True,
        meaning="approve",
    ),
    Action("end_session", "agents", "end_session", ("X",), footer=True, acts=True, meaning="end"),
    Action("revert_agent", "agents", "revert_work", ("V",), acts=True, meaning="revert work"),
    Action(
        "commit_of_agent",
        "agents",
        "commit_work",
        ("K",),
        acts=True,
        meaning="commit_agent",
        in_repository=True,
    ),
    Action("hand_over", "agents", "hand_over", ("O",), acts=True, meaning="hand over"),
    Action("terminal", "agents", "show_terminal", ("J",), acts=True, meaning="terminal"),
    Action("older_session", "agents", "session(1)", PREVIOUS, footer=True, meaning="previous"),
    Action("newer_session", "agents", "session(-1)", NEXT, meaning="next"),
    Action("buffers", "agents", "buffers"),
    Action("open_agent_file", "agents", "open_file", ("o",), acts=True, meaning="outline"),
    Action("fold", "session", "fold", OPEN, footer=True, meaning="open"),
    Action("fold_all", "session", "fold_all", ("z",), footer=True, meaning="fold"),
    Action("write_to_agent", "tasks", "message", ("m",), footer=True, acts=True, meaning="message"),
    Action("pause_agent", "tasks", "pause", ("p",), footer=True, acts=True, meaning="pause"),
    Action("end_agent", "tasks", "end", ("X",), footer=True, acts=True, meaning="end"),
    Action("revert_member", "tasks", "revert_work", ("V",), acts=True, meaning="revert work"),
    Action("open_task_file", "tasks", "open_file", ("o",), acts=True, meaning="outline"),
    Action("task_detail", "tasks", "task_detail"),
    Action("sandbox", "tasks", "sandbox"),
    Action("mark_tree", "tasks", "mark_tree", ("space",), footer=True, meaning="mark", in_repository=True),
    Action("add_tree", "tasks", "add_tree", ("Y",), footer=True, acts=True, in_repository=True),
    Action(
        "land_tree",
        "tasks",
        "land_tree",
        ("K",),
        footer=True,
        acts=True,
        meaning="commit_agent",
        in_repository=True,
    ),
    Action("commit_agent", "files", "commit_agent", ("K",), footer=True, acts=True, in_repository=True),
    Action(
        "message_author",
        "files",
        "message",
        ("m",),
        footer=True,
        acts=True,
        meaning="message",
        in_repository=True,
    ),
    Action("rollback", "files", "rollback", ("R",), footer=True, acts=True, meaning="restore"),
    Action("revert_version", "files", "revert_work", ("V",), acts=True, meaning="revert work"),
    Action("settle", "files", "settle", ("M",), footer=True, acts=True, meaning="merge"),
    Action("mark", "files", "mark", ("space",), footer=True, meaning="mark"),
    Action("unified", "files", "flip_diff", ("d",), footer=True, meaning="difference"),
    Action("sides", "files", "flip_sides", ("s",), footer=True),
    Action("blame", "files", "flip_blame", ("L",), footer=True),
    Action("group_changes", "changes", "group", ("space",), footer=True, meaning="mark", in_repository=True),
    Action(
        "comment_line", "line_comments", "comment", ("semicolon",), True, True, "comment", in_repository=True
    ),
    Action(
        "mark_lines",
        "line_comments",
        "mark_lines",
        ("space",),
        footer=True,
        meaning="mark",
        in_repository=True,
    ),
    Action(
        "author_terminal", "files", "show_terminal", ("J",), acts=True, meaning="terminal", in_repository=True
    ),
    Action("open_file", "files", "open_file", ("o",), footer=True, acts=True, meaning="outline"),
    Action("play", "documents", "play", ("greater_than_sign",), footer=True),
    Action("earlier", "documents", "step(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("later", "documents", "step(1)", NEXT, footer=True, meaning="next"),
    Action("leap_back", "documents", "leap(-1)"),
    Action("leap_ahead", "documents", "leap(1)"),
    Action("live", "documents", "live"),
    Action("edit_board", "boards", "edit", ("e",), footer=True, acts=True, meaning="edit"),
    Action("board_versions", "boards", "versions", ("v",), footer=True),
    Action("outline", "boards", "outline", ("o",), footer=True),
    Action("drop_draft", "boards", "drop_draft"),
    Action("settle_board", "boards", "settle", ("M",), footer=True, acts=True, meaning="merge"),
    Action("restore", "board_versions", "restore", ("R",), footer=True, acts=True, meaning="restore"),
    Action("mark_version", "board_versions", "mark", ("space",), footer=True, meaning="mark"),
    Action("save_board", "board_writing", "save", ("ctrl+s",), footer=True, acts=True, meaning="save"),
    Action("leave_board", "board_writing", "leave", ("escape",), footer=True, meaning="back"),
    Action("take_current", "merge", "take('current')", ("c",), footer=True, acts=True),
    Action("take_incoming", "merge", "take('incoming')", ("i",), footer=True, acts=True),
    Action("take_both", "merge", "take('both')", ("b",), footer=True, acts=True),
    Action(
        "take_both_incoming_first", "merge", "take('both_incoming_first')", ("B",), acts=True, meaning="both"
    ),
    Action("take_neither", "merge", "take('neither')", ("x",), footer=True, acts=True),
    Action("whole_file", "merge", "whole_file", ("A",), footer=True, acts=True),
    Action("commit", "merge", "commit", ("w",), footer=True, acts=True),
    Action("edit", "merge", "edit", ("e",), footer=True, acts=True, meaning="edit"),
    Action("previous_region", "merge", "step(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_region", "merge", "step(1)", NEXT, meaning="next"),
    Action("undo", "merge", "undo", ("u",), footer=True, acts=True),
    Action("redo", "merge", "redo", ("ctrl+r",), acts=True),
    Action("preview", "merge", "preview", ("d",), footer=True, meaning="difference"),
    Action("base", "merge", "flip_base", ("z",), meaning="fold"),
    Action("dismiss", "merge", "dismiss_conflict", ("D",), footer=True, acts=True),
    Action("revert", "merge", "revert", ("R",), acts=True, meaning="restore"),
    Action("finish", "editor", "finish", ("escape",), footer=True, meaning="back"),
    Action("finish_and_save", "editor", "finish", ("ctrl+s",), meaning="save"),
    Action("approve", "requests", "approve", ("a",), footer=True, acts=True),
    Action("reject", "requests", "reject", ("r",), footer=True, acts=True),
    Action("approve_as", "requests", "approve_as", ("A",), footer=True, acts=True, meaning="whole_file"),
    Action("take_hunk", "review", "take_hunk", ("space",), footer=True, acts=True, meaning="mark"),
    Action("comment", "review", "comment", ("semicolon",), footer=True, acts=True),
    Action("previous_hunk", "review", "step_hunk(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_hunk", "review", "step_hunk(1)", NEXT, meaning="next"),
    Action("edit_arguments", "requests", "edit_arguments", ("e",), footer=True, acts=True, meaning="edit"),
    Action("write_answer", "requests", "write_answer", acts=True),
    Action("to_session", "requests", "to_session", ("t",), footer=True),
    Action("tick", "choices", "tick", ("space",), footer=True, acts=True, meaning="mark"),
    Action("revoke_grant", "grants", "revoke_grant", ("X",), footer=True, acts=True, meaning="end"),
    Action("send_line", "writing", "send_line", ("enter",), footer=True, meaning="open"),
    Action("new_line", "writing", "new_line", ("ctrl+j", "shift+enter"), footer=True),
    Action("send", "writing", "send", ("ctrl+s",), footer=True, meaning="save"),
    Action("leave_writing", "writing", "dismiss(None)", ("escape",), footer=True, meaning="back"),
    Action("commit_message", "commit", "commit", ("enter",), footer=True, meaning="open"),
    Action("changes_up", "commit", "line(-1)", ("up",), footer=True, meaning="up"),
    Action("changes_down", "commit", "line(1)", ("down",), footer=True, meaning="down"),
    Action("changes_page_up", "commit", "scroll(-1)", ("pageup",), meaning="page up"),
    Action("changes_page_down", "commit", "scroll(1)", ("pagedown",), meaning="page down"),
    Action("leave_commit", "commit", "dismiss(None)", ("escape",), footer=True, meaning="back"),
    Action("land", "landing", "land", ("enter",), footer=True, meaning="open"),
    Action("landing_up", "landing", "line(-1)", ("up",), meaning="up"),
    Action("landing_down", "landing", "line(1)", ("down",), meaning="down"),
    Action("landing_page_up", "landing", "scroll(-1)", ("pageup",), meaning="page up"),
    Action("landing_page_down", "landing", "scroll(1)", ("pagedown",), meaning="page down"),
    Action("approve_there", "machine_need", "approve", ("a",), footer=True, acts=True, meaning="approve"),
    Action("reject_there", "machine_need", "reject", ("r",), footer=True, acts=True, meaning="reject"),
    Action("answer_there", "machine_need", "answer", OPEN, footer=True, acts=True, meaning="open"),
    Action("seen_there", "machine_need", "seen", ("S",), footer=True, acts=True, meaning="seen"),
    Action("leave_there", "machine_need", "dismiss(None)", BACK, footer=True, meaning="back"),
    Action("leave_landing", "landing", "dismiss(None)", ("escape",), footer=True, meaning="back"),
    Action("outcome", "activity", "next_outcome", ("f",), footer=True),
    Action("revert_row", "activity", "revert_work", ("V",), footer=True, acts=True, meaning="revert work"),
    Action(
        "commit_of_row",
        "activity",
        "commit_work",
        ("K",),
        acts=True,
        meaning="commit_agent",
        in_repository=True,
    ),
    Action("terminal_of_row", "activity", "show_terminal", ("J",), acts=True, meaning="terminal"),
    Action("steps", "activity", "flip_steps", ("z",), footer=True, meaning="fold"),
    Action("acknowledged", "handoffs", "flip_acknowledged", ("z",), footer=True, meaning="fold"),
    Action("open_delivery", "handoffs", "open_file", ("o",), acts=True, meaning="outline"),
    Action("approve_need", "overview", "approve", ("a",), footer=True, acts=True, meaning="approve"),
    Action("reject_need", "overview", "reject", ("r",), footer=True, acts=True, meaning="reject"),
    Action("overview_message", "overview", "message", ("m",), footer=True, acts=True, meaning="message"),
    Action("overview_pause", "overview", "pause", ("p",), footer=True, acts=True, meaning="pause"),
    Action("overview_end", "overview", "end_session", ("X",), footer=True, acts=True, meaning="end"),
    Action("overview_revert", "overview", "revert_work", ("V",), acts=True, meaning="revert work"),
    Action(
        "overview_commit",
        "overview",
        "commit_work",
        ("K",),
        acts=True,
        meaning="commit_agent",
        in_repository=True,
    ),
    Action("overview_terminal", "overview", "show_terminal", ("J",), acts=True, meaning="terminal"),
    Action("readings", "overview", "readings", ("z",), footer=True, meaning="fold"),
    Action("confirm", "confirm", "answer(True)", ("enter",), footer=True, meaning="open"),
    Action("cancel", "confirm", "answer(False)", ("escape",), footer=True, meaning="back"),
    Action("unlock_key", "unlock", "unlock", ("enter",), footer=True, meaning="open"),
    Action("leave_unlock", "unlock", "dismiss(None)", ("escape",), footer=True, meaning="back"),
    Action("revert_further", "revert", "go_back(1)", PREVIOUS, footer=True, meaning="previous"),
    Action("revert_later", "revert", "go_back(-1)", NEXT, footer=True, meaning="next"),
    Action("revert_clean", "revert", "flip_clean", ("z",), footer=True, meaning="fold"),
    Action("revert_all", "revert", "flip_all", ("A",), footer=True, meaning="whole_file"),
    Action("revert_spawned", "revert", "flip_spawned", ("C",), footer=True),
    Action("previous_author", "agent_commit", "step_agent(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_author", "agent_commit", "step_agent(1)", NEXT, footer=True, meaning="next"),
    Action("try_work", "agent_commit", "try_work", ("ctrl+t",), footer=True),
    Action("new_branch", "agent_commit", "flip_branch", ("z",), footer=True, meaning="fold"),
    Action("hit_up", "finding", "hit(-1)", ("up",), meaning="up"),
    Action("hit_down", "finding", "hit(1)", ("down",), meaning="down"),
    Action("hit_page_up", "finding", "hit_page(-1)", ("pageup",), meaning="page up"),
    Action("hit_page_down", "finding", "hit_page(1)", ("pagedown",), meaning="page down"),
    Action("open_hit", "finding", "open_hit", ("enter",), footer=True, meaning="open"),
    Action("leave_finding", "finding", "dismiss(None)", ("escape",), footer=True, meaning="back"),
    Action("edit_budget", "usage", "edit_budget", ("e",), footer=True, acts=True, meaning="edit"),
    Action("previous_measure", "budget", "measure(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_measure", "budget", "measure(1)", NEXT, meaning="next"),
    Action("previous_end", "grant", "end(-1)", PREVIOUS, footer=True, meaning="previous"),
    Action("next_end", "grant", "end(1)", NEXT, meaning="next"),
    Action("close", "dialog", "back", ("escape",), footer=True, meaning="back"),
)


BEFORE_WIDGETS: Final = {
    "next_pane",
    "previous_pane",
    "finish",
    "finish_and_save",
    "filter",
    "search",
    "save_board",
    "leave_board",
    "send_line",
    "new_line",
    "send",
    "leave_writing",
    "commit_message",
    "changes_up",
    "changes_down",
    "land",
    "landing_up",
    "landing_down",
}
"""Ids of the actions that get their keys before widgets do. Otherwise, Textual's screens and editor would
handle the keys, or text typed after the key would not reach the new search. The actions of the timeline are
included, because the open timeline uses keys of other actions."""


def bindings(scope: Scope) -> list[BindingType]:
    """Return Textual's bindings of a scope, with action ids for the keymap. Actions without keys are bound to
    a name that no terminal sends, so that a keymap can give them a key."""
    return [
        Binding(
            ",".join(action.keys) or f"unbound_{action.id}",
            action.name,
            action.id,
            show=False,
            priority=action.id in BEFORE_WIDGETS or scope == "timeline",
            id=action.id,
        )
        for action in ACTIONS
        if action.scope == scope
    ]


def offered(is_live: bool, *scopes: str) -> list[Action]:
    """Return the offered actions of ``scopes``. Actions that change the workspace are offered only if
    ``is_live``."""
    return [action for action in of_scope(*scopes) if is_live or not action.acts]


def is_possible(action: Action, screen: Screen[Any]) -> bool:
    """Return whether Textual's ``check_action`` allows ``action`` at the cursor of ``screen``."""
    node: DOMNode = screen.app if action.scope in OF_THE_APP else screen
    if action.scope in OF_THE_FOCUSED and screen.focused is not None:
        node = screen.focused
    _, name, parameters = parse(action.name)
    return bool(node.check_action(name, parameters))


def of_scope(*scopes: str) -> list[Action]:
    return [action for action in ACTIONS if action.scope in scopes]


def scopes_of(focused: object) -> tuple[Scope, ...]:
    """Return the scopes whose keys work while ``focused`` has the focus."""
    scopes: tuple[Scope, ...] = getattr(focused, "SCOPES", ())
    return scopes


VIEW_BINDINGS: Final = bindings("view")
