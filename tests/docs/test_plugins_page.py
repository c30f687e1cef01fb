"""The page on plug-ins shows the examples as they are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from plugins.installing import EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs/plugins.md").read_text("utf-8")
KINDS = sorted(each.name for each in EXAMPLES.iterdir())
MOST_LINES = 60


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_shows_the_module_of_the_example(kind: str) -> None:
    (shown,) = re.findall(rf"```python {kind}\n(.*?)```", PAGE, flags=re.DOTALL)
    (module,) = (EXAMPLES / kind).glob("*/__init__.py")
    code = module.read_text("utf-8")
    assert code.partition('"""\n\n')[2] == shown
    assert len(code.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_the_entry_point_of_the_example(kind: str) -> None:
    project = tomllib.loads((EXAMPLES / kind / "pyproject.toml").read_text("utf-8"))["project"]
    (row,) = re.findall(
        rf"^\| {kind} \| `([\w.]+)` .*\(\.\./examples/plugins/{kind}\)", PAGE, flags=re.MULTILINE
    )
    assert row in project["entry-points"]
