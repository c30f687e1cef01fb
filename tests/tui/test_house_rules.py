"""Rules for the whole source of the dashboard, checked on the source itself."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages
from string import Formatter
from types import FunctionType
from typing import Any, Final

import pytest
import textual.command
import textual.widgets
import watchroom
import watchroom_cli
import watchroom_tui
import watchroom_whiteboards
from textual.app import App
from watchroom.kernel.journal import Journal
from watchroom.texts import LANGUAGES, Catalogue, catalogue
from watchroom_tui.keys.actions import ACTIONS, OF_THE_FOCUSED, SCOPES, SCREENS
from watchroom_tui.keys.keymap import keys_page
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.textual_compat import TextualIncompatible, require

TUI: Final = Path(watchroom_tui.__file__ or "").parent
CLI: Final = Path(watchroom_cli.__file__ or "").parent
CORE: Final = Path(watchroom.__file__ or "").parent
BOARDS: Final = Path(watchroom_whiteboards.__file__ or "").parent
HOUSE: Final = Path(__file__).parents[2]
PACKAGES: Final = {
    "watchroom.texts": (CORE,),
    "watchroom_whiteboards.texts": (BOARDS,),
    "watchroom_tui.texts": (TUI, CLI),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        yield from parsed(folder)


@cache
def parsed(folder: Path) -> Sequence[tuple[Path, ast.Module]]:
    """Return every module of a folder, parsed. Tests must not change the trees."""
    return [
        (path, ast.parse(path.read_text(encoding="utf-8"), str(path)))
        for path in sorted(folder.rglob("*.py"))
    ]


def place(path: Path, node: ast.AST) -> str:
    return f"{path}:{getattr(node, 'lineno', 0)}"


# -- styles of Textual apply to no widget of ours by its name

NEVER_MOUNTED: Final = {"Footer", "Header"}
"""Widgets of Textual that no screen shows, so that their styles are never read."""


def test_no_widget_takes_the_styles_of_another_widget_of_its_name() -> None:
    """Textual hides its own `CommandList` until the palette shows it."""
    module = textual.command
    theirs = {
        name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__
    }
    theirs.update(vars(textual.widgets)["__all__"])
    found = [
        place(path, node)
        for path, tree in sources(TUI)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in theirs - NEVER_MOUNTED
    ]
    assert found == []


# -- no text reaches a widget unchecked

WIDGETS_OF_TEXT: Final = {
    "Static",
    "Checkbox",
    "Label",
    "Button",
    "Option",
    "Placeholder",
    "Link",
    "Tab",
    "TabPane",
}
METHODS_OF_TEXT: Final = {"notify", "update"}
ATTRIBUTES_OF_TEXT: Final = {"border_title", "border_subtitle", "tooltip", "sub_title"}
SAFE_MAKERS: Final = {"Content", "content"}


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_safe(value: ast.expr) -> bool:
    """Return whether the expression can only be safe widget content."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, ast.IfExp):
        return is_safe(value.body) and is_safe(value.orelse)
    return isinstance(value, ast.Call) and name_of(value) in SAFE_MAKERS


def says_no_markup(call: ast.Call) -> bool:
    return any(
        keyword.arg == "markup" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in call.keywords
    )


