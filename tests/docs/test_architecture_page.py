"""docs/architecture.md: its pictures of the layers are the import contracts, and its folders exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("picture", "package"),
    [
        ("layers", "watchroom"),
        ("dashboard-layers", "watchroom_tui"),
        ("command-line-layers", "watchroom_cli"),
    ],
)
def test_the_picture_of_the_layers_is_the_import_contract(picture: str, package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each.get("containers") == [package])
    found = re.search(rf"```{picture}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    assert [re.split(r" {2,}", line)[0] for line in found[1].splitlines()] == layers


def test_each_folder_that_the_page_names_is_there() -> None:
    places = [ROOT / each for each in ("core/watchroom", "tui/watchroom_tui", "tui/watchroom_cli", "")]
    named = set(re.findall(r"`([a-z_]+)/`", PAGE))
    assert named
    missing = [each for each in named if not any((place / each).is_dir() for place in places)]
    assert missing == []


@pytest.mark.parametrize("package", ["watchroom", "watchroom_tui", "watchroom_cli"])
def test_no_module_imports_itself_in_a_circle(package: str) -> None:
    program = (
        f"import grimp; graph = grimp.build_graph('{package}');"
        "found = [(a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a)"
        " if a < b and graph.chain_exists(importer=b, imported=a)]; print(found)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_reference_is_what_the_docstrings_say() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make_reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
