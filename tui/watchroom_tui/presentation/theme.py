"""The two themes: shared variables for all stylesheets, for each number of terminal colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from textual.theme import Theme

DARK: Final = "watchroom-dark"
LIGHT: Final = "watchroom-light"

ColorDepth: TypeAlias = Literal["16", "256", "full"]
"""The number of colours of a terminal. Terminals of 16 colours keep their own colours and background."""

# In the order of `AgentColours`: the first three differ the most, then the first six. They were found by a
# search for the largest distance (OKLab) to each other and to the colours of versions, warnings, errors and
# texts.
_DARK_AGENTS: Final = [
    *("#e196ff", "#87a500", "#ffff69", "#00d2ff", "#6996ff", "#5affff"),
    *("#00b496", "#d2963c", "#ffa5c3", "#ffffd2", "#a5ffa5", "#e178b4"),
]
_LIGHT_AGENTS: Final = [
    *("#3c0fa5", "#a52da5", "#69005a", "#005ad2", "#691e00", "#004b87"),
    *("#693cb4", "#873c69", "#003c00", "#1e1e69", "#004b4b", "#5a4b1e"),
]
_DARK_AGENTS_OF_256: Final = [
    *("#d787ff", "#00d7ff", "#00af5f", "#d78700", "#87ffd7", "#ffafff"),
    *("#87afff", "#afaf00", "#00afaf", "#d7ff5f", "#ffffaf", "#ffaf5f"),
]
_LIGHT_AGENTS_OF_256: Final = [
    *("#5f00ff", "#870087", "#000087", "#005faf", "#0000d7", "#5f0000"),
    *("#5f00af", "#5f005f", "#af005f", "#8700d7", "#870000", "#005f5f"),
]
_DARK_AGENTS_OF_16: Final = [
    *("bright_cyan", "green", "bright_yellow", "cyan", "bright_green", "bright_magenta"),
]
_LIGHT_AGENTS_OF_16: Final = ["blue", "magenta", "black"]
_AGENTS: Final = 12


def _variables(agents: list[str], **more: str) -> dict[str, str]:
    named = {f"agent-{number}": agents[number % len(agents)] for number in range(_AGENTS)}
    return {**named, **{name.replace("_", "-"): value for name, value in more.items()}}


def _terminal_theme(
    name: str, agents: list[str], *, primary: str, accent: str, success: str, error: str, dark: bool
) -> Theme:
    """Return the theme ``name``, whose colours are the terminal's own named colours. It reverses, underlines
    or emboldens where other themes use a background (``app.tcss``)."""
    ground = "ansi_default"
    success, error = f"ansi_{success}", f"ansi_{error}"
    return Theme(
        name=name,
        ansi=True,
        primary=f"ansi_{primary}",
        secondary=f"ansi_{primary}",
        accent=f"ansi_{accent}",
        foreground=ground,
        background=ground,
        success=success,
        warning=f"ansi_{accent}",
        error=error,
        dark=dark,
        variables=_variables(
            [f"ansi_{agent}" for agent in agents],
            panel=ground,
            surface=ground,
            dim=ground,
            line="ansi_bright_black" if dark else "ansi_black",
            cursor=ground,
            cursor_idle=ground,
            added=success,
            removed=error,
            added_back=ground,
            removed_back=ground,
            added_word_back=ground,
            removed_word_back=ground,
            missing_back=ground,
            # For Textual's own widgets.
            ansi_background=ground,
            ansi_foreground=ground,
            border_blurred=ground,
            block_cursor_background=ground,
            block_cursor_text_style="reverse",
        ),
    )


THEMES: Final[Mapping[ColorDepth, tuple[Theme, Theme]]] = {
    "full": (
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
    ),
    # Chosen from the palette of all terminals with 256 colours. The palette colours nearest to the
    # colours above are less readable.
    "256": (
        Theme(
            name=DARK,
            primary="#87afff",
            secondary="#5fd7d7",
            accent="#ffd75f",
            foreground="#e4e4e4",
            background="#121212",
            surface="#121212",
            panel="#1c1c1c",
            success="#87d787",
            warning="#ffd75f",
            error="#ff8787",
            dark=True,
            variables=_variables(
                _DARK_AGENTS_OF_256,
                dim="#a8a8a8",
                line="#3a3a3a",
                cursor="#303030",
                cursor_idle="#262626",
                added="#87d787",
                removed="#ff8787",
                added_back="#262626",
                removed_back="#262626",
                added_word_back="#005f00",
                removed_word_back="#5f0000",
                missing_back="#1c1c1c",
            ),
        ),
        Theme(
            name=LIGHT,
            primary="#005faf",
            secondary="#005f5f",
            accent="#5f5f00",
            foreground="#262626",
            background="#ffffff",
            surface="#ffffff",
            panel="#eeeeee",
            success="#005f00",
            warning="#5f5f00",
            error="#af0000",
            dark=False,
            variables=_variables(
                _LIGHT_AGENTS_OF_256,
                dim="#585858",
                line="#c6c6c6",
                cursor="#d7d7ff",
                cursor_idle="#e4e4e4",
                added="#005f00",
                removed="#870000",
                added_back="#d7ffd7",
                removed_back="#ffd7d7",
                added_word_back="#afffaf",
                removed_word_back="#ffafaf",
                missing_back="#eeeeee",
            ),
        ),
    ),
    "16": (
        _terminal_theme(
            DARK,
            _DARK_AGENTS_OF_16,
            primary="bright_cyan",
            accent="bright_yellow",
            success="green",
            error="bright_red",
            dark=True,
        ),
        _terminal_theme(
            LIGHT,
            _LIGHT_AGENTS_OF_16,
            primary="blue",
            accent="magenta",
            success="black",
            error="red",
            dark=False,
        ),
    ),
}
"""The dark and the light theme for each number of colours."""