def bare_texts(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the places where a widget, a message or a title gets text that it might read as markup."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = name_of(node)
            of_text = name in WIDGETS_OF_TEXT or (
                isinstance(node.func, ast.Attribute) and name in METHODS_OF_TEXT
            )
            if of_text and not (is_safe(node.args[0]) or says_no_markup(node)):
                yield node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            titles = [each for each in targets if isinstance(each, ast.Attribute)]
            if any(each.attr in ATTRIBUTES_OF_TEXT for each in titles) and not (
                node.value and is_safe(node.value)
            ):
                yield node


def test_no_bare_text_reaches_a_widget_a_message_or_a_title() -> None:
    found = [place(path, node) for path, tree in sources(TUI, CLI) for node in bare_texts(tree)]
    assert found == [], "wrap these with content(…), or pass markup=False with sanitize(…)"


@pytest.mark.parametrize(
    "code",
    [
        "Static(text)",
        "Static('[b]x[/b]')",
        "widgets.Label(f'{name}')",
        "self.notify(text)",
        "app.notify(sanitize(text), markup=True)",
        "self.border_title = text",
        "self.border_title = content(a) if a else b",
        "self.query_one(Static).update(text)",
    ],
)
def test_the_search_for_bare_texts_finds_them(code: str) -> None:
    assert list(bare_texts(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "Static(Content(text))",
        "Static(text, markup=False)",
        "self.notify(sanitize(text), markup=False)",
        "self.border_title = content(a) if a else None",
    ],
)
def test_the_search_for_bare_texts_lets_safe_ones_pass(code: str) -> None:
    assert not list(bare_texts(ast.parse(code)))


def test_the_key_of_a_drawn_line_is_derived_from_what_is_drawn() -> None:
    """A key that a list composes itself can omit something that its line shows."""
    found = {
        path.name
        for path, tree in sources(TUI, CLI)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_render_key"
    }
    assert found == {"item_list.py"}


def test_only_widgets_that_draw_their_own_safe_lines_are_used() -> None:
    """Textual's own widgets parse markup in many places. The allowed ones are checked above.

    Widgets for a person's input are Textual's, which take their text literally.
    """
    allowed = {"Static", "Input", "TextArea", "Checkbox"}
    used = {
        (place(path, node), alias.name)
        for path, tree in sources(TUI, CLI)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "textual.widgets"
        for alias in node.names
    }
    assert {name for _, name in used} <= allowed, used


def from_markup(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"from_markup", "from_text", "from_rich_text"}:
            yield node


def test_nothing_is_ever_parsed_as_markup() -> None:
    assert [place(path, node) for path, tree in sources(TUI, CLI) for node in from_markup(tree)] == []
    assert list(from_markup(ast.parse("Content.from_markup(text)")))


# -- texts


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def texts_of(package: str, language: str) -> dict[str, str]:
    def flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield prefix + key, value

    source = files(package).joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return dict(flat(tomllib.loads(source)))


@pytest.mark.parametrize("package", PACKAGES)
def test_both_catalogues_have_the_same_keys_with_the_same_placeholders(package: str) -> None:
    english, chinese = (
        {key: placeholders(text) for key, text in texts_of(package, language).items()}
        for language in LANGUAGES
    )
    assert english == chinese


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty(package: str, language: str) -> None:
    assert [key for key, text in texts_of(package, language).items() if not text.strip()] == []


KEY: Final = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+")
CATALOGUES: Final = {"words", "texts", "load_texts", "texts_of", "catalogue"}
TITLES: Final = {"title", "empty"}


def keys_used(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the literal keys: in calls of a catalogue, and as titles of panes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        callee = node.func
        called = name_of(node) if not isinstance(callee, ast.Call) else name_of(callee)
        given = [*node.args[:1]] if called in CATALOGUES else []
        given += [keyword.value for keyword in node.keywords if keyword.arg in TITLES]
        for value in given:
            for part in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
                if (
                    isinstance(part, ast.Constant)
                    and isinstance(part.value, str)
                    and KEY.fullmatch(part.value)
                ):
                    yield node, part.value


@pytest.mark.parametrize("package", PACKAGES)
def test_every_key_that_is_written_in_the_code_exists(package: str) -> None:
    texts = catalogue("en", package)
    used = [
        (place(path, node), key)
        for path, tree in sources(*PACKAGES[package])
        for node, key in keys_used(tree)
    ]
    used = [each for each in used if each[1] not in PACKAGES]
    assert used, "the search found nothing at all"
    assert [each for each in used if each[1] not in texts] == []


def literals(tree: ast.Module) -> Iterator[str | re.Pattern[str]]:
    """Yield every string literal. An f-string becomes a pattern whose computed parts match anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values
            ]
            if "." in "".join(part for part in parts if part != ".+"):
                yield re.compile("".join(parts))


@cache
def written() -> frozenset[str | re.Pattern[str]]:
    return frozenset(each for _, tree in sources(CORE, BOARDS, TUI, CLI) for each in literals(tree))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_text_is_used_somewhere(package: str) -> None:
    patterns = [each for each in written() if isinstance(each, re.Pattern)]
    unused = [
        key
        for key in texts_of(package, "en")
        if key not in written()
        and not any(pattern.fullmatch(key) for pattern in patterns)
        # Keys with a computed prefix, such as those of pydantic's problems.
        and not key.startswith(("argument.", "arguments.", "tool."))
    ]
    assert unused == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_action_has_its_texts(language: str) -> None:
    words = load_texts("zh" if language == "zh" else "en")
    for action in ACTIONS:
        assert action.label(words)
        assert action.help(words)
    for scope in SCOPES:
        assert words(f"scope.{scope}")
    for _, screen in SCREENS:
        assert words(f"action.screen_{screen}.label")


DIALOGS: Final = ("writing", "commit", "landing", "machine_need", "confirm", "unlock", "dialog", "finding")
"""The scopes that work alone."""


def test_no_key_does_two_things_in_one_place() -> None:
    # While a person writes, every key belongs to the editor.
    screens = [scope for scope in SCOPES if scope not in (*OF_THE_FOCUSED, *DIALOGS, "app")]
    panes = [("list",), ("view",)]
    reaches = [{"app", screen, *pane} for screen in screens for pane in panes]
    special = [{"app", "agents", "view", "session"}, {"app", "requests", "list", "choices"}]
    for reach in [
        *reaches,
        *special,
        {"editor"},
        {"dialog", "view"},
        {"machine_need", "view"},
        *({each} for each in DIALOGS),
    ]:
        keys = [key for action in ACTIONS if action.scope in reach for key in action.keys]
        assert len(keys) == len(set(keys)), f"{reach}: {sorted(key for key in keys if keys.count(key) > 1)}"


def test_every_action_can_be_run_where_it_is_offered() -> None:
    """Each action of a scope is a method of the class that binds that scope."""
    defined: dict[str, set[str]] = {}
    for _, tree in sources(TUI, CLI):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for scope in scopes_bound(node):
                    methods = {each.name for each in node.body if isinstance(each, Function)}
                    defined.setdefault(scope, set()).update(methods)
    inherited = {"action_quit", "action_dismiss"}
    for action in ACTIONS:
        assert action.scope in defined, f"nothing binds the keys of {action.scope!r}"
        method = "action_" + action.name.partition("(")[0]
        assert method in defined[action.scope] | inherited, action.id


def scopes_bound(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if not any(isinstance(target, ast.Name) and target.id == "BINDINGS" for target in targets):
            continue
        for each in ast.walk(statement):
            if (
                isinstance(each, ast.Call)
                and name_of(each) == "bindings"
                and isinstance(each.args[0], ast.Constant)
            ):
                yield str(each.args[0].value)
            elif isinstance(each, ast.Name) and each.id == "VIEW_BINDINGS":
                yield "view"


def test_the_page_of_keys_is_what_the_registry_says() -> None:
    page = HOUSE / "docs/keys.md"
    how = "make it with: watchroom keys > docs/keys.md"
    assert page.exists(), f"docs/keys.md is missing; {how}"
    assert page.read_text(encoding="utf-8").strip() == keys_page(load_texts("en")).strip(), f"outdated; {how}"


# -- the event loop


JOURNAL_METHODS: Final = {
    name for name, value in vars(Journal).items() if callable(value) and not name.startswith("_")
}
SLOW_MODULES: Final = {"sqlite3", "pygit2", "difflib", "watchfiles"}
SLOW_CALLS: Final = {"diff_hunks", "unified_diff", "dispatch_tool_call", "read_text", "write_text"}
OWNERS_OF_SLOW_CALLS: Final[dict[str, set[str] | None]] = {
    "journal": JOURNAL_METHODS,
    "subprocess": None,
    "shutil": None,
    "os": {"listdir", "scandir", "stat", "unlink", "remove", "makedirs"},
    "path": {"exists", "isfile", "isdir", "realpath", "expanduser", "open", "mkdir"},
    "time": {"sleep"},
}
"""What the event loop must not call, by the name before the dot. None: everything."""
IN_THREADS: Final = {"to_thread": 0, "act": 1, "carry_out": 1, "_answer": 1, "_go": 0}
"""Calls that call one of their arguments in a thread, by its position."""
ALLOWED_ON_THE_LOOP: Final = {
    "signing_keys.py": "The command line opens keys without a loop. The dashboard calls it in threads.",
    "settings.py": "The command line reads and writes the files before and after the loop runs.",
    "worker_screen.py": "Textual needs the stylesheets of a screen before the screen exists.",
}


def threaded(node: ast.Call) -> ast.expr | None:
    """Return the argument that ``node`` calls in a thread, None if it calls none there."""
    if name_of(node) == "Thread":
        return next((each.value for each in node.keywords if each.arg == "target"), None)
    position = IN_THREADS.get(name_of(node))
    return None if position is None or len(node.args) <= position else node.args[position]


def handed_to_threads(tree: ast.Module) -> set[str]:
    """Return the names of functions that are passed to threads."""
    names = set()
    for node in ast.walk(tree):
        first = threaded(node) if isinstance(node, ast.Call) else None
        if isinstance(first, ast.Call) and name_of(first) == "partial":
            first = first.args[0]
        if isinstance(first, ast.Attribute | ast.Name):
            names.add(first.attr if isinstance(first, ast.Attribute) else first.id)
    return names


def off_the_loop(tree: ast.Module, handed: set[str]) -> set[str]:
    """Return the names of functions that run in threads: those in ``handed``, and those that only these
    call."""
    callers: dict[str, set[str]] = {}

    def note_calls(node: ast.AST, caller: str) -> None:
        if isinstance(node, Function):
            caller = node.name
        if isinstance(node, ast.Call):
            callers.setdefault(name_of(node), set()).add(caller)
        for child in ast.iter_child_nodes(node):
            note_calls(child, caller)

    note_calls(tree, "")
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = functions & handed
    while more := {each for each in functions - found if callers.get(each) and callers[each] <= found}:
        found |= more
    return found


def readers_in(tree: ast.Module) -> set[str]:
    """Return the imported functions that read the journal or the index of the search."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("watchroom.")
        for alias in node.names
        if (node.module or "").endswith((".reads", ".snapshots"))
        or alias.name in ("open_index", "read_report")
        if alias.name[0].islower()
    }


def is_slow(node: ast.Call, readers: set[str]) -> bool:
    name, function = name_of(node), node.func
    if name in SLOW_CALLS:
        return True
    if not isinstance(function, ast.Attribute):
        return name in readers | {"open"}
    owner = function.value
    called_on = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    slow = OWNERS_OF_SLOW_CALLS.get(called_on.lstrip("_"), set())
    return slow is None or name in slow


def work_on_the_loop(tree: ast.Module, handed: set[str] | None = None) -> Iterator[ast.AST]:
    """Yield the calls that read, write or compare outside of functions that run in threads, and slow imports.
    ``handed``: the functions that are passed to threads, default: in this module."""
    off_loop = off_the_loop(tree, handed_to_threads(tree) if handed is None else handed)
    readers = readers_in(tree)

    def walk(node: ast.AST, inside: bool) -> Iterator[ast.AST]:
        if isinstance(node, Function):
            inside = isinstance(node, ast.FunctionDef) and (inside or node.name in off_loop)
        # A suspended dashboard draws nothing until the editor ends.
        if isinstance(node, ast.With) and any("suspend()" in ast.unparse(each) for each in node.items):
            return
        if isinstance(node, ast.Call) and is_slow(node, readers) and not inside:
            yield node
        if isinstance(node, ast.Import | ast.ImportFrom) and not inside:
            modules = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
            )
            if any(module.partition(".")[0] in SLOW_MODULES for module in modules):
                yield node
        in_thread = threaded(node) if isinstance(node, ast.Call) else None
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside or (child is in_thread and isinstance(child, ast.Lambda)))

    yield from walk(tree, False)


