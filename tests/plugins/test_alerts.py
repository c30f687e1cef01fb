"""Targets of other packages get alerts; a broken one is named before anything is sent."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from plugins.installing import Installed
from tui.team import collide
from watchroom import Toolbox, Workspace
from watchroom.model import SEND_ALERT
from watchroom_cli.main import OK, USAGE

pytestmark = pytest.mark.sqlite("the commands get a folder")

WANTED = "bob and alice both changed plan.md."
PATIENCE = 30


@pytest.fixture
def team(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> Workspace:
    """A workspace with an open need and a target named log."""
    path = Path(workspace.root) / ".watchroom/config.toml"
    table = '[alerts]\ndigest_seconds = 0\n[alerts.targets.log]\ntype = "plugin"\nplugin = "file"\nurl = "$ALERTS"\n'
    path.write_text(f"{path.read_text()}\n{table}")
    workspace.scan()
    assert workspace.registry.find_invalid() is None
    collide(alice, bob)
    return workspace


@contextmanager
def sending(installed: Installed, team: Workspace, address: str) -> Iterator[subprocess.Popen[str]]:
    command = installed.command("watch", team.root, "--send")
    variables = {**installed.variables, "ALERTS": address, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], part: str) -> str:
    """Return the first line that contains ``part``."""
    assert process.stdout is not None
    return next(line for line in process.stdout if part in line)


def test_the_example_gets_each_alert_once(installed: Installed, team: Workspace, tmp_path: Path) -> None:
    installed.add_example("alert")
    file = tmp_path / "alerts.jsonl"
    with sending(installed, team, str(file)) as process:
        read_until(process, "Alert sent to log")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == OK
    (line,) = file.read_text("utf-8").splitlines()
    assert json.loads(line)["text"] == WANTED
    (row,) = (row for row in team.journal.rows(limit=1000) if row.tool == SEND_ALERT)
    assert row.path == "log"


@pytest.mark.parametrize("error", ["OSError", "SystemExit"])
def test_an_error_of_a_plug_in_is_a_delay_whose_reason_has_no_address(
    installed: Installed, team: Workspace, error: str
) -> None:
    code = f"def send(alert): raise {error}(alert.url)"
    installed.add_module("extra", code, "watchroom.alerts", {"file": "extra:send"})
    with sending(installed, team, "s3cret") as process:
        line = read_until(process, "Alert to log")
    assert f"is delayed ({error} in the plug-in file)" in line
    assert "s3cret" not in str(list(team.journal.rows(limit=1000)))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (None, "alerts.targets.log: no installed package has the plug-in file."),
        (
            "send = 5",
            "alerts.targets.log: the plug-in of the package extra cannot be used: int cannot be called",
        ),
    ],
)
def test_a_target_without_a_usable_plug_in_is_refused(
    installed: Installed, team: Workspace, code: str | None, reason: str
) -> None:
    if code is not None:
        installed.add_module("extra", code, "watchroom.alerts", {"file": "extra:send"})
    installed.variables["ALERTS"] = "any"
    done = installed.run("watch", team.root, "--send")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert reason in done.stderr
