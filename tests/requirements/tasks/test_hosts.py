"""The hosts that commands can reach."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok, refused
from tasking import Team, machine_sandbox
from watchroom import Agent, Workspace
from watchroom.errors import ConfigInvalid
from watchroom.features.config.rows import dump_config, parse_config
from watchroom.platform.sandbox.probe import SandboxProbe

PROGRAM = "from urllib.request import urlopen; urlopen('http://example.com/')"
FETCHING = f"python3 -c {shlex.quote(PROGRAM)}"


def allow(workspace: Workspace, *hosts: str) -> None:
    config = Path(workspace.root) / ".watchroom" / "config.toml"
    config.write_text(f"allowed_hosts = {list(hosts)!r}\n" + config.read_text())
    workspace.scan()


@pytest.fixture
def landlocked(tmp_path: Path, root: Path) -> Iterator[Team]:
    results = [result for result in machine_sandbox().results if result.name == "landlock"]
    if not results[0].works:
        pytest.skip("Landlock does not work here")
    with Workspace.open(root, sandbox=SandboxProbe(results, False)) as workspace:
        task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "one")
        workspace.register([Agent("alice", task=task.id)])
        alice = workspace.tools("alice")
        yield Team(workspace, alice, alice, tmp_path / "one", tmp_path)


def test_they_are_a_line_of_the_config() -> None:
    config = parse_config('allowed_hosts = ["example.org", "*.example.com"]')
    assert config.allowed_hosts == ("example.org", "*.example.com")
    assert parse_config(dump_config(config)) == config
    assert parse_config("").allowed_hosts == ()


@pytest.mark.parametrize("wrong", ['"example.org"', "[1]", '["*"]', '["a..b"]', '["https://example.org"]', '["A.b"]', '["a.*"]'])  # fmt: skip
def test_what_is_no_name_of_a_host_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigInvalid, match="allowed_hosts"):
        parse_config(f"allowed_hosts = {wrong}")


def test_what_a_command_asks_for_in_vain_stands_in_its_last_row(team: Team) -> None:
    if team.workspace.commands.sandbox.results[0].backend is None:
        pytest.skip("bubblewrap does not work here: commands reach no host at all")
    allow(team.workspace, "example.org")
    result = refused(team.one, "run_command", command=FETCHING)
    assert "example.com is not an allowed host" in result["stderr"]
    rows = team.workspace.journal.rows(limit=1000)
    (ended,) = [row for row in rows if row.tool == "end_command"]
    assert ended.detail["refused_hosts"] == ["example.com"]
    assert "reached_hosts" not in ended.detail


def test_where_they_cannot_be_reached_a_command_is_told(landlocked: Team) -> None:
    assert ok(landlocked.one, "run_command", command="echo on")["stderr"] == ""
    allow(landlocked.workspace, "example.org")
    result = ok(landlocked.one, "run_command", command="echo on")
    assert result["stdout"] == "on\n"
    assert result["stderr"].startswith("No network: ")
