"""Replacing in a long text, beside what Python itself needs: ``python benchmarks/replacing.py``."""

from __future__ import annotations

import random

from measure import Measure, interleaved, middle, ratio, table
from watchroom.editing import TextEditor, TextEditStatus

_LENGTH = 1_000_000
_MATCHES = 10_000
_ONE, _OTHER = "def begin(self)", "def start(self)"
_ROUNDS = 9
_BURST = 20


def measure() -> list[Measure]:
    dice = random.Random(8)
    line = [dice.choice("abcdefghij klmnop") for _ in range(40)]
    text = ("".join(line) + "\n") * (_LENGTH // 41)
    middle_of_it = len(text) // 2
    text = text[:middle_of_it] + _ONE + text[middle_of_it:]
    editor = TextEditor(text)
    many = TextEditor(("x" * 95 + "begin") * _MATCHES)

    def plain(number: int) -> None:
        old, new = (_ONE, _OTHER) if number % 2 == 0 else (_OTHER, _ONE)
        nonlocal text
        at = text.find(old)
        text = text[:at] + new + text[at + len(old) :]

    def ours(number: int) -> None:
        old, new = (_ONE, _OTHER) if number % 2 == 0 else (_OTHER, _ONE)
        if editor.replace(old, new).status is not TextEditStatus.SUCCESS:
            raise RuntimeError(old)

    def choice(_: int) -> None:
        if many.replace("begin", "start").status is not TextEditStatus.MULTI_MATCH:
            raise RuntimeError

    seconds = interleaved({"plain": plain, "ours": ours, "choice": choice}, _ROUNDS, _BURST)
    milliseconds = {name: middle(rounds) * 1000 for name, rounds in seconds.items()}
    remark = f"{milliseconds['ours']:.2f} ms ÷ {milliseconds['plain']:.2f} ms"
    times = ratio(seconds["ours"], seconds["plain"])
    return [
        Measure("a replacement in 1 MB ÷ str.find and slices", times, "×", 3, remark=remark),
        Measure("candidates among 10,000 matches in 1 MB", milliseconds["choice"], "ms", 50),
    ]


if __name__ == "__main__":
    print(table(measure()))
