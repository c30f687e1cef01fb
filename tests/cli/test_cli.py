"""Every command as it is typed: what it prints, what it does, and with which status it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom.model import timestamp
from watchroom.texts import catalogue
from watchroom.toolbox.definitions import TOOLS
from watchroom_tui.actions import keys_page
from watchroom_tui.cli import LANGUAGE_VARIABLE, OK, REFUSED, USAGE, main
from watchroom_tui.commands import COMMANDS
from watchroom_tui.wording import wording

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LANGUAGE_VARIABLE, raising=False)


@pytest.fixture
def team(root: Path, workspace: Workspace) -> str:
    """A workspace that nobody has open, with a conflict, a handoff, a denial and private files."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    write(alice, "one", 0)
    write(alice, "two", 1)
    refused(bob, "collab_write", filepath="plan.md", content="late", message="m", expected_version=1)
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    ok(bob, "save_to_my_workspace", filename="notes/a.md", content="mine", message="kept")
    refused(bob, "save_to_my_workspace", filename="../x", content="")
    workspace.close()
    return str(root)


def write(toolbox: Toolbox, text: str, expected: int) -> None:
    ok(toolbox, "collab_write", filepath="plan.md", content=text, message="m", expected_version=expected)


def run(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command."""
    capsys.readouterr()
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def printed(capsys: Captured, *arguments: str) -> str:
    """The output of a command that must succeed, and complain of nothing."""
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (OK, "")
    return out


def printed_json(capsys: Captured, *arguments: str) -> Any:
    return json.loads(printed(capsys, *arguments))


def printed_rows(capsys: Captured, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(capsys, *arguments).splitlines()]


def refusal(capsys: Captured, *arguments: str) -> str:
    """What standard error says of a command that must be refused."""
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (REFUSED, "")
    return err


def misuse(capsys: Captured, *arguments: str) -> str:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (USAGE, "")
    return err


def as_typed(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "watchroom_tui.cli", *arguments]


def spawned(
    *arguments: str, given: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        as_typed(*arguments),
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        timeout=60,
        check=False,
    )


# -- usage


def test_without_a_command_or_with_an_unknown_one_the_usage_is_told(capsys: Captured) -> None:
    assert "usage: watchroom" in misuse(capsys)
    assert "usage: watchroom" in misuse(capsys, "nonsense")


def test_help_names_every_command(capsys: Captured) -> None:
    out = printed(capsys, "--help")
    for command in COMMANDS:
        assert command.name in out
        assert wording("en")(f"cli.{command.name}.help") in " ".join(out.split())


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_of_its_own(capsys: Captured, command: str) -> None:
    assert f"usage: watchroom {command}" in printed(capsys, command, "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "{}", "alice", "collab_list"),
        ("prompt", "{}", "alice"),
        ("log", "{}"),
        ("show", "{}", "agents"),
        ("verify", "{}"),
        ("export", "{}", "{}-out"),
        ("open", "{}"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_is_no_workspace_is_refused_and_left_alone(
    capsys: Captured, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    message = refusal(capsys, *(each.format(empty) for each in arguments))
    assert f"'{empty}' is not a workspace." in message
    assert "watchroom init DIR" in message
    assert list(tmp_path.rglob("*")) == [empty]


# -- init


def test_init_makes_a_workspace_with_its_agents(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "new"
    out = printed(
        capsys, "init", str(root), "--agent", "boss:top", "--agent", "amy:mid:boss", "--agent", "bo"
    )
    assert out.splitlines() == ["boss\ttop\t-", "amy\tmid\tboss", "bo\tbottom\t-"]
    with Workspace.open(root, create=False) as workspace:
        assert [agent.id for agent in workspace.config.agents.values()] == ["boss", "amy", "bo"]
    assert (root / "agents/amy").is_dir()


def test_init_again_adds_agents_and_keeps_those_that_are_there(capsys: Captured, team: str) -> None:
    assert printed(capsys, "init", team, "--agent", "dora").splitlines()[-1] == "dora\tbottom\t-"
    assert len(printed_json(capsys, "show", team, "agents", "--json")) == 4


@pytest.mark.parametrize("given", ["Bad Name", "a_to_b", "../up", ""])
def test_init_refuses_ids_that_are_none_with_the_rule(capsys: Captured, tmp_path: Path, given: str) -> None:
    assert "agent id" in refusal(capsys, "init", str(tmp_path / "new"), "--agent", given)


def test_init_refuses_an_unknown_layer_and_an_unknown_supervisor(capsys: Captured, tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    message = misuse(capsys, "init", root, "--agent", "amy:middle")
    assert "top, mid, bottom" in message
    assert not os.path.exists(root)
    assert "supervisor" in refusal(capsys, "init", root, "--agent", "amy:mid:nobody")


def test_init_in_chinese_makes_a_workspace_whose_tools_speak_it(capsys: Captured, tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    printed(capsys, "init", root, "--agent", "amy", "--language", "zh")
    status, out, _ = run(capsys, "call", root, "amy", "collab_read", '{"filepath": "none.md"}')
    assert status == REFUSED
    zh = catalogue("zh")("error.file_not_found.suggestion")
    assert json.loads(out)["suggestion"] == zh


# -- call


def test_call_prints_the_result_and_ends_with_0(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filename": "x.md", "content": "héllo 世界"})
    result = printed_json(capsys, "call", team, "alice", "save_to_my_workspace", arguments)
    assert result["success"] is True
    assert Path(team, "agents/alice/x.md").read_text(encoding="utf-8") == "héllo 世界"


def test_call_without_arguments_passes_none(capsys: Captured, team: str) -> None:
    assert printed_json(capsys, "call", team, "alice", "collab_list")["count"] == 1


def test_call_reads_its_arguments_from_standard_input(
    capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"filepath": "plan.md"}'))
    assert printed_json(capsys, "call", team, "bob", "collab_read", "-")["content"] == "two"


def test_call_reads_a_long_text_from_a_real_pipe(team: str) -> None:
    text = "字" * 100_000
    given = json.dumps({"filename": "long.md", "content": text}, ensure_ascii=False)
    done = spawned("call", team, "alice", "save_to_my_workspace", "-", given=given)
    assert (done.returncode, done.stderr) == (OK, "")
    assert Path(team, "agents/alice/long.md").read_text(encoding="utf-8") == text


def test_a_refused_call_prints_its_result_and_ends_with_1(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filepath": "plan.md", "content": "later", "message": "m", "expected_version": 1})
    status, out, err = run(capsys, "call", team, "bob", "collab_write", arguments)
    result = json.loads(out)
    assert (status, err) == (REFUSED, "")
    assert (result["success"], result["is_conflict"], result["current_content"]) == (False, True, "two")


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("collab_read", "{not json", "invalid_arguments"),
        ("collab_read", "[]", "invalid_arguments"),
        ("collab_read", "{}", "invalid_arguments"),
        ("no_such_tool", "{}", "unknown_tool"),
        ("collab_read", '{"filepath": "../../etc/passwd"}', "invalid_path"),
    ],
)
def test_bad_calls_are_refused_as_an_agent_is_told(
    capsys: Captured, team: str, tool: str, arguments: str, error: str
) -> None:
    status, out, _ = run(capsys, "call", team, "bob", tool, arguments)
    result = json.loads(out)
    assert (status, result["success"], result["error"]) == (REFUSED, False, error)
    assert result["suggestion"]


def test_call_for_an_unknown_agent_names_those_that_are_known(capsys: Captured, team: str) -> None:
    message = refusal(capsys, "call", team, "mallory", "collab_list")
    assert "There is no agent 'mallory' here." in message
    assert "alice, bob, charlie" in message


# -- tools and prompt


@pytest.mark.parametrize("form", ["plain", "openai", "anthropic", "mcp"])
def test_tools_prints_every_tool_in_each_format(capsys: Captured, form: str) -> None:
    definitions = printed_json(capsys, "tools", "--format", form)
    names = [each.get("name") or each["function"]["name"] for each in definitions]
    assert names == list(TOOLS)


def test_tools_takes_a_choice_of_toolsets_and_a_language(capsys: Captured) -> None:
    definitions = printed_json(capsys, "tools", "--toolsets", "private,handoff", "--language", "zh")
    names = {each["name"] for each in definitions}
    assert names == {tool.name for tool in TOOLS.values() if tool.toolset in ("private", "handoff")}
    assert definitions != printed_json(capsys, "tools", "--toolsets", "private,handoff")


def test_an_unknown_format_is_wrong_usage(capsys: Captured) -> None:
    assert "--format" in misuse(capsys, "tools", "--format", "yaml")


def test_an_unknown_toolset_is_wrong_usage_and_not_an_empty_list(capsys: Captured) -> None:
    assert "colab" in misuse(capsys, "tools", "--toolsets", "colab")


def test_prompt_names_the_agent_its_team_and_its_tools(capsys: Captured, team: str) -> None:
    prompt = printed(capsys, "prompt", team, "alice")
    for word in ("alice", "bob", "charlie", *TOOLS):
        assert word in prompt
    assert "mallory" in refusal(capsys, "prompt", team, "mallory")


# -- log


def test_log_prints_rows_oldest_first_as_lines_or_as_json(capsys: Captured, team: str) -> None:
    rows = printed_rows(capsys, "log", team, "--json")
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    lines = printed(capsys, "log", team).splitlines()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.startswith(row["time"])
        assert row["actor"] in line
    assert any(wording("en")("row.conflict", base=1, current=2) in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--agent", "bob"), ["collab_write", "save_to_my_workspace", "save_to_my_workspace"]),
        (("--zone", "handoff"), ["handoff_file"]),
        (("--path", "lan.m"), ["collab_write"] * 3),
        (("--tool", "handoff_file"), ["handoff_file"]),
        (("--outcome", "denied"), ["save_to_my_workspace"]),
        (("--agent", "bob", "--outcome", "conflict"), ["collab_write"]),
        (("--limit", "1"), ["save_to_my_workspace"]),
        (("--since", "2200-01-01T00:00:00Z"), []),
        (("--since", "2000-01-01", "--zone", "handoff"), ["handoff_file"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_log_filters(capsys: Captured, team: str, arguments: tuple[str, ...], expected: list[str]) -> None:
    assert [row["tool"] for row in printed_rows(capsys, "log", team, "--json", *arguments)] == expected


def test_log_with_a_time_that_is_none_or_an_outcome_that_is_none_is_wrong_usage(
    capsys: Captured, team: str
) -> None:
    assert "'yesterday'" in misuse(capsys, "log", team, "--since", "yesterday")
    assert "--outcome" in misuse(capsys, "log", team, "--outcome", "bad")


def test_log_shows_what_agents_wrote_without_the_power_to_act(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filename": "x.md", "content": "", "message": "a\x1b[31mb\x9bc\u202ed\ne"})
    printed(capsys, "call", team, "alice", "save_to_my_workspace", arguments)
    line = printed(capsys, "log", team, "--limit", "1").removesuffix("\n")
    assert line.isprintable()
    assert "␛[31mb" in line


@contextmanager
def following(*arguments: str) -> Iterator[Iterator[str]]:
    """The lines of a command that does not end, as they come."""
    with subprocess.Popen(
        as_typed(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout.readline, "")
        finally:
            process.kill()


def test_log_follow_goes_on_with_the_rows_of_other_processes_that_pass_its_filter(
    capsys: Captured, team: str
) -> None:
    with following("log", team, "--follow", "--json", "--agent", "alice", "--limit", "1") as lines:
        assert json.loads(next(lines))["tool"] == "handoff_file"
        for agent, name in (("bob", "his.md"), ("alice", "hers.md")):
            arguments = json.dumps({"filename": name, "content": "x"})
            printed(capsys, "call", team, agent, "save_to_my_workspace", arguments)
        assert json.loads(next(lines))["path"] == "alice/hers.md"


def test_a_reader_that_has_seen_enough_ends_log_quietly(team: str) -> None:
    with Workspace.open(team, scan=False) as workspace:
        alice = workspace.tools("alice")
        for n in range(300):
            ok(alice, "save_to_my_workspace", filename=f"{n % 3}.md", content="x", message="m" * 500)
    with subprocess.Popen(
        as_typed("log", team, "--json", "--limit", "1000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == OK


# -- show


def test_show_agents(capsys: Captured, team: str) -> None:
    agents = printed_json(capsys, "show", team, "agents", "--json")
    assert [each["agent"] for each in agents] == ["alice", "bob", "charlie"]
    bob = agents[1]
    assert (bob["rows"], bob["refused"], bob["status"], bob["last_path"]) == (3, 2, "error", "../x")
    assert agents[2]["rows"] == 0
    assert len(printed(capsys, "show", team, "agents").splitlines()) == 3


def test_show_needs(capsys: Captured, team: str) -> None:
    needs = printed_json(capsys, "show", team, "needs", "--json")
    assert [(each["kind"], each["path"]) for each in needs] == [
        ("conflict", "plan.md"),
        ("handoff", "alice_to_bob/raw.md"),
    ]
    assert needs[0]["what"] == "bob ↔ alice"
    assert "bob ↔ alice" in printed(capsys, "show", team, "needs")


def test_show_handoffs(capsys: Captured, team: str) -> None:
    (handoff,) = printed_json(capsys, "show", team, "handoffs", "--json")
    assert (handoff["from"], handoff["to"], handoff["file"]) == ("alice", "bob", "raw.md")
    assert (handoff["message"], handoff["read"], handoff["acknowledged"]) == ("for you", False, False)
    printed(capsys, "call", team, "bob", "acknowledge_handoff", '{"from_agent":"alice","filename":"raw.md"}')
    (handoff,) = printed_json(capsys, "show", team, "handoffs", "--json")
    assert handoff["acknowledged"] is True


def test_show_files(capsys: Captured, team: str) -> None:
    (file,) = printed_json(capsys, "show", team, "files", "--json")
    assert (file["path"], file["version"], file["author"], file["refused"]) == ("plan.md", 2, "alice", 1)


def row_of(capsys: Captured, team: str, tool: str, nth: int = 0) -> dict[str, Any]:
    return printed_rows(capsys, "log", team, "--json", "--tool", tool)[nth]


def test_show_at_an_earlier_row_or_time_shows_that_moment(capsys: Captured, team: str) -> None:
    first = row_of(capsys, team, "collab_write")
    (file,) = printed_json(capsys, "show", team, "files", "--json", "--at", str(first["seq"]))
    assert (file["version"], file["refused"]) == (1, 0)
    assert printed_json(capsys, "show", team, "needs", "--json", "--at", str(first["seq"])) == []
    assert printed_json(capsys, "show", team, "agents", "--json", "--at", "1999-12-31T00:00:00Z") == []
    (now,) = printed_json(capsys, "show", team, "files", "--json", "--at", "2999-01-01T00:00:00+00:00")
    assert now["version"] == 2


def test_a_row_that_is_not_there_yet_is_wrong_usage_which_names_the_newest(
    capsys: Captured, team: str
) -> None:
    newest = printed_rows(capsys, "log", team, "--json")[-1]["seq"]
    message = misuse(capsys, "show", team, "files", "--at", "999999")
    assert "999999" in message
    assert str(newest) in message


def test_show_of_an_unknown_view_or_moment_is_wrong_usage(capsys: Captured, team: str) -> None:
    assert "agents" in misuse(capsys, "show", team, "everything")
    for given in ("soon", "-3", "1.5"):
        assert given in misuse(capsys, "show", team, "files", f"--at={given}")


def test_a_digit_that_is_no_number_is_wrong_usage(capsys: Captured, team: str) -> None:
    assert "²" in misuse(capsys, "show", team, "files", "--at", "²")


def test_a_time_too_far_off_to_be_counted_is_no_crash(capsys: Captured, team: str) -> None:
    for given in ("2999-01-01T00:00:00Z", "0001-01-01T00:00:00"):
        status, _, _ = run(capsys, "log", team, "--since", given)
        assert status in (OK, USAGE)


# -- verify


def test_verify_of_what_agrees_says_so_and_ends_with_0(capsys: Captured, team: str) -> None:
    status, out, _ = run(capsys, "verify", team)
    assert status == OK
    assert out.startswith("clean: ")
    status, out, _ = run(capsys, "verify", team, "--json")
    found = json.loads(out)
    assert (status, found["clean"], found["problems"]) == (OK, True, [])


def test_verify_of_what_differs_names_it_changes_nothing_and_ends_with_1(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_text("by hand", encoding="utf-8")
    rows = len(printed_rows(capsys, "log", team, "--json"))
    status, out, err = run(capsys, "verify", team)
    assert status == REFUSED
    assert out.splitlines() == ["file\tcollab\tplan.md\tdiffers"]
    assert f"watchroom verify {team} --repair" in err
    status, out, _ = run(capsys, "verify", team, "--json")
    assert (status, json.loads(out)["clean"], len(json.loads(out)["problems"])) == (REFUSED, False, 1)
    assert file.read_text(encoding="utf-8") == "by hand"
    assert len(printed_rows(capsys, "log", team, "--json")) == rows


def test_verify_repair_lays_the_file_out_again_and_keeps_what_it_held(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_text("by hand", encoding="utf-8")
    status, out, _ = run(capsys, "verify", team, "--repair")
    assert status == OK
    assert out.startswith("clean: ")
    assert file.read_text(encoding="utf-8") == "two"
    kept = row_of(capsys, team, "outside_edit")
    with Workspace.open(team, scan=False) as workspace:
        assert workspace.journal.content(kept["seq"]) == "by hand"


def test_verify_repair_leaves_what_cannot_be_kept_and_ends_with_1(capsys: Captured, team: str) -> None:
    file = Path(team, "collaborative/current/plan.md")
    file.write_bytes(b"\xff\xfe\0")
    status, _, err = run(capsys, "verify", team, "--repair")
    assert status == REFUSED
    assert "could not be mended" in err
    assert file.read_bytes() == b"\xff\xfe\0"


# -- export


def exported(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def test_export_lays_out_the_files_as_of_a_row(capsys: Captured, tmp_path: Path, team: str) -> None:
    first = row_of(capsys, team, "collab_write")
    out = tmp_path / "out"
    text = printed(capsys, "export", team, str(out), "--at", str(first["seq"]))
    assert f"row {first['seq']}" in text
    files = exported(out)
    assert files["collaborative/current/plan.md"] == "one"
    assert not any("raw.md" in name for name in files)


def test_export_lays_out_the_files_as_of_a_time_and_as_of_now(
    capsys: Captured, tmp_path: Path, root: Path, team: str
) -> None:
    with Workspace.open(team, scan=False) as workspace:
        last = workspace.journal.rows(workspace.journal.last_seq() - 1)[0]
        while time.time_ns() < last.time + 2_000_000:
            pass
        moment = timestamp(time.time_ns())
        while time.time_ns() < last.time + 6_000_000:
            pass
        ok(workspace.tools("alice"), "collab_write", filepath="plan.md", content="three", message="m")
    printed(capsys, "export", team, str(tmp_path / "then"), "--at", moment)
    printed(capsys, "export", team, str(tmp_path / "now"))
    assert exported(tmp_path / "then")["collaborative/current/plan.md"] == "two"
    assert exported(tmp_path / "now")["collaborative/current/plan.md"] == "three"
    assert exported(tmp_path / "now")["agents/bob/notes/a.md"] == "mine"


def test_export_into_a_folder_that_is_not_empty_is_wrong_usage(
    capsys: Captured, tmp_path: Path, team: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine", encoding="utf-8")
    assert f"{out} is not empty" in misuse(capsys, "export", team, str(out))
    assert exported(out) == {"precious": "mine"}


def test_export_onto_a_file_is_a_refusal_and_not_a_crash(capsys: Captured, tmp_path: Path, team: str) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    status, _, err = run(capsys, "export", team, str(out))
    assert status in (REFUSED, USAGE)
    assert str(out) in err
    assert out.read_text(encoding="utf-8") == "mine"


# -- keys and demo


def test_keys_prints_the_page_of_keys(capsys: Captured) -> None:
    assert printed(capsys, "keys") == keys_page(wording("en")) + "\n"
    assert printed(capsys, "keys", "--language", "zh") == keys_page(wording("zh")) + "\n"


def test_demo_headless_ends_with_a_summary_whose_verdict_is_clean(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    done = spawned("demo", str(root), "--headless", "--for", "1", "--speed", "0", "--agents", "4")
    assert (done.returncode, done.stderr) == (OK, "")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["verify"] == "clean"
    assert summary["calls"] > 50
    assert set(summary) >= {"rows", "outcomes", "conflicts", "recoveries", "handoffs_sent"}
    with Workspace.open(root, create=False) as workspace:
        assert workspace.journal.last_seq() == sum(summary["rows"].values())
        assert len(workspace.config.agents) == 4
        assert workspace.verify() == []


def test_demo_needs_three_agents(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "demo"
    assert "3 or more" in misuse(capsys, "demo", str(root), "--headless", "--for", "0", "--agents", "2")
    assert not root.exists()


# -- languages


def test_the_language_variable_turns_help_refusals_and_words_chinese(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, team: str
) -> None:
    monkeypatch.setenv(LANGUAGE_VARIABLE, "zh")
    words = wording("zh")
    assert words("cli.description") in printed(capsys, "--help")
    assert catalogue("zh")("error.workspace_not_found.suggestion") in refusal(capsys, "log", str(tmp_path))
    assert words("cli.moment.wrong", given="soon") in misuse(capsys, "show", team, "files", "--at", "soon")
    assert words("need.kind.conflict") == "冲突"
    assert words("row.conflict", base=1, current=2) in printed(capsys, "log", team)
    assert printed(capsys, "keys") == keys_page(words) + "\n"


def test_an_unknown_language_in_the_variable_means_english(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LANGUAGE_VARIABLE, "xx")
    assert wording("en")("cli.description") in printed(capsys, "--help")


def test_output_that_knows_only_ascii_is_no_crash(team: str) -> None:
    done = spawned("log", team, WATCHROOM_LANGUAGE="zh", PYTHONUTF8="0", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == OK, done.stderr
    assert "plan.md" in done.stdout
