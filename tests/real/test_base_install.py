"""Every documented command, as its own process of a base install from the wheel, without any extra."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from pty_driver import Terminal
from real.environments import Environment, build_wheel, clean_environment, make_environment

pytestmark = pytest.mark.real

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
ROWS: Final = 1220
"""Versions in the workspace: the documentation names row 1200."""
PATIENCE: Final = 60
BROKEN: Final = (
    "Traceback",
    "Exception ignored",
    "ResourceWarning",
    "was removed or replaced",
    "Error in sys.",
)
"""What no command prints, whatever its outcome."""

NEEDS_EXTRA: Final = {
    "postgresql://": "postgres",
    "watchroom traces team/ --endpoint http": "otel",
}
"""By what a command contains: the extra that it has to name."""
DASHBOARD: Final = ("watchroom open ", "watchroom demo")
"""Commands that open the dashboard, which `q` leaves."""
ENDLESS: Final = (
    "watchroom watch team/",
    "watchroom log team/ --follow",
    "watchroom events team/ --json --follow",
    "watchroom web",
    "watchroom mcp team/ --http",
    "watchroom service run",
)
"""Commands that run until SIGINT."""
REFUSED: Final = {
    "watchroom run ": "neither the client nor the extra acp is installed",
    "watchroom member add ~/team": "there is no such workspace",
    "watchroom answer": "the workspace has no open request",
    "--task 2c2251e33236": "the workspace has no such task",
    "--import project/": "the folder is no repository",
    "watchroom resume": "the workspace has no such session",
    "--undo 5f0c21aa": "the workspace has no such revert",
    "watchroom verify team/ --against": "there is no such checkpoint",
    "watchroom person add": "a passphrase or a key is needed",
    "watchroom person revoke": "nobody is enrolled",
    "watchroom traces team/ --endpoint URL": "URL is no address",
    "watchroom watch DIR": "DIR is no workspace",
    "watchroom mcp ~/team": "an abbreviation, with the address of another machine",
    "watchroom demo --scenario release.toml": "the file is the reader's own",
    "watchroom\n": "the folder is no workspace",
    "watchroom claude": "the folder is no repository",
    "watchroom codex": "the folder is no repository",
    "watchroom opencode": "the folder is no repository",
    "watchroom attach claude\n": "the folder is no repository",
    "watchroom attach codex\n": "the folder is no repository",
    "watchroom leave": "the folder is no repository",
}
"""By what a command contains: why it is refused in the test's workspace."""
NOT_RUN: Final = {
    "watchroom task": "opens the dashboard and works with a model",
    "watchroom: ": "an error message",
}
"""By how a line begins: why it is not run here."""


class Documented(NamedTuple):
    """A command as a page shows it."""

    page: str
    command: str


def documented() -> Iterator[Documented]:
    """Yield each command of the pages once, without the remark behind it."""
    known = set()
    for page in PAGES:
        for typed in re.findall(r"^    (watchroom .*)$", page.read_text("utf-8"), flags=re.MULTILINE):
            command = re.split(r"\s{2,}|\s+# | > ", typed)[0]
            if not command.startswith(tuple(NOT_RUN)) and command not in known:
                known.add(command)
                yield Documented(page.name, command)


class Place(NamedTuple):
    """The base install, and a folder with a workspace ``team/`` of two agents."""

    environment: Environment
    folder: Path
    variables: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(command),
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def arguments(self, command: str) -> list[str]:
        _, *arguments = shlex.split(command)
        home = str(self.folder / "home")
        return [self.environment.program("watchroom"), *(each.replace("~", home) for each in arguments)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("base")
    environment = make_environment(folder / "environment")
    environment.install(str(build_wheel(folder)))
    (folder / "home").mkdir()
    found = Place(environment, folder, {**clean_environment(folder / "home"), "PYTHONDEVMODE": "1"})
    assert found.run("watchroom init team/ --agent alice --agent bob").returncode == 0
    fill = f"""
from threading import Event
from watchroom import Workspace
with Workspace.open("team") as workspace:
    tools = workspace.tools("alice")
    for n in range({ROWS}):
        text = f"It grows by 12 %. Then a timeout {{n}}."
        given = dict(filepath="plan.md", content=text, message="m", expected_version=n)
        assert tools.dispatch_tool_call("collab_write", given)["success"]
    workspace.sealing.write_due(Event())
"""
    done = subprocess.run(
        [environment.program("python"), "-c", fill],
        cwd=folder,
        env=found.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return found


def test_no_extra_is_installed(place: Place) -> None:
    installed = place.environment.versions()
    extras = {"psycopg", "agent-client-protocol", "apprise", "opentelemetry-sdk", "langchain-core"}
    assert extras & set(installed) == set()
    assert "pytest" not in installed


@pytest.mark.parametrize(("page", "command"), [*documented()])
def test_a_documented_command_works_or_says_what_it_needs(place: Place, page: str, command: str) -> None:
    if command.startswith(DASHBOARD) and "postgresql://" not in command and "release.toml" not in command:
        opens_the_dashboard(place, command)
    elif command.startswith(ENDLESS):
        runs_until_interrupted(place, command)
    else:
        ends(place, command)


def ends(place: Place, command: str) -> None:
    done = place.run(command)
    printed = done.stdout + done.stderr
    assert [each for each in BROKEN if each in printed] == [], printed
    extra = next((name for part, name in NEEDS_EXTRA.items() if part in command), None)
    reason = next((why for part, why in REFUSED.items() if part in f"{command}\n"), None)
    if reason is not None:
        assert done.returncode in (1, 2), printed
        assert printed.strip()
    elif extra is not None:
        assert done.returncode == 1, printed
        assert f"watchroom[{extra}]" in printed
    else:
        assert done.returncode == 0, printed


def opens_the_dashboard(place: Place, command: str) -> None:
    with Terminal(place.arguments(command), 120, 40, env=place.variables, cwd=str(place.folder)) as terminal:
        terminal.wait_for_text("Needs you", timeout=PATIENCE)
        terminal.wait_until_idle(timeout=5) if "demo" not in command else terminal.wait_for_text(
            "operations/min"
        )
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
        assert [each for each in BROKEN if each.encode() in terminal.raw()] == []


def runs_until_interrupted(place: Place, command: str) -> None:
    with Terminal(place.arguments(command), 200, 40, env=place.variables, cwd=str(place.folder)) as terminal:
        if "--follow" in command:
            terminal.wait_until_idle()
        else:
            terminal.wait_for(lambda lines: any(line.strip() for line in lines), timeout=PATIENCE)
            terminal.wait_until_idle()
        terminal.send("\x03")
        assert terminal.wait(PATIENCE) in (0, 130), terminal.raw().decode()
        assert [each for each in BROKEN if each.encode() in terminal.raw()] == []


def test_a_model_client_and_a_scripted_team_work(place: Place) -> None:
    """The demo's agents call every kind of tool."""
    done = place.run("watchroom demo fresh/ --headless --for 5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"verify": "clean"' in done.stdout
    assert place.run("watchroom verify fresh/").returncode == 0
