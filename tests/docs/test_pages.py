"""The pages at the top, and those in docs/: links lead somewhere, commands, keys and formats exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import watchroom
from watchroom.features.overview.fold import FORMAT as FOLD_FORMAT
from watchroom.features.people import decisions
from watchroom.history.seal import range_proof, tree
from watchroom.history.search.database import FORMAT as SEARCH_FORMAT
from watchroom.kernel.journal.sqlite.schema import STEPS
from watchroom.platform.signing import key_file
from watchroom_cli.commands import COMMANDS
from watchroom_tui.keys.actions import ACTIONS

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "README.zh.md")
NO_KEYS = {
    "docs/policy.md": {"*", ".", ";", "|", "&", "~", "$", "<", "^", "!", "?", "/"},
    "docs/requirements.md": {"0"},
    "docs/scenarios.md": {"n", "|", "@", "<"},
}
"""Single characters of a page that are something else than keys."""


def anchors(page: Path) -> set[str]:
    """What the headings of ``page`` are called in an address, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_continuous_integration_runs_the_two_commands_of_the_readme_as_they_stand() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    demo, tests = (line.strip() for line in lines if line.startswith("    python3 -m venv "))
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert f"demo='{demo}'" in run
    assert f'tests="{tests}"' in run


def test_every_link_of_the_documents_leads_somewhere() -> None:
    broken = []
    for page in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if re.match(r"https?://", link) or (path and page.name == "reference.md"):
                continue
            if not target.exists() or (
                anchor and page.name != "reference.md" and anchor not in anchors(target)
            ):
                broken.append((page.name, link))
    assert broken == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    shown = re.findall(
        r"(?:: |- )([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), flags=re.MULTILINE
    )
    pages = {each.relative_to(ROOT / "docs").as_posix() for each in (ROOT / "docs").rglob("*.md")}
    assert sorted(shown) == sorted(pages | {each.name for each in ROOT.glob("*.md")})


@pytest.mark.parametrize(
    "page", sorted([*PAGES, *(str(each.relative_to(ROOT)) for each in (ROOT / "docs").rglob("*.md"))])
)
def test_the_commands_and_keys_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    typed = re.findall(r"^    watchroom ([a-z-]+)", text, flags=re.MULTILINE)
    assert set(typed) <= {command.name for command in COMMANDS}
    keys = {key for action in ACTIONS for key in action.shown_keys({})}
    assert set(re.findall(r"(?<!`)`([!-_a-~])`(?!`)", text)) <= keys | NO_KEYS.get(page, set())


def test_the_changelog_names_the_formats_of_this_version() -> None:
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    migrations = sorted((ROOT / "core/watchroom/kernel/journal/postgres/migrations").glob("*.sql"))
    assert newest.startswith(watchroom.__version__)
    for stated in (
        f"schema {len(STEPS)} ",
        f"migrations 01 to {migrations[-1].name[:2]}",
        f"{FOLD_FORMAT}; {SEARCH_FORMAT}: rebuilt",
        f"`{decisions.FORMAT}`; `{range_proof.FORMAT}`; `{key_file.FORMAT}`; `{tree.FORM}`",
    ):
        assert stated in newest
