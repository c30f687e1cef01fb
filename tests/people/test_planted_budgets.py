"""Budgets: what people answered about them holds once, whatever rows are planted."""

from __future__ import annotations

from people.conftest import DANA, EVE, Team
from people.planted import plant
from watchroom.features.budgets.rules import Budget
from watchroom.features.requests.rows import Answer, Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import BUDGET_REACHED, Json, Write

KEY = Budget("agent", "alice", "tokens", 10).key


def set_budget(team: Team, most: float) -> None:
    team.sign_as(DANA)
    team.workspace.budgets.set_budget(CallContext("human:dana"), "agent", "alice", "tokens", most)
    team.sign_as(None)


def use(team: Team, tokens: int) -> None:
    detail: dict[str, Json] = {"status": "running", "tokens": [tokens, 0], "step": 1}
    team.workspace.journal.append([Write("alice", "agent", "session", "alice/1", "{}", detail=detail)])


def answer(team: Team, request: Request, value: str) -> None:
    """Answer as people do by the tool."""
    row = team.workspace.journal.version("request", str(request.metadata["budget"]["request"]), 1)  # type: ignore[index]
    assert row is not None
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), row.seq, Answer(values=(value,)))
    if value == "raise":
        team.workspace.budgets.raise_budget(CallContext("human:eve"), request)
    team.sign_as(None)


def test_a_budget_that_is_lowered_again_holds(team: Team) -> None:
    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    answer(team, asked, "raise")
    assert team.workspace.budgets.hold_call("alice", "alice/1") is None
    set_budget(team, 10)
    assert team.workspace.budgets.hold_call("alice", "alice/1") is not None


def test_a_planted_note_takes_no_answer_back(team: Team) -> None:
    """Eve said that this is the end."""
    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    answer(team, asked, "stop")
    assert team.workspace.budgets.find_stop("alice", "alice/1")
    plant(team.root, "system", BUDGET_REACHED, "workspace", KEY, detail={"request": 1})
    assert team.workspace.budgets.find_stop("alice", "alice/1")


def test_a_question_about_a_budget_says_which_one(team: Team) -> None:
    """What people read above the options is what Watchroom asks."""
    from dataclasses import replace

    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    path = "bob/calls/budget-1"
    about = {**asked.metadata["budget"], "request": path}  # type: ignore[dict-item]
    planted = replace(asked, prompt="bob has used 5 of 5 tokens.", metadata={"budget": about})
    number = team.workspace.requests.ask(CallContext("bob"), path, planted).seq
    plant(team.root, "system", BUDGET_REACHED, "workspace", KEY, detail={"request": number})
    team.sign_as(EVE)
    team.workspace.requests.answer(CallContext("human:eve"), number, Answer(values=("raise",)))
    assert team.workspace.budgets.hold_call("alice", "alice/1") is not None


def test_another_language_in_the_file_takes_no_answer_back(team: Team) -> None:
    """The language is a setting that nobody signs."""
    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    answer(team, asked, "stop")
    assert team.workspace.budgets.find_stop("alice", "alice/1")
    file = team.root / ".watchroom/config.toml"
    file.write_text(file.read_text().replace('"en"', '"zh"'))
    team.workspace.scan()
    assert team.workspace.config.language == "zh"
    assert team.workspace.budgets.find_stop("alice", "alice/1")


def test_an_open_question_in_the_same_words_takes_no_answer_back(team: Team) -> None:
    from watchroom.features.budgets.rules import BudgetUse, budget_request
    from watchroom.texts import catalogue

    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    answer(team, asked, "stop")
    said = BudgetUse(Budget("agent", "alice", "tokens", 10), 12)
    again = budget_request(said, "alice/calls/budget-9", catalogue("zh"))
    number = team.workspace.requests.ask(CallContext("alice"), "alice/calls/budget-9", again).seq
    plant(team.root, "system", BUDGET_REACHED, "workspace", KEY, detail={"request": number})
    assert team.workspace.budgets.find_open_request(KEY) == again
    assert team.workspace.budgets.find_stop("alice", "alice/1")


def test_only_signed_settings_take_an_answer_back(team: Team) -> None:
    from watchroom.features.config.rows import SETTINGS_PATH, Config, dump_settings
    from watchroom.model import SET_BUDGET

    team.sign_as(DANA)
    team.workspace.settings.sign(CallContext("human:dana"))
    team.sign_as(None)
    set_budget(team, 10)
    use(team, 12)
    asked = team.workspace.budgets.hold_call("alice", "alice/1")
    assert asked is not None
    answer(team, asked, "stop")
    head = team.workspace.journal.head("settings", SETTINGS_PATH)
    assert head is not None
    assert head.version is not None
    detail: dict[str, Json] = {"scope": "agent", "name": "alice", "measure": "tokens", "most": None}
    for number, actor in enumerate(("human:dana", "alice"), head.version):
        plant(
            *(team.root, actor, SET_BUDGET, "settings", SETTINGS_PATH),
            content=dump_settings(Config()),
            detail=detail,
            version=number + 1,
            base=number,
        )
    assert team.workspace.budgets.find_stop("alice", "alice/1")
    set_budget(team, 5)
    set_budget(team, 10)
    assert team.workspace.budgets.find_stop("alice", "alice/1") is None
    assert team.workspace.budgets.hold_call("alice", "alice/1") is not None