def test_the_dashboard_never_works_on_the_event_loop() -> None:
    modules = [
        (path, tree)
        for path, tree in sources(TUI)
        if path.parent == TUI
        or path.relative_to(TUI).parts[0] in ("screens", "widgets", "services", "dialogs")
    ]
    assert {"app.py", "base_screen.py", "context.py"} <= {path.name for path, _ in modules}
    # A public function can be passed to a thread by another module.
    public = {name for _, tree in modules for name in handed_to_threads(tree) if not name.startswith("_")}
    found = [
        place(path, node)
        for path, tree in modules
        if path.name not in ALLOWED_ON_THE_LOOP
        for node in work_on_the_loop(tree, public | handed_to_threads(tree))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "finds"),
    [
        ("def show(self): self.app.journal.rows(0)", True),
        ("def show(self): self._journal.rows(0)", True),
        ("async def load(self): rows = journal.content(3)", True),
        ("import sqlite3", True),
        ("def show(self):\n import difflib", True),
        ("def show(self): text = open(path).read()", True),
        ("def show(self): text = self._path.read_text()", True),
        ("def show(self): subprocess.run(words)", True),
        ("def show(self):\n with self.app.suspend(): subprocess.run(words)", False),
        ("from watchroom.features.tasks.reads import read_task\ndef show(self): read_task(task)", True),
        (
            "async def load(self):\n def read(): return journal.content(3)\n await asyncio.to_thread(read)",
            False,
        ),
        ("async def load(self): await asyncio.to_thread(self.app.journal.content, 3)", False),
        ("async def load(self): await asyncio.to_thread(lambda: journal.content(3))", False),
        ("async def load(self): await asyncio.to_thread(show, journal.content(3))", True),
        ("async def load(self):\n def read(): return journal.content(3)\n read()", True),
        (
            "def inner(): journal.rows(0)\ndef outer(): inner()\nasync def load(): await to_thread(partial(outer))",
            False,
        ),
        (
            "def inner(): journal.rows(0)\ndef outer(): inner()\nasync def load(): await to_thread(outer, inner())",
            True,
        ),
        ("def run(self): journal.rows(0)\nthread = Thread(target=self.run)", False),
        ("def asked(self): journal.rows(0)\nasync def send(self): await self.act(ANSWER, asked)", False),
    ],
)
def test_the_search_for_work_on_the_event_loop_tells_them_apart(code: str, finds: bool) -> None:
    assert bool(list(work_on_the_loop(ast.parse(code)))) is finds


