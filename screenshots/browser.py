"""Take the picture of the dashboard in a browser: ``python screenshots/browser.py``. Needs Chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright
from watchroom import Workspace
from watchroom.agents.simulation import Simulation, roster

PICTURE = Path(__file__).parent / "pictures" / "browser.png"
AT_WORK = 40.0
"""Seconds that the team works before the picture is taken."""
PORT = "8643"


def main() -> int:
    team = roster(6)
    with TemporaryDirectory(prefix="calculator-") as folder:
        root = os.path.join(folder, "calculator")
        with Workspace.open(root, team) as workspace, Simulation(workspace, team, seed=7, speed=1.5):
            command = [sys.executable, "-m", "watchroom_cli.main", "web", root, "--port", PORT, "--view"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
                try:
                    line = served.stdout.readline() if served.stdout else ""
                    found = re.search(r"http://\S+", line)
                    if found is None:
                        raise RuntimeError(line)
                    time.sleep(AT_WORK)
                    _take(found[0])
                finally:
                    served.terminate()
    print(f"{PICTURE.name}  {PICTURE.stat().st_size // 1000} KB")
    return 0


def _take(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(url)
        page.locator("textarea").first.focus()
        page.wait_for_timeout(4000)
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
