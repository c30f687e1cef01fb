"""Tools of other packages: they are called like all tools, and broken ones are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok
from plugins.installing import Installed
from watchroom import Workspace

ONE_TOOL = """
from watchroom.kernel.tools.models import NoParams, ResultModel
from watchroom.kernel.tools.tool import Toolset
TOOLS = Toolset("{zone}")
@TOOLS.tool("{name}")
def act(context: object, params: NoParams) -> ResultModel: ...
"""


@pytest.fixture
def team(root: Path) -> Path:
    with Workspace.open(root, agents=["alice"]) as workspace:
        ok(
            workspace.tools("alice"),
            "collab_write",
            filepath="plan.md",
            content="# Harbour study\n",
            message="m",
        )
    return root


@pytest.mark.sqlite("the commands get a folder")
def test_the_example_is_called_and_refused_like_every_tool(installed: Installed, team: Path) -> None:
    installed.add_example("tool")
    done = installed.run("call", str(team), "alice", "count_words", '{"filepath": "plan.md"}')
    assert (json.loads(done.stdout), done.stderr) == ({"success": True, "words": 3, "version": 1}, "")
    refused = installed.run("call", str(team), "alice", "count_words", '{"filepath": "other.md"}')
    assert json.loads(refused.stdout)["error"] == "file_not_found"
    with Workspace.open(team) as workspace:
        rows = list(workspace.journal.rows(limit=100))
    assert [(row.zone, row.path, row.outcome) for row in rows if row.tool == "count_words"] == [
        ("collab", "other.md", "failed")
    ]


def test_the_example_is_defined_for_mcp_clients_in_both_languages(installed: Installed) -> None:
    installed.add_example("tool")
    for language, description in (
        ("en", "Count the words of a shared file."),
        ("zh", "统计共享文件的词数。"),
    ):
        done = installed.run("tools", "--format", "mcp", "--language", language)
        found = {tool["name"]: tool for tool in json.loads(done.stdout)}
        assert found["count_words"]["description"] == description
        assert found["count_words"]["annotations"]["readOnlyHint"]


def test_a_package_with_english_texts_only_is_enough(installed: Installed) -> None:
    installed.add_example("tool")
    (installed.folder / "watchroom_word_count/zh.toml").unlink()
    done = installed.run("tools", "--format", "mcp", "--language", "zh")
    (found,) = (each for each in json.loads(done.stdout) if each["name"] == "count_words")
    assert (found["title"], done.stderr) == ("Count words", "")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no disk')", "OSError: no disk"),
        ("TOOLS = 5", "int is no Toolset"),
        ("", "AttributeError: module 'extra' has no attribute 'TOOLS'"),
        (
            "from watchroom_whiteboards.tools import TOOLS",
            "there is another tool whiteboard_read",
        ),
        (ONE_TOOL.format(zone="collab", name="Bad-Name"), "the name of the tool 'Bad-Name' is invalid"),
        (ONE_TOOL.format(zone="moon", name="land"), "the tool land is in no zone: 'moon'"),
        (ONE_TOOL.format(zone="collab", name="land"), "the text tool.land.title is missing (en)"),
    ],
)
def test_a_broken_package_is_named_and_stops_nothing(installed: Installed, code: str, reason: str) -> None:
    installed.add_module("extra", code, "watchroom.tools", {"extra": "extra:TOOLS"})
    installed.add_example("tool")
    done = installed.run("tools")
    names = [each["name"] for each in json.loads(done.stdout)]
    assert {"collab_write", "whiteboard_read", "count_words"} <= set(names)
    assert len(names) == len(set(names))
    expected = f"watchroom.tools: the plug-in extra of the package extra is left out: {reason}\n"
    assert (done.returncode, done.stderr) == (0, expected)
