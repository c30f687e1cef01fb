"""In a closed workspace settings hold as an owner signed them, whoever edits the file: TRUST, section 3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok
from people.conftest import DANA, EVE, STRANGER, Team
from watchroom import Agent, Workspace
from watchroom.errors import MayNotDecide, SignatureRequired
from watchroom.features.config.rows import SETTINGS_PATH, SETTINGS_ZONE
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Need
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.kernel.call_context import CallContext
from watchroom.model import SET_BUDGET, SYSTEM, Write

LAX = 'allowed_hosts = ["*.example.org"]\nunfenced_commands = "ask"\n'


def edit(team: Team, text: str) -> None:
    """Write ``text`` before what the config file says, by hand, and have it recorded."""
    file = team.root / ".watchroom/config.toml"
    file.write_text(text + file.read_text())
    team.workspace.scan()


def sign(team: Team) -> None:
    """Have dana sign what the file says."""
    team.sign_as(DANA)
    team.workspace.settings.sign(CallContext("human:dana"))
    team.sign_as(None)


def hosts(workspace: Workspace) -> list[str]:
    return [*workspace.config.allowed_hosts]


def needs(team: Team) -> list[Need]:
    return [*read_model(team.workspace.journal, team.workspace.journal.last_seq()).needs]


def test_what_is_edited_by_hand_holds_once_an_owner_signed_it(team: Team) -> None:
    sign(team)
    edit(team, LAX)
    assert hosts(team.workspace) == []
    (need,) = needs(team)
    assert (need.kind, need.row.error) == ("outside", "settings_unsigned")
    assert need.against == "unfenced_commands, allowed_hosts"
    sign(team)
    assert hosts(team.workspace) == ["*.example.org"]
    assert team.workspace.config.unfenced_commands == "ask"
    assert needs(team) == []


def test_an_edit_that_is_taken_back_needs_nobody(team: Team) -> None:
    sign(team)
    file = team.root / ".watchroom/config.toml"
    before = file.read_text()
    edit(team, LAX)
    file.write_text(before)
    team.workspace.scan()
    assert needs(team) == []


def test_only_an_owner_signs_settings(team: Team) -> None:
    sign(team)
    edit(team, LAX)
    with pytest.raises(SignatureRequired):
        team.workspace.settings.sign(CallContext("human:dana"))
    for signer, who in ((EVE, "human:eve"), (STRANGER, "human:dana")):
        team.sign_as(signer)
        with pytest.raises(MayNotDecide):
            team.workspace.settings.sign(CallContext(who))
    assert hosts(team.workspace) == []


@pytest.mark.parametrize("actor", ["human:dana", SYSTEM, "alice"])
def test_settings_that_nobody_signed_change_nothing_and_are_shown(team: Team, actor: str) -> None:
    sign(team)
    team.workspace.journal.append([Write(actor, SIGN_SETTINGS, SETTINGS_ZONE, SETTINGS_PATH, LAX)])
    assert hosts(team.workspace) == []
    with Workspace.open(team.root, create=False) as again:
        assert hosts(again) == []
    (need,) = needs(team)
    rule = "decision_unsigned" if actor == "human:dana" else "decision_form"
    assert (need.kind, need.row.error) == ("forged", rule)
    sign(team)
    assert hosts(team.workspace) == []


def test_a_supervisor_who_sets_a_budget_changes_nothing_else(team: Team) -> None:
    sign(team)
    team.sign_as(EVE)
    ok(team.workspace.tools_for_human("eve"), "set_budget", scope="team", measure="cost", most=5)
    assert team.workspace.config.budgets.of("team", "")[0].most == 5
    version, _ = team.workspace.registry.settings()
    content = f"{LAX}[budgets.team]\ncost = 9\n"
    team.workspace._store.write(
        Write("human:eve", SET_BUDGET, SETTINGS_ZONE, SETTINGS_PATH, content, expected=version)
    )
    team.sign_as(None)
    assert team.workspace.config.budgets.of("team", "")[0].most == 9
    assert hosts(team.workspace) == []
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert [use.budget.most for use in model.budgets] == [9]


def test_agents_are_registered_as_before_and_settings_stay(team: Team) -> None:
    edit(team, 'allowed_hosts = ["example.org"]\n')
    sign(team)
    edit_of_others = 'unfenced_commands = "ask"\n'
    edit(team, edit_of_others)
    team.workspace.register([Agent("carol")])
    assert "carol" in team.workspace.config.agents
    assert hosts(team.workspace) == ["example.org"]
    assert team.workspace.config.unfenced_commands == "refuse"
    # The edit waits on, although the file was written anew.
    assert [need.against for need in needs(team)] == ["unfenced_commands"]


def test_a_workspace_that_is_open_again_has_the_files_settings(team: Team) -> None:
    sign(team)
    edit(team, LAX)
    team.sign_as(DANA)
    for name in ("eve", "viktor", "dana"):
        team.workspace.people.revoke("human:dana", name)
    assert hosts(team.workspace) == []
    team.sign_as(None)
    team.workspace.settings.sign(CallContext("human:dana"))
    assert hosts(team.workspace) == ["*.example.org"]
    assert needs(team) == []


def test_settings_hold_for_another_process_at_once(team: Team, tmp_path: Path) -> None:
    sign(team)
    with Workspace.open(team.root, create=False, scan=False) as other:
        edit(team, LAX)
        assert hosts(other) == []
        sign(team)
        assert hosts(other) == ["*.example.org"]


def test_a_fork_has_the_settings_that_held(team: Team, tmp_path: Path) -> None:
    edit(team, 'allowed_hosts = ["example.org"]\n')
    sign(team)
    edit(team, 'unfenced_commands = "ask"\n')
    journal = team.workspace.journal
    journal.append([Write("human:dana", SIGN_SETTINGS, SETTINGS_ZONE, SETTINGS_PATH, LAX)])
    Workspace.fork(journal, journal.last_seq(), tmp_path / "fork")
    with Workspace.open(tmp_path / "fork", create=False) as fork:
        assert not fork.people.current().is_closed
        assert hosts(fork) == ["example.org"]
        assert fork.config.unfenced_commands == "refuse"
        assert "allowed_hosts" in (tmp_path / "fork/.watchroom/config.toml").read_text()
        assert fork.verify() == []


def test_a_model_that_was_kept_knows_what_holds(team: Team) -> None:
    sign(team)
    journal = team.workspace.journal
    fold = Fold(journal.content, journal.row)
    fold.apply(journal.rows(0))
    edit(team, LAX)
    again = Fold.load(journal.content, journal.row, json.loads(json.dumps(fold.dump())))
    again.apply(journal.rows(again.seq))
    assert [need.row.error for need in again.model().needs] == ["settings_unsigned"]
