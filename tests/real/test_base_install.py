"""Every documented command, as its own process of a base install from the wheel, without any extra."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from pty_driver import Terminal
from real.environments import Environment, build_wheel, clean_environment, make_environment

pytestmark = pytest.mark.real

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md")))
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
    "watchroom run ": "acp",
    "watchroom server": "server",
    "watchroom traces team/ --endpoint http": "otel",
}
"""By what a command contains: the extra that it has to name."""
DASHBOARD: Final = ("watchroom\n", "watchroom open ", "watchroom demo", "watchroom task")
"""Commands that open the dashboard, which `q` leaves."""
ENDLESS: Final = (
    "watchroom watch team/",
    "watchroom log team/ --follow",
    "watchroom events team/ --json --follow",
    "watchroom events team/ --json --after",
    "watchroom web",
    "watchroom mcp team/ --http",
    "watchroom service run",
)
"""Commands that run until SIGINT."""
IN_REPOSITORY: Final = (
    "watchroom\n",
    "watchroom claude",
    "watchroom codex",
    "watchroom opencode",
    "watchroom gemini",
    "watchroom attach claude\n",
    "watchroom attach codex\n",
    "watchroom attach gemini\n",
    "watchroom leave",
    "watchroom changes",
    "watchroom blame",
    "watchroom commit",
    "watchroom try",
    "watchroom land",
    "watchroom pull-request",
    "watchroom tree ",
    "watchroom race",
    "watchroom hand-over",
    "watchroom fork-session",
    "watchroom routine",
    'watchroom task "Update the dependencies."',
    'watchroom task "Check the change."',
)
"""Commands that run in a git repository in which agents have worked."""
IN_COPY: Final = (
    "watchroom person add team/ dana\n",
    "watchroom revert team/ --agent alice --since 10m\n",
)
"""Commands after which others would be refused: they run in a copy of the workspace."""
TYPED: Final = {"watchroom person add team/ dana\n": "sesame\nsesame\n"}
"""By command: what is typed into it."""
BEFORE: Final = {
    "watchroom service status": "cd project && watchroom claude",
    "watchroom service stop": "cd project && watchroom claude",
}
"""By command: what has to be typed before. A client starts the service."""
ASKS: Final = ("watchroom stop team/ alice bob --end",)
"""Commands that ask at the terminal, once."""
CLIENTS: Final = ("claude", "codex", "opencode", "gemini")
REFUSED: Final = {
    "watchroom call team/ bob collab_write": "the page shows a conflict",
    "watchroom member add ~/team": "there is no such workspace",
    "watchroom member list team/": "the workspace is in its folder",
    "watchroom answer": "the workspace has no open request",
    "watchroom policy revoke": "nobody has granted calls",
    "--task 2c2251e33236": "the workspace has no such task",
    "watchroom resume": "the workspace has no such session",
    "--undo 5f0c21aa": "the workspace has no such revert",
    "watchroom verify team/ --against": "there is no such seal",
    "watchroom run NAME": "there is no such agent",
    "watchroom client show echo": "the package with this client is not installed",
    "watchroom client search --update": "there is no network",
    "watchroom gemini": "the client is not attached in this copy of the repository",
    "watchroom hook": "there is no event on standard input",
    "watchroom person add team/ eve": "the key is abridged",
    "watchroom person add team/ bot": "there is no such key file",
    "watchroom person revoke": "nobody is enrolled",
    "watchroom traces team/ --endpoint URL": "URL is no address",
    "watchroom routine show": "the repository has no routine",
    "watchroom routine run-now": "the repository has no routine",
    "watchroom routine stop": "the repository has no routine",
    "watchroom race show": "the repository has no race",
    "watchroom race pick": "the repository has no race",
    "watchroom tree remove": "the repository has no such tree",
    "watchroom tree add login --restore": "no tree was removed",
    "watchroom watch DIR": "DIR is no workspace",
    "watchroom mcp ~/team": "the workspace is that of another machine",
    "watchroom move ~/team": "the workspace is that of another machine",
    "--team app-watchroom": "the workspace is that of an earlier command",
    "watchroom fork-session": "the session began in the original of this copy of the repository",
    "watchroom land": "there is no such tree",
    "watchroom pull-request": "there is no such tree",
    "watchroom machine show": "there is no such machine",
    "watchroom machine answer": "there is no such machine",
    "watchroom demo --scenario release.toml": "the file is the reader's own",
}
"""By what a command contains: why it is refused in the test's workspace."""
NOT_RUN: Final = {"--model": "works with a model at a server"}
"""By what a command contains: why it is not run here. What is to be resumed is refused before a model is needed."""


class Documented(NamedTuple):
    """A command as a page shows it."""

    page: str
    command: str


