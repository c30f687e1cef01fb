"""Writes the generated files of the plugin for Claude Code and Codex: ``python docs/make_plugin.py``.

With ``--check``, nothing is written, and the exit status is 1 if a file is not up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from watchroom import __version__
from watchroom.agents.clients.plugin import build_marketplace, build_plugin
from watchroom.texts import LANGUAGES, catalogue

ROOT: Final = Path(__file__).parents[1]
MARKETPLACE: Final = Path(".claude-plugin/marketplace.json")
FOLDER: Final = Path("tui/watchroom_cli/marketplace")
"""The marketplace of the package. The marketplace of the repository has the same plugin."""


def list_files() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each generated file, from the root of the repository."""
    yield MARKETPLACE, build_marketplace(f"./{FOLDER}/watchroom")
    yield FOLDER / MARKETPLACE, build_marketplace("./watchroom")
    texts = [(language, catalogue(language)) for language in LANGUAGES]
    for name, text in build_plugin(__version__, texts).items():
        yield FOLDER / "watchroom" / name, text


def main(arguments: list[str]) -> int:
    """Write or check the files. Return the exit status."""
    for path, text in list_files():
        file = ROOT / path
        if "--check" in arguments:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                print(f"{path} is not up to date: run python docs/make_plugin.py")
                return 1
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
