"""The documentation as a site: it builds without a warning, and its links and pictures have files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

pytestmark = pytest.mark.real

ROOT: Final = Path(__file__).parents[2]


def test_the_site_has_every_page_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = {page.relative_to(tmp_path / "site").as_posix() for page in tmp_path.rglob("*.html")}
    pages = [each.relative_to(ROOT / "docs") for each in (ROOT / "docs").rglob("*.md")]
    assert {page.with_suffix(".html").as_posix() for page in pages} | {"index.html"} <= built
    links = {
        (name, link)
        for name in built - {"404.html"}
        for link in re.findall(r'(?:href|src)="([^"#]+)', (tmp_path / "site" / name).read_text("utf-8"))
        if not re.match(r"[a-z]+:", link)
    }
    assert len(links) > len(built)
    assert [
        (name, link)
        for name, link in links
        if not (tmp_path / "site" / name).parent.joinpath(unquote(link)).exists()
    ] == []
    assert "screenshots/pictures/overview.png" in (tmp_path / "site/index.html").read_text("utf-8")