def documented() -> Iterator[Documented]:
    """Yield each command of the pages once, without the remark behind it."""
    known = set()
    typed = r"^(?: {4})?(?:\$ )?((?:[A-Z_]+=\S+ )*watchroom(?: [^:\n].*)?)$"
    for page in PAGES:
        text = page.read_text("utf-8")
        fenced = re.findall(r"^```([\w-]*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        indented = re.findall(r"^ {4}.*$", text, flags=re.MULTILINE)
        lines = "\n".join([*(block for kind, block in fenced if kind in ("", "sh")), *indented])
        for line in re.findall(typed, lines, flags=re.MULTILINE):
            command = re.split(r"\s{2,}|\s+# ", line)[0]
            is_run = not any(part in command for part in NOT_RUN) or "watchroom resume" in command
            if is_run and command not in known:
                known.add(command)
                yield Documented(page.name, command)


class Place(NamedTuple):
    """The base install, and a folder with a workspace ``team/`` of two agents and the repository ``project/``."""

    environment: Environment
    folder: Path
    variables: dict[str, str]

    def run(self, command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=cwd or self.folder,
            env=self.variables,
            input=TYPED.get(f"{command}\n", ""),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def folder_for(self, command: str, tmp_path: Path) -> Path:
        """Return the folder in which ``command`` is typed."""
        if f"{command}\n".startswith(IN_REPOSITORY):
            return Path(shutil.copytree(self.folder / "project", tmp_path / "project", symlinks=True))
        if f"{command}\n".startswith(IN_COPY):
            shutil.copytree(self.folder / "team", tmp_path / "team", symlinks=True)
            return tmp_path
        return tmp_path if command.startswith("watchroom task") else self.folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("base")
    environment = make_environment(folder / "environment")
    environment.install(str(build_wheel(folder)))
    for name in ("home/.codex", "programs"):
        (folder / name).mkdir(parents=True)
    for client in CLIENTS:
        # A client that ends at once.
        (folder / "programs" / client).write_text("#!/bin/sh\n")
        (folder / "programs" / client).chmod(0o755)
    variables = clean_environment(folder / "home")
    path = os.pathsep.join((str(folder / "environment/bin"), str(folder / "programs"), variables["PATH"]))
    # The path of a socket is short. The service of this machine's user is another one.
    with tempfile.TemporaryDirectory(prefix="wr-") as runtime:
        variables |= {
            "PYTHONDEVMODE": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "PATH": path,
            "XDG_RUNTIME_DIR": runtime,
        }
        found = Place(environment, folder, variables)
        fill(found)
        yield found
        found.run("watchroom service stop")


def fill(place: Place) -> None:
    """Make the workspace and the repository."""
    assert place.run("watchroom init team/ --agent alice --agent bob").returncode == 0
    program = f"""
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
        [place.environment.program("python"), "-c", program],
        cwd=place.folder,
        env=place.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = place.run("watchroom demo project --scenario repository --headless --speed 0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_extra_is_installed(place: Place) -> None:
    installed = place.environment.versions()
    extras = {"psycopg", "agent-client-protocol", "apprise", "opentelemetry-sdk", "langchain-core"}
    assert extras & set(installed) == set()
    assert "pytest" not in installed


@pytest.mark.parametrize(("page", "command"), [*documented()])
def test_a_documented_command_works_or_says_what_it_needs(
    place: Place, tmp_path: Path, page: str, command: str
) -> None:
    folder = place.folder_for(command, tmp_path)
    if command in BEFORE:
        assert place.run(BEFORE[command]).returncode == 0
    is_refused = "postgresql://" in command or any(part in command for part in REFUSED)
    is_routine = any(part in command for part in (" --every ", " --on "))
    if f"{command}\n".startswith(DASHBOARD) and not (is_refused or is_routine):
        opens_the_dashboard(place, command, folder)
    elif command.startswith(ENDLESS):
        runs_until_interrupted(place, command)
    elif command in ASKS:
        ends_once_it_is_answered(place, command)
    else:
        ends(place, command, folder)


def ends(place: Place, command: str, folder: Path) -> None:
    done = place.run(command, folder)
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


def opens_the_dashboard(place: Place, command: str, folder: Path) -> None:
    argv = ["bash", "-c", command]
    with Terminal(argv, 120, 40, env=place.variables, cwd=str(folder)) as terminal:
        is_task = command.startswith("watchroom task")
        terminal.wait_for_text("architect" if is_task else "Needs you", timeout=PATIENCE)
        if command.startswith("watchroom demo"):
            terminal.wait_for_text("operations/min", timeout=PATIENCE)
        elif not is_task:
            terminal.wait_until_idle()
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
        assert [each for each in BROKEN if each.encode() in terminal.raw()] == []


def ends_once_it_is_answered(place: Place, command: str) -> None:
    argv = ["bash", "-c", command]
    with Terminal(argv, 120, 40, env=place.variables, cwd=str(place.folder)) as terminal:
        terminal.wait_for_text("?", timeout=PATIENCE)
        terminal.send("y\r")
        assert terminal.wait(PATIENCE) == 0, terminal.raw().decode()


def runs_until_interrupted(place: Place, command: str) -> None:
    argv = ["bash", "-c", command]
    with Terminal(argv, 200, 40, env=place.variables, cwd=str(place.folder)) as terminal:
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
