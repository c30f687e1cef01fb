"""The examples, in an environment with the wheel: teams of other frameworks, and plug-ins."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from examples.running import EXAMPLES as TEAMS
from examples.running import run_example
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from plugins.installing import EXAMPLES as PLUGINS
from pty_driver import Terminal
from real.environments import Environment, build_wheel, clean_environment, make_environment

pytestmark = pytest.mark.real

KINDS: Final = sorted(each.name for each in PLUGINS.iterdir())
PATIENCE: Final = 60
F6: Final = "\x1b[17~"


class Place(NamedTuple):
    """An environment with all examples, and a folder with a workspace ``team/`` of two agents."""

    environment: Environment
    folder: Path
    variables: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.environment.program("watchroom"), *arguments],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


def packages_of_teams() -> list[str]:
    """Return what the first lines of the examples install. The frameworks have to work side by side."""
    texts = [each.read_text("utf-8") for each in TEAMS.values()]
    lines = [re.findall(r"^ {4}pip install (.*)$", text, re.MULTILINE) for text in texts]
    return sorted({each for (line,) in lines for each in shlex.split(line)})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("plugins")
    environment = make_environment(folder / "environment")
    wheel = str(build_wheel(folder))
    packages = [re.sub(r"^watchroom\b", wheel, each) for each in packages_of_teams()]
    environment.install(*packages, *(str(PLUGINS / kind) for kind in KINDS))
    (folder / "home").mkdir()
    # The path of a socket is short. The service of this machine's user is another one.
    with tempfile.TemporaryDirectory(prefix="wr-") as runtime:
        variables = {**clean_environment(folder / "home"), "XDG_RUNTIME_DIR": runtime}
        found = Place(environment, folder, variables)
        assert found.run("init", "team/", "--agent", "alice", "--agent", "bob").returncode == 0
        yield found
        found.run("service", "stop")


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_merges_after_a_refused_write(place: Place, tmp_path: Path, name: str) -> None:
    run_example(name, place.environment.program("python"), tmp_path)


async def test_the_tool_is_offered_to_mcp_clients_and_called(place: Place) -> None:
    given = json.dumps({"filepath": "plan.md", "content": "# Harbour study\n", "message": "m"})
    assert place.run("call", "team/", "alice", "collab_write", given).returncode == 0
    server = StdioServerParameters(
        command=place.environment.program("watchroom"),
        args=["mcp", "team/", "--agent", "alice"],
        env=place.variables,
        cwd=place.folder,
    )
    async with Client(server) as client:
        assert "count_words" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("count_words", {"filepath": "plan.md"})
    assert result.structured_content == {"success": True, "words": 3, "version": 1}


def test_the_target_gets_an_alert(place: Place) -> None:
    assert place.run("init", "alerted/", "--agent", "alice", "--agent", "bob").returncode == 0
    config = place.folder / "alerted/.watchroom/config.toml"
    target = '[alerts.targets.log]\ntype = "plugin"\nplugin = "file"\nurl = "$WATCHROOM_ALERTS"\n'
    config.write_text(f"{config.read_text('utf-8')}\n[alerts]\ndigest_seconds = 0\n{target}", "utf-8")
    for agent in ("alice", "bob"):
        given = {"filepath": "plan.md", "content": f"{agent}\n", "message": "m", "expected_version": 0}
        place.run("call", "alerted/", agent, "collab_write", json.dumps(given))
    file = place.folder / "alerts.jsonl"
    variables = {**place.variables, "WATCHROOM_ALERTS": str(file), "PYTHONUNBUFFERED": "1"}
    command = [place.environment.program("watchroom"), "watch", "alerted/", "--send"]
    with subprocess.Popen(
        command, cwd=place.folder, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "Alert sent to log" in line)
        process.terminate()
    assert "plan.md" in json.loads(file.read_text("utf-8"))["text"]


def test_the_client_works_as_an_agent(place: Place) -> None:
    done = place.run("run", "echo", "team/", "Hello", "--agent", "bob", "--once")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: Hello\n", "")


def test_the_zone_refuses_what_breaks_its_rule(place: Place) -> None:
    given = json.dumps({"subject": "Use one harbour", "content": "It is cheaper."})
    assert place.run("call", "team/", "alice", "propose_decision", given).returncode == 0
    text = {"filepath": "decisions/0002.md", "content": "No.\n", "message": "m", "expected_version": 0}
    refused = place.run("call", "team/", "alice", "collab_write", json.dumps(text))
    assert json.loads(refused.stdout)["error"] == "zone_refused"
    assert place.run("verify", "team/").returncode == 0


def test_the_screen_opens_with_its_key(place: Place) -> None:
    given = json.dumps({"filepath": "../plan.md", "content": "", "message": "m"})
    assert place.run("call", "team/", "alice", "collab_write", given).returncode == 1
    argv = [place.environment.program("watchroom"), "open", "team/"]
    with Terminal(argv, 120, 40, env=place.variables, cwd=str(place.folder)) as terminal:
        terminal.wait_for_text("Needs you", timeout=PATIENCE)
        terminal.wait_until_idle()
        terminal.send(F6)
        terminal.wait_for_text("Refusals", timeout=PATIENCE)
        terminal.wait_for_text("invalid_path", timeout=PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
