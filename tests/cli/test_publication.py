"""The user's settings define where a command publishes seals."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event

import pytest
from watchroom import Workspace
from watchroom.history.git import SealBranch
from watchroom_cli.publication import publish_later
from watchroom_tui.services.settings import settings_path


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings_path().parent.mkdir(parents=True)
    return settings_path()


def test_programs_with_an_open_workspace_publish_as_the_settings_say(tmp_path: Path, settings: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "seals")], check=True)
    (tmp_path / "shared").mkdir()
    settings.write_text(
        f'[publish]\nfolder = "{tmp_path}/shared"\ngit = "{tmp_path}/seals"\nbranch = "mine"\n'
    )
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        publish_later(workspace, "en")
        assert workspace.sealing.write_due(Event(), at_once=True)
        report = workspace.sealing.verify()
    assert {"published", "git"} <= {each.kind for each in report.anchors}
    assert len(SealBranch(str(tmp_path / "seals"), "mine").read(report.workspace)) == 1
    assert [each.name for each in (tmp_path / "shared").iterdir()] == [f"{report.workspace}.txt"]


def test_unreadable_settings_are_logged_and_the_journal_is_sealed(
    tmp_path: Path, settings: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.write_text("[publish]\npush = 1\n")
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        publish_later(workspace, "en")
        assert workspace.sealing.write_due(Event(), at_once=True)
        assert workspace.sealing.verify().findings == ()
    (told,) = (each for each in caplog.messages if "no seal is published" in each)
    assert "publish.push" in told
