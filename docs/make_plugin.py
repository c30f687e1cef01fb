"""Writes the generated files of the plugin for Claude Code and Codex: ``python docs/make_plugin.py``."""

from __future__ import annotations

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


if __name__ == "__main__":
    for path, text in list_files():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