def test_the_needs_of_a_frame_are_computed_in_one_place() -> None:
    callers = {
        path.name
        for path, tree in sources(TUI)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name_of(node) == "urgent_needs"
    }
    # Alerts start with the first model that is complete.
    assert callers <= {"app.py", "alert_monitor.py"}
    assert "app.py" in callers


def test_the_catalogue_refuses_an_unknown_key() -> None:
    words: Callable[[str], str] = Catalogue("a.b = 'text'")
    with pytest.raises(KeyError):
        words("a.c")


# -- what is private in Textual is used in one module


def private_names(tree: ast.Module) -> Iterator[ast.AST]:
    """Private attributes of other objects, and private modules of Textual."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual._"):
            yield node
        elif isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            own = ("self", "cls", "recorder")
            if (isinstance(node.value, ast.Attribute) and node.value.attr in ("app", "screen")) or (
                isinstance(node.value, ast.Name) and node.value.id not in own and node.attr in PRIVATE
            ):
                yield node


PRIVATE: Final = {
    "_auto_restart",
    "_driver",
    "_key_thread",
    "_set_dirty",
    "_dirty_regions",
    "_dirty_widgets",
    "_attach",
    "_css_update_count",
    "_get_breakpoint_classes",
    "_process_messages",
}


def test_what_is_private_in_textual_is_used_in_one_module() -> None:
    found = [
        place(path, node)
        for path, tree in sources(TUI, CLI)
        for node in private_names(tree)
        if path.name != "textual_compat.py"
    ]
    assert found == []


def required_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that `require` checks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node) == "require":
            yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))


def private_overrides(owner: type) -> Iterator[str]:
    """Yield the private methods of Textual or textual-serve that a class replaces."""
    theirs = [each for each in owner.__mro__ if each.__module__.startswith(("textual.", "textual_serve."))]
    for name, value in vars(owner).items():
        is_ours = isinstance(value, FunctionType) and value.__module__.startswith("watchroom")
        if is_ours and re.match("_[a-z]", name) and any(name in vars(each) for each in theirs):
            yield name


def test_a_private_method_of_textual_is_replaced_only_after_it_was_checked() -> None:
    checked = {name for _, tree in sources(TUI) for name in required_names(tree)}
    modules = [import_module(each.name) for each in walk_packages([str(TUI)], "watchroom_tui.")]
    owners = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    found = {(owner, name) for owner in owners for name in private_overrides(owner)}
    assert {(owner.__name__, name) for owner, name in found if name not in checked} == set()
    assert any(name == "_on_key" for _, name in found), "the search found nothing at all"


def test_a_version_of_textual_without_a_private_name_is_refused_by_name() -> None:
    with pytest.raises(TextualIncompatible, match=r"^textual [0-9.]+: App has no _gone, _lost$"):
        require(App, "_handle_exception", "_gone", "_lost")
