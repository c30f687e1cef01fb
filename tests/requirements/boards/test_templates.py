"""The templates of the boards (BOARDS-3.1): what a reading returns where nobody wrote yet."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token
from watchroom.features.config.rows import Agent, Config
from watchroom.texts import LANGUAGES, Language
from watchroom_whiteboards.board_parser import parse_board
from watchroom_whiteboards.boards import Board
from watchroom_whiteboards.markdown import parser
from watchroom_whiteboards.outline import headings
from watchroom_whiteboards.templates import render_template
from watchroom_whiteboards.vocabulary import HEADINGS

TEAM = Config().with_agents(
    [
        Agent("ada", "lead", "top"),
        Agent("eve", "critic", "top"),
        Agent("pm1", "pm", "mid", "ada"),
        Agent("bob", "tester", "bottom", "pm1"),
        Agent("cal", "", "bottom", "pm1"),
    ]
)
BOARDS = [
    Board("global"),
    Board("top"),
    Board("mid", "pm"),
    Board("bottom", "bob"),
    Board("bottom", "nobody"),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("config", [Config(), TEAM], ids=["alone", "team"])
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.path)
def test_an_untouched_template_says_nothing_and_has_no_problem(
    board: Board, config: Config, language: Language
) -> None:
    text = render_template(board, config, language)
    assert not any(parse_board(text))
    assert "{timestamp}" in text
    assert text.endswith("\n")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("board", "sections"),
    [
        (
            Board("global"),
            ["overview", "goals", "decisions", "milestones", "team", "risks", "update_log"],
        ),
        (Board("top"), ["basics", "tasks", "negotiations", "knowledge", "execution_log"]),
    ],
)
def test_a_template_has_the_sections_of_the_specification(
    board: Board, sections: list[str], language: Language
) -> None:
    found = headings(render_template(board, TEAM, language).encode())
    by_kind = {str(kind): titles for kind, titles in HEADINGS.items()}
    assert [each.title for each in found if each.level == 2] == [by_kind[kind][language] for kind in sections]


def test_the_global_board_lists_the_team_by_layer() -> None:
    english = render_template(Board("global"), TEAM, "en")
    assert (
        "### Top layer (2)\n- ada: lead\n- eve: critic\n\n### Mid layer (1)\n- pm1: pm\n\n"
        "### Bottom layer (2)\n- bob (tester): responsible for {task}\n- cal: responsible for {task}\n"
    ) in english
    assert "### 顶层 (2)\n- ada: lead\n- eve: critic\n\n### 中层 (1)\n- pm1: pm\n" in render_template(
        Board("global"), TEAM, "zh"
    )


def test_an_empty_layer_has_a_dash() -> None:
    alone = Config().with_agents([Agent("ada", "", "top")])
    assert "### 顶层 (1)\n- ada: {role}\n\n### 中层 (0)\n- —\n" in render_template(
        Board("global"), alone, "zh"
    )


@pytest.mark.parametrize(
    ("board", "language", "beginning"),
    [
        (
            Board("mid", "pm"),
            "zh",
            (
                "# 中层 - pm\n\n## 基本信息\n- **Agent ID**: pm1\n- **角色**: pm\n- **职责**: {responsibilities}\n"
                "- **上级**: ada\n- **下级**: bob、cal\n"
            ),
        ),
        (
            Board("bottom", "bob"),
            "en",
            (
                "# Bottom layer - tester\n\n## Basic information\n- **Agent ID**: bob\n- **Role**: tester\n"
                "- **Responsibilities**: {responsibilities}\n- **Supervisor**: pm1\n- **Subordinates**: none\n"
            ),
        ),
        (
            Board("top"),
            "en",
            (
                "# Top layer - shared board\n\n## Basic information\n- **Agent ID**: ada, eve\n- **Role**: lead, critic\n"
                "- **Responsibilities**: {responsibilities}\n- **Supervisor**: none\n- **Subordinates**: pm1\n"
            ),
        ),
        (
            Board("bottom", "nobody"),
            "en",
            (
                "# Bottom layer - nobody\n\n## Basic information\n- **Agent ID**: nobody\n- **Role**: {role}\n"
                "- **Responsibilities**: {responsibilities}\n- **Supervisor**: {supervisor}\n"
                "- **Subordinates**: {subordinates}\n"
            ),
        ),
        (
            Board("mid", "qa"),
            "zh",
            (
                "# 中层 - qa\n\n## 基本信息\n- **Agent ID**: {id}\n- **角色**: qa\n- **职责**: {responsibilities}\n"
                "- **上级**: {supervisor}\n- **下级**: {subordinates}\n"
            ),
        ),
    ],
)
def test_the_board_of_a_layer_says_whose_it_is(board: Board, language: Language, beginning: str) -> None:
    assert render_template(board, TEAM, language).startswith(beginning)


def test_a_placeholder_that_an_agent_left_is_not_filled_twice() -> None:
    config = Config().with_agents([Agent("bob", "{supervisor} {id}", "bottom")])
    assert "- **Role**: {supervisor} {id}\n" in render_template(Board("bottom", "bob"), config, "en")


def shape(tokens: list[Token]) -> list[tuple[str, int]]:
    return [(token.type, token.level) for token in tokens]


def reads(token: Token) -> str:
    return "".join("\n" if "break" in part.type else part.content for part in token.children or [])


def visible(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cs", "Zs", "Zl", "Zp"))


@given(role=st.text(max_size=40) | st.text("*_`[]()<>#&;!~\\|{}-+=\n\r 1.ab/:\"'", max_size=30))
def test_a_role_of_any_characters_is_plain_text_of_one_line(role: str) -> None:
    def board(role: str) -> list[Token]:
        agents = [Agent("bob", role, "bottom"), Agent("ada", role, "top")]
        config = Config().with_agents(agents)
        return parser().parse(
            render_template(Board("bottom", "bob"), config, "en")
            + render_template(Board("global"), config, "en")
        )

    tokens, ordinary = board(role), board("tester")
    assert shape(tokens) == shape(ordinary)
    (line,) = (reads(token) for token in tokens if reads(token).startswith("Role: "))
    assert visible(line.removeprefix("Role: ")) == (visible(role) or "{role}")
    inlines = [token for token in tokens if token.type == "inline"]
    marks = {part.type for token in inlines for part in token.children or []}
    assert marks <= {"text", "strong_open", "strong_close"}
