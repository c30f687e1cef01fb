"""Asks for passphrases: at the terminal, unseen; where standard input is none, of its next line."""

from __future__ import annotations

import getpass
import sys

from watchroom_tui.usage import WrongUsage


def ask_passphrase(question: str) -> str:
    """Return what is typed as the answer to ``question``."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{question} ")
    return sys.stdin.readline().removesuffix("\n")


def choose_passphrase(question: str, again: str, problem: str) -> str:
    """A new passphrase, asked by ``question`` and once more by ``again``. Raises `WrongUsage`, which says
    ``problem``, where the two differ or there is none."""
    chosen = ask_passphrase(question)
    if not chosen or (sys.stdin.isatty() and ask_passphrase(again) != chosen):
        raise WrongUsage(problem)
    return chosen
