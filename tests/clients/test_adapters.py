"""A client is one record: everything that differs between clients is derived from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import watchroom
import watchroom_tui
from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.configuration import AttachedAs, HookProgram, build_configuration
from watchroom.agents.clients.hook_answers import BEFORE, PERMISSION, HookAnswer, allow, deny, warn
from watchroom.agents.clients.registry import (
    ADAPTERS,
    ATTACHED_CLIENTS,
    DEFAULT_CLIENT,
    HOOKED_CLIENTS,
    LAUNCHED_CLIENTS,
    hooks_of,
)
from watchroom.texts import LANGUAGES
from watchroom_cli.commands import CLIENT_COMMANDS
from watchroom_tui.presentation.localization import load_texts

CORE, TUI = (Path(str(package.__file__)).parent for package in (watchroom, watchroom_tui))
OWN_MODULES = {f"{each.name}.py" for each in ADAPTERS} | {"registry.py"}
KNOWN_ELSEWHERE = {"commands.py"}
"""The names of commands are read without the records."""


def literals() -> Iterator[tuple[Path, str]]:
    """Yield all texts in the code of core and dashboard, except docstrings."""
    for path in (*CORE.rglob("*.py"), *TUI.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        described = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                yield path, node.value


def test_no_client_is_named_outside_its_record() -> None:
    names = {each.name for each in ADAPTERS}
    folders = {f".{name}/" for name in names}
    found = {
        (path.name, text)
        for path, text in literals()
        if path.name not in OWN_MODULES | KNOWN_ELSEWHERE
        and (text in names or any(folder in text for folder in folders))
    }
    assert found == set()


def test_each_client_has_one_record() -> None:
    assert len({each.name for each in ADAPTERS}) == len(ADAPTERS)
    assert all(each.acp is not None or each.hooks is not None for each in ADAPTERS)
    assert DEFAULT_CLIENT in HOOKED_CLIENTS
    with pytest.raises(ValueError, match="nobody"):
        hooks_of("nobody")


def test_each_client_that_can_be_started_has_a_command() -> None:
    assert set(CLIENT_COMMANDS) == LAUNCHED_CLIENTS.keys()


@pytest.mark.parametrize("client", ATTACHED_CLIENTS)
def test_a_record_is_enough_to_attach_its_client(client: str) -> None:
    hooks = hooks_of(client)
    wanted = build_configuration(client, HookProgram(["watchroom"]), AttachedAs("/team", ("alice",), True))
    assert {*wanted.json, *wanted.toml} <= {*hooks.files}
    written = wanted.json[hooks.hooks.file]["hooks"]
    assert isinstance(written, dict)
    assert BEFORE in hooks.events
    assert {hooks.read_event({"hook_event_name": name})["hook_event_name"] for name in written} == {
        *hooks.events
    }
    for language in LANGUAGES:
        assert load_texts(language)(f"cli.attach.next_{client}")


def test_codex_is_not_sent_an_allowance_that_it_calls_a_failed_hook() -> None:
    """Codex 0.171.0: "PreToolUse hook returned unsupported permissionDecision:allow"."""
    event: Event = {"hook_event_name": BEFORE, "tool_name": "Bash", "tool_input": {"command": "ls"}}
    write = hooks_of("codex").write_answer
    assert write(event, allow(BEFORE)).dump() == ""
    for answer in (deny(BEFORE, "no"), allow(BEFORE, {"command": "ls -l"}), allow(PERMISSION), warn("late")):
        assert write({**event, "hook_event_name": answer_event(answer)}, answer) == answer


def answer_event(answer: HookAnswer) -> str:
    own = (answer.said or {}).get("hookSpecificOutput")
    return str(own["hookEventName"]) if isinstance(own, dict) else BEFORE
