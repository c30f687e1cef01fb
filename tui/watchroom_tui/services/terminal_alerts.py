"""Alerts as terminals take them: the bell, and the two sequences for a notification on the desktop.

OSC 9 (one text) is what iTerm2 brought; OSC 777 (a title and a text) is urxvt's, and what most others take.
Kitty, Ghostty, WezTerm, foot and Warp take both and would notify twice, so a terminal that is known gets one
of them; only one that is not known gets both. A terminal that takes neither shows nothing. tmux knows the
bell; the rest it hands on if it is wrapped and ``allow-passthrough`` is on, and drops otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.alert_policy import AlertMode

BELL: Final = "\a"
LONGEST: Final = 160
"""So many characters of a field at most: desktops show no more, and some terminals drop what is long."""
_ESCAPE: Final = "\x1b"
_END: Final = "\x1b\\"

_TAKES_777_TERM: Final = ("xterm-kitty", "xterm-ghostty", "foot", "rxvt", "wezterm")
_TAKES_777_PROGRAM: Final = ("ghostty", "WezTerm", "WarpTerminal")
_TAKES_777_MARK: Final = ("KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION")


def alert_sequence(mode: AlertMode, title: str, text: str, environ: Mapping[str, str]) -> str:
    """What to write to the terminal that ``environ`` tells of; nothing in ``title`` or ``text`` gets out of
    the sequence. The title goes first and is a word: a number would be a command of ConEmu's."""
    parts = [BELL] if mode in ("bell", "both") else []
    if mode in ("desktop", "both"):
        notices = _notices(_field(title), _field(text), environ)
        parts += [_through_tmux(each) for each in notices] if environ.get("TMUX") else notices
    return "".join(parts)


def _notices(title: str, text: str, environ: Mapping[str, str]) -> list[str]:
    plain = f"{_ESCAPE}]9;{title}: {text}{_END}"
    titled = f"{_ESCAPE}]777;notify;{title};{text}{_END}"
    if environ.get("LC_TERMINAL") == "iTerm2" or environ.get("TERM_PROGRAM") == "iTerm.app":
        return [plain]
    takes_titled = (
        environ.get("TERM", "").startswith(_TAKES_777_TERM)
        or environ.get("TERM_PROGRAM") in _TAKES_777_PROGRAM
        or any(environ.get(mark) for mark in _TAKES_777_MARK)
    )
    return [titled] if takes_titled else [plain, titled]


def _field(text: str) -> str:
    """One field: no control character, short, and without the semicolon that would begin the next one."""
    shown = sanitize(text[: LONGEST + 1]).replace(";", ",")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _through_tmux(sequence: str) -> str:
    return f"{_ESCAPE}Ptmux;{sequence.replace(_ESCAPE, _ESCAPE * 2)}{_END}"
