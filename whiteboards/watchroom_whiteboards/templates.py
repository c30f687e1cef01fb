"""Renders the template of a board that was never written, with the names of the team.

Unknown values stay placeholders such as ``{description}``. They show the expected form.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from watchroom.features.config.rows import LAYERS, Agent, Config, Layer
from watchroom.texts import Catalogue, Language, catalogue

from watchroom_whiteboards.boards import Board

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "templates")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_MARKS: Final = re.compile(r"[\\`*\[\]<~#]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
"""Matches characters that start a mark within a line of Markdown."""


def render_template(board: Board, config: Config, language: Language) -> str:
    """Return the text of ``board`` before its first write, for the team in ``config`` and in ``language``."""
    if board.kind == "global":
        return _global(config, language)
    return _of_layer(board, board.kind, config, language)


@cache
def _file(name: str, language: Language) -> str:
    with open(os.path.join(_FOLDER, f"{name}.{language}.md"), encoding="utf-8") as file:
        return file.read()


def _texts(language: Language) -> Catalogue:
    return catalogue(language, "watchroom_whiteboards.texts")


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _global(config: Config, language: Language) -> str:
    teams = {layer: [a for a in config.agents.values() if a.layer == layer] for layer in LAYERS}
    counts = {f"{layer}Count": str(len(agents)) for layer, agents in teams.items()}
    lines = []
    for line in _file("global", language).splitlines():
        layer = next((each for each in LAYERS if f"{{{each}Agent}}" in line), None)
        if layer is None:
            lines.append(_filled(line, counts))
        else:
            lines.extend(_filled(line, _named(agent)) for agent in teams[layer])
            if not teams[layer]:
                lines.append("- —")
    return "\n".join(lines) + "\n"


def _named(agent: Agent) -> Mapping[str, str]:
    role = plain(agent.role)
    return {
        f"{agent.layer}Agent": f"{agent.id} ({role})" if role and agent.layer == "bottom" else agent.id,
        **({"role": role} if role else {}),
    }


def _of_layer(board: Board, layer: Layer, config: Config, language: Language) -> str:
    texts = _texts(language)
    owners = board.owners(config)
    ids = [agent.id for agent in owners]

    def joined(words: Iterable[str]) -> str:
        return texts("template.and").join(dict.fromkeys(word for word in words if word))

    role = board.owner if layer == "mid" else joined(plain(agent.role) for agent in owners)
    nobody = texts("template.nobody") if owners else ""
    values = {
        "layer": texts(f"template.{layer}"),
        "title": texts("template.everyone") if layer == "top" else role or board.owner,
        "agents": joined(ids) or (board.owner if layer == "bottom" else "{id}"),
        "role": role,
        "supervisor": joined(agent.supervisor for agent in owners) or nobody,
        "subordinates": joined(a.id for a in config.agents.values() if a.supervisor in ids) or nobody,
    }
    return _filled(_file("layer", language), {name: value for name, value in values.items() if value})


def plain(words: str) -> str:
    """Return ``words`` as one line of Markdown with escaped marks."""
    shown = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in words)
    return _MARKS.sub(lambda found: f"\\{found[0]}", " ".join(shown.split()))
