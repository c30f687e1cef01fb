"""Templates: placeholders, filters, conditions and edits."""

from __future__ import annotations

from random import Random

import pytest
from watchroom import Json
from watchroom.agents.simulation.template import Template, as_text

VALUES: dict[str, Json] = {
    "me": "ada",
    "others": ["bob", "eve"],
    "read": {"version": 3, "content": "# A\n\n## One\n\n- x\n\n## Two\n\n- y\n"},
    "files": [{"name": "a.md", "by": "ada"}, {"name": "b.md", "by": "bob"}],
    "heading": "## Two",
    "flag": True,
}
TEXTS = {
    "hello": "Hello ${me}",
    "twice": "${text.hello}, ${text.hello}",
    "one": ["x"],
    "loop": "${text.loop}",
}


def filled(value: Json) -> Json:
    return Template(VALUES, TEXTS, {"main.py": "print(f'${me}')\n"}, Random(1)).fill(value)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("${read.version}", 3),
        ("v${read.version} by ${me}", "v3 by ada"),
        ("${files.1.name}", "b.md"),
        ("${nobody.there}", ""),
        ("${text.twice}", "Hello ada, Hello ada"),
        ("${text.loop}", ""),
        ("${file.main.py}", "print(f'${me}')\n"),
        ("${files|count}", 2),
        ("${files|free:a.md}", "a.md_2"),
        ("${files|free:c.md}", "c.md"),
        (r"${read.content|match:(?m)^- (\w)}", "x"),
        ("${read.content|first}", "# A"),
        ("${read.content|body}", "## One\n\n- x\n\n## Two\n\n- y"),
        ("${read.content|after:## One}", 12),
        ("${read.content|after:@heading}", 25),
        ("${read.content|above:@heading}", [13, 17]),
        ("${read.content|end_of:- x}", 16),
        ("${read.version|plus:2}", 5),
        ({"a": ["${me}", 1], "b": {"c": "${flag}"}}, {"a": ["ada", 1], "b": {"c": True}}),
    ],
)
def test_placeholders_are_filled(template: Json, wanted: Json) -> None:
    assert filled(template) == wanted


def test_chance_is_the_generators() -> None:
    def drawn(seed: int) -> list[Json]:
        template = Template(VALUES, TEXTS, {}, Random(seed))
        return [template.fill(["${other}", "${number.1.9}", "${files|pick}"]) for _ in range(20)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert {as_text(each[0]) for each in drawn(1) if isinstance(each, list)} == {"bob", "eve"}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("${flag}", True),
        ("${nobody}", False),
        ("${read.version} == 3", True),
        ("${read.version} >= 10", False),
        ("${read.version} < 10", True),
        ("${me} != bob", True),
        ("bob in ${others}", True),
        ("## Two in ${read.content}", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    assert Template(VALUES, TEXTS, {}, Random(1)).holds(condition) is holds


EDITS: list[tuple[dict[str, Json], str]] = [
    ({"replace": "- x", "by": "- z"}, "# A\n\n## One\n\n- z\n\n## Two\n\n- y\n"),
    ({"replace": "not there", "by": "z"}, "# A\n\n## One\n\n- x\n\n## Two\n\n- y\n"),
    ({"replace": "-", "by": "*", "all": True}, "# A\n\n## One\n\n* x\n\n## Two\n\n* y\n"),
    ({"add": "- z", "under": "## One"}, "# A\n\n## One\n\n- x\n- z\n\n## Two\n\n- y\n"),
    ({"add": "- z", "under": "## One", "keep": 1}, "# A\n\n## One\n\n- z\n\n## Two\n\n- y\n"),
    ({"add": "- z"}, "# A\n\n## One\n\n- x\n\n## Two\n\n- y\n- z\n"),
    ({"add": "- z", "under": "## New"}, "# A\n\n## One\n\n- x\n\n## Two\n\n- y\n\n## New\n\n- z\n"),
]


@pytest.mark.parametrize(("edit", "wanted"), EDITS)
def test_edits_change_one_place_and_keep_the_rest(edit: dict[str, Json], wanted: str) -> None:
    assert filled({"edit": "${read.content}", **edit}) == wanted
