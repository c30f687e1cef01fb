"""A name that one tool lists, every tool that takes such a name can read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from calls import ok
from effort import rounds
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tasking import machine_sandbox
from watchroom import Agent, Toolbox, Workspace
from watchroom.errors import InvalidPath
from watchroom.model import Write

parts = st.text(
    " .-~:\"'\\\t\n\r\x01\x7f*?#%ae\u0301é中\u202e\u200b\u2044\ufeff\U000e0fff\udcff", min_size=1, max_size=5
).filter(lambda part: part not in (".", ".."))
names = st.lists(parts, min_size=1, max_size=3).map("/".join)
ODD = [
    *(
        "con",
        "nul.txt",
        "a.",
        " a",
        "a ",
        "a:b",
        "C:x",
        "a\\b",
        "e\u0301.md",
        "\u0378.md",
        "-rf",
        "~",
        "a\nb",
    ),
    *("x" * 255, "/".join("abcdefghij" * 4), "a\udcff", ".hidden", "..."),
]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    base = tmp_path_factory.mktemp("names")
    with Workspace.open(base / "team", agents=["bob"], sandbox=machine_sandbox()) as workspace:
        folder = base / "project"
        folder.mkdir()
        task = workspace.tasks.submit("human:ann", "Build something.", folder)
        workspace.register([Agent("alice", task=task.id)])
        yield workspace


def make(folder: Path, name: str) -> bool:
    """Make the file by hand; False where the disk has no such file."""
    path = os.path.join(os.fsencode(folder), name.encode("utf-8", "surrogateescape"))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"text\n")
    except OSError:
        return False
    return True


def clear(folder: Path) -> bool:
    """Remove all that is in the folder; whether there were files."""
    had_files = False
    for above, folders, files in os.walk(os.fsencode(folder), topdown=False):
        for file in files:
            had_files = True
            os.unlink(os.path.join(above, file))
        for each in folders:
            os.rmdir(os.path.join(above, each))
    return had_files


def listed_in_task(alice: Toolbox, folder: str = ".") -> Iterator[str]:
    """The files that an agent finds in its task's folder, by going from folder to folder."""
    for each in ok(alice, "list_files", path=folder)["files"]:
        path = each["name"] if folder == "." else f"{folder}/{each['name']}"
        if each["type"] == "directory":
            yield from listed_in_task(alice, path)
        else:
            yield path


Test = TypeVar("Test", bound=Callable[..., None])


def odd_names(test: Test) -> Test:
    for name in ODD:
        test = example(name=name)(test)
    return test


@settings(max_examples=rounds(60, 2000), suppress_health_check=list(HealthCheck))
@given(name=names)
@odd_names
def test_a_listed_file_of_an_agent_is_read_saved_and_deleted(team: Workspace, name: str) -> None:
    alice = team.tools("alice")
    made = make(Path(team.root, "agents/alice"), name)
    found = ok(alice, "list_workspace_files", agent_id="alice")
    for listed in found["files"]:
        json.dumps(listed).encode()
        assert ok(alice, "read_from_workspace", agent_id="alice", filename=listed)["content"] == "text\n"
        ok(alice, "save_to_my_workspace", filename=listed, content="text\n")
        ok(alice, "delete_from_my_workspace", filename=listed)
    assert clear(Path(team.root, "agents/alice")) == ("notice" in found)
    assert made or "notice" not in found


@settings(max_examples=rounds(60, 2000), suppress_health_check=list(HealthCheck))
@given(name=names)
@odd_names
def test_a_listed_file_of_a_task_is_read_and_written(team: Workspace, name: str) -> None:
    alice = team.tools("alice")
    folder = Path(team.root).parent / "project"
    make(folder, name)
    for listed in list(listed_in_task(alice)):
        json.dumps(listed).encode()
        assert ok(alice, "read_file", path=listed)["content"] == "text\n"
        ok(alice, "write_file", path=listed, content="text\n")
    clear(folder)


def test_a_name_that_an_earlier_release_allowed_is_read(team: Workspace, tmp_path: Path) -> None:
    """Rows written when the rules of names were others: a path of more parts, and a character that Unicode did not
    have yet."""
    old = ["/".join("abcdefghij" * 4), "\u0378.md"]
    drafts = [Write("bob", "t", "collab", name, "text\n") for name in old]
    drafts += [Write("bob", "t", "private", f"bob/{name}", "text\n") for name in old]
    drafts += [Write("bob", "t", "handoff", f"bob_to_alice/{name}", "text\n") for name in old]
    drafts += [Write("bob", "t", "collab", "../out.md", "x")]
    with suppress(InvalidPath):
        team.journal.append(drafts[-1:])
    team.journal.append(drafts[:-1])
    team.scan()
    alice, bob = team.tools("alice"), team.tools("bob")
    shared = [each["filepath"] for each in ok(alice, "collab_list")["files"]]
    assert sorted(shared) == sorted(old)
    own = ok(alice, "list_workspace_files", agent_id="bob")["files"]
    assert sorted(own) == sorted(old)
    delivered = [each["filename"] for each in ok(alice, "check_my_handoffs")["handoffs"]]
    assert sorted(delivered) == sorted(old)
    for name in old:
        assert ok(alice, "collab_read", filepath=name)["content"] == "text\n"
        ok(alice, "collab_history", filepath=name)
        ok(alice, "collab_write", filepath=name, content="two\n", message="m", expected_version=1)
        assert ok(alice, "read_from_workspace", agent_id="bob", filename=name)["content"] == "text\n"
        ok(bob, "delete_from_my_workspace", filename=name)
        assert ok(alice, "read_handoff", from_agent="bob", filename=name)["content"] == "text\n"
        ok(alice, "acknowledge_handoff", from_agent="bob", filename=name)
