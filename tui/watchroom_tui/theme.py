"""The two themes: shared tokens for every screen's stylesheet."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = "watchroom-dark"
LIGHT: Final = "watchroom-light"

_DARK_AGENTS: Final = [
    *("#7cb7ff", "#7fd99a", "#f2c14e", "#ff9e80", "#c9a0ff", "#5fd7d7"),
    *("#f59ac8", "#b7d36b", "#9fb4ff", "#e3a869", "#6fe0b5", "#dba6a6"),
]
_LIGHT_AGENTS: Final = [
    *("#1a5fb4", "#156530", "#8a5a00", "#a53a16", "#7a35c2", "#0a6475"),
    *("#b0246f", "#4d6617", "#3f51b5", "#8b5a2b", "#0b644d", "#8c3b3b"),
]


def _variables(agents: list[str], **more: str) -> dict[str, str]:
    named = {f"agent-{number}": colour for number, colour in enumerate(agents)}
    return {**named, **{name.replace("_", "-"): value for name, value in more.items()}}


THEMES: Final = (
    Theme(
        name=DARK,
        primary="#7cb7ff",
        secondary="#5fd7d7",
        accent="#f2c14e",
        foreground="#d7dae0",
        background="#14161b",
        surface="#14161b",
        panel="#1d2027",
        success="#7fd99a",
        warning="#f2c14e",
        error="#ff7b72",
        dark=True,
        variables=_variables(
            _DARK_AGENTS,
            dim="#979daa",
            line="#343944",
            cursor="#2a3040",
            cursor_idle="#262b36",
            added="#7fd99a",
            removed="#ff7b72",
            added_back="#16301f",
            removed_back="#3a1c1c",
            added_word_back="#245c38",
            removed_word_back="#5c2323",
            missing_back="#191b21",
        ),
    ),
    Theme(
        name=LIGHT,
        primary="#1a5fb4",
        secondary="#0a6475",
        accent="#8a5a00",
        foreground="#24292f",
        background="#fbfbfa",
        surface="#fbfbfa",
        panel="#eeeeec",
        success="#156530",
        warning="#8a5a00",
        error="#b3261e",
        dark=False,
        variables=_variables(
            _LIGHT_AGENTS,
            dim="#575d66",
            line="#c8cbd0",
            cursor="#d6e4f7",
            cursor_idle="#dfe3e8",
            added="#156530",
            removed="#b3261e",
            added_back="#dff3e4",
            removed_back="#fbe3e1",
            added_word_back="#bfe8cb",
            removed_word_back="#f8cecb",
            missing_back="#f1f1ef",
        ),
    ),
)
