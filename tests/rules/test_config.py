"""What the config file may say, and who may be registered beside whom."""

from __future__ import annotations

from typing import Any

import pytest
from rules.rows import row
from watchroom.errors import ConfigInvalid, InvalidAgentId, InvalidRole, JournalDamaged
from watchroom.features.config.rows import (
    Agent,
    Config,
    add_agents,
    apply_settings_row,
    board_owner,
    dump_config,
    dump_settings,
    find_role_collision,
    find_unsigned,
    parse_config,
    parse_recorded_config,
    parse_settings,
    sort_top_down,
    with_settings,
)
from watchroom.features.people.rules import SIGN_SETTINGS
from watchroom.validation import sha256

WHOLE = """
language = "zh"
unfenced_commands = "ask"
allowed_hosts = ["example.org", "*.example.com"]
max_task_files = 1
max_task_bytes = 4611686018427387904

[agents.lead]
role = "lead"
layer = "top"

[agents.alice]
supervisor = "lead"
task = "t1"
"""


def test_what_is_written_is_read_again_and_defaults_are_left_out() -> None:
    config = parse_config(WHOLE)
    assert config.agents == {
        "lead": Agent("lead", "lead", "top"),
        "alice": Agent("alice", "", "bottom", "lead", "t1"),
    }
    assert (config.language, config.unfenced_commands) == ("zh", "ask")
    assert config.allowed_hosts == ("example.org", "*.example.com")
    assert (config.max_task_files, config.max_task_bytes) == (1, 2**62)
    assert parse_config(dump_config(config)) == config
    assert dump_config(Config()) == 'language = "en"\n\n[agents]\n'
    assert parse_config("") == Config()


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("x", ""),
        ('language = "xx"', "language = 'xx'"),
        ('confirm_decisions = ["collab_write"]', "confirm_decisions"),
        ('unfenced_commands = "allow"', "unfenced_commands = 'allow'"),
        ('allowed_hosts = "example.org"', "allowed_hosts"),
        ("allowed_hosts = [5]", "allowed_hosts: 5"),
        ('allowed_hosts = ["*"]', "allowed_hosts: '*'"),
        ("max_task_files = 0", "max_task_files = 0"),
        ("max_task_files = true", "max_task_files = True"),
        ("max_task_files = 1.5", "max_task_files = 1.5"),
        ("max_task_bytes = 4611686018427387905", "max_task_bytes = 4611686018427387905"),
        ("agents = 5", "agents"),
        ("[agents]\nalice = 5", "agents.alice"),
        ("[agents.alice]\nrole = 5", "agents.alice"),
        ('[agents.alice]\nother = "x"', "agents.alice: other"),
        ('[agents.alice]\nlayer = "high"', "agents.alice.layer = 'high'"),
        ('[agents.alice]\nsupervisor = "bob"', "agents.alice.supervisor = 'bob'"),
        ('[agents.alice]\nsupervisor = "alice"', "alice → alice"),
        (
            '[agents.a]\nsupervisor = "b"\n[agents.b]\nsupervisor = "c"\n[agents.c]\nsupervisor = "b"',
            "a → b → c → b",
        ),
        ('[agents."no id!"]\nrole = "x"', ""),
    ],
)
def test_a_wrong_entry_is_named(text: str, entry: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse_config(text)
    assert str(refused.value.values["problem"]).startswith(entry)


def test_a_recorded_config_is_read_as_it_was_written_or_not_at_all() -> None:
    text = 'language = "zh" # \ufffd'
    of_text = row(sha256=sha256(text.encode()))
    assert parse_recorded_config(of_text, text).language == "zh"
    plain = 'language = "zh"'
    assert parse_recorded_config(row(sha256=sha256(plain.encode())), plain).language == "zh"
    assert parse_recorded_config(row(), None) == Config()
    with pytest.raises(JournalDamaged):
        parse_recorded_config(of_text, None)
    with pytest.raises(JournalDamaged):
        parse_recorded_config(of_text, text + " \ufffd")


@pytest.mark.parametrize(
    ("agent", "other", "rule"),
    [
        (Agent("alice", "bob"), Agent("bob"), "role_is_agent"),
        (Agent("alice", "Bob"), Agent("bob", "tester"), "role_is_agent"),
        (Agent("alice", "bob"), Agent("bob", "bob"), None),
        (Agent("alice"), Agent("bob", "alice"), "agent_is_role"),
        (Agent("alice", "alice"), Agent("bob", "alice"), None),
        (Agent("alice", "api-team", "mid"), Agent("bob", "API Team", "mid"), "role_is_board"),
        (Agent("alice", "API  team", "mid"), Agent("bob", "api TEAM", "mid"), None),
        (Agent("alice", "api-team", "mid"), Agent("bob", "API Team", "top"), None),
        (Agent("alice", "api-team"), Agent("bob", "API Team", "mid"), None),
        (Agent("alice", "前端", "mid"), Agent("bob", "后端", "mid"), None),
        (Agent("alice", "", "mid"), Agent("bob", "", "mid"), None),
        (Agent("alice", "bob"), Agent("alice", "x"), None),
    ],
)
def test_nobody_passes_for_another(agent: Agent, other: Agent, rule: str | None) -> None:
    found = find_role_collision(agent, [Agent("carol", "painter"), other])
    assert (found and (found.agent, found.other, found.rule)) == (rule and (agent, other, rule))
    config = Config().with_agents([other])
    if rule:
        with pytest.raises(InvalidRole):
            add_agents(config, [agent])
    else:
        assert add_agents(config, [agent]).agents[agent.id] == agent


def test_the_board_of_an_agent_is_called_after_its_role_where_a_file_can_say_it() -> None:
    assert [board_owner(Agent("alice", role)) for role in ("API Team", "前端", "")] == [
        "api-team",
        "alice",
        "alice",
    ]


def test_agents_are_added_together_or_not_at_all() -> None:
    two = [Agent("alice", supervisor="bob"), Agent("bob")]
    assert [*add_agents(Config(), two).agents] == ["alice", "bob"]
    with pytest.raises(InvalidAgentId):
        add_agents(Config(), [Agent("no id!")])
    with pytest.raises(ConfigInvalid):
        add_agents(Config(), two[:1])


def test_agents_come_after_their_supervisor_those_beneath_one_together() -> None:
    agents = [
        Agent("c", supervisor="b"),
        Agent("a"),
        Agent("b", supervisor="a"),
        Agent("e", supervisor="none"),
        Agent("d", supervisor="a"),
    ]
    found = sort_top_down({agent.id: agent for agent in agents})
    assert [agent.id for agent in found] == ["a", "b", "c", "d", "e"]


SIGNED = Config(max_task_files=7, unfenced_commands="ask")


def test_settings_that_were_signed_hold_in_place_of_the_files() -> None:
    file = parse_config(WHOLE)
    assert with_settings(file, None) is file
    held = with_settings(file, SIGNED)
    assert (held.max_task_files, held.allowed_hosts) == (7, ())
    assert (held.agents, held.language) == (file.agents, "zh")
    assert find_unsigned(file, None) == ()
    assert find_unsigned(file, SIGNED) == ("allowed_hosts", "max_task_files", "max_task_bytes")
    assert find_unsigned(held, SIGNED) == ()


def test_settings_say_nothing_of_agents() -> None:
    assert parse_settings(dump_settings(SIGNED)) == SIGNED
    with pytest.raises(ConfigInvalid, match="agents"):
        parse_settings(WHOLE)


@pytest.mark.parametrize(
    ("tool", "deleted", "text", "after"),
    [
        (SIGN_SETTINGS, False, "max_task_files = 9", Config(max_task_files=9)),
        (SIGN_SETTINGS, True, None, None),
        ("other", True, None, SIGNED),
        ("other", False, "max_task_files = 9", SIGNED),
        ("set_budget", False, "max_task_files = 9\n[budgets.team]\ncost = 5", "budget"),
    ],
)
def test_what_a_row_of_the_settings_changes(tool: str, deleted: bool, text: str | None, after: Any) -> None:
    of_settings = row(tool=tool, version=2, sha256=None if deleted else "x")
    found = apply_settings_row(SIGNED, of_settings, text)
    if after == "budget":
        assert found is not None
        assert found == SIGNED._replace(budgets=found.budgets)
        assert found.budgets.has("team")
    else:
        assert found == after
    if tool != SIGN_SETTINGS:
        assert apply_settings_row(None, of_settings, text) is None
