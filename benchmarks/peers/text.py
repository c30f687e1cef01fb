"""A text that several agents write at once, beside the libraries for that. The edits are those of a recorded
paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from measure import Sample, clocked
from realtime import BATCH, BareText, Edit, WatchroomText, apply_batch, read_trace

from peers.comparison import Contender, Group, Row, RunContext
from peers.peer import Library

_PYCRDT: Final = Library("pycrdt", "pycrdt")
_LORO: Final = Library("Loro", "loro")
_BURST: Final = 5
_OPENINGS: Final = 9
_FIRST_EDIT: Final = Edit(50_000, 0, "x")
_OPENING: Final = {
    _PYCRDT: "decodes the whole history at once",
    _LORO: "decodes its history when it needs it",
}
_DECODING: Final = {
    _PYCRDT: "Loro, which keeps our texts, decodes its history then, and takes as long alone",
    _LORO: "the file's checksum is verified, and its JSON parsed",
}
_MERGING: Final = {
    _PYCRDT: "Loro takes longer too, and each edit is parsed from its line of JSON and checked first",
    _LORO: "each edit is parsed from its line of JSON and checked before Loro takes it",
}
_TYPING: Final = "each edit is checked against the limits, and becomes a line of JSON for the journal"


class _WritableText(Protocol):
    """The operations to measure of a library."""

    updates: list[bytes]

    def edit(self, edit: Edit) -> None: ...

    def tail(self, update: bytes) -> None: ...

    def text(self) -> str: ...

    def checkpoint(self) -> bytes: ...


class PycrdtText:
    """A Yjs document in its Rust library. Positions are bytes, and the trace is ASCII."""

    def __init__(self, checkpoint: bytes | None = None) -> None:
        import pycrdt

        self._document: Any = pycrdt.Doc()
        if checkpoint is not None:
            self._document.apply_update(checkpoint)
        self._text = self._document.get("text", type=pycrdt.Text)
        self.updates: list[bytes] = []
        self._subscription = self._document.observe(lambda event: self.updates.append(event.update))

    def edit(self, edit: Edit) -> None:
        position, deleted, inserted = edit
        with self._document.transaction():
            if deleted:
                del self._text[position : position + deleted]
            if inserted:
                self._text.insert(position, inserted)

    def tail(self, update: bytes) -> None:
        self._document.apply_update(update)

    def text(self) -> str:
        return str(self._text)

    def checkpoint(self) -> bytes:
        return bytes(self._document.get_update())


def _size(file: bytes) -> Sample:
    return lambda n: len(file)


def _read_ours(checkpoint: bytes, n: int) -> None:
    WatchroomText(checkpoint).values()


def _edit_ours(checkpoint: bytes, n: int) -> None:
    WatchroomText(checkpoint).edit(_FIRST_EDIT)


def _read(opened: Callable[[bytes], _WritableText], checkpoint: bytes, n: int) -> None:
    opened(checkpoint).text()


def _edit(opened: Callable[[bytes], _WritableText], checkpoint: bytes, n: int) -> None:
    opened(checkpoint).edit(_FIRST_EDIT)


def _measure(context: RunContext) -> list[Row]:
    edits = read_trace()
    rounds = len(edits) // (BATCH * _BURST)
    kinds: dict[Library, Callable[..., _WritableText]] = {_PYCRDT: PycrdtText, _LORO: BareText}
    installed = {library: each for library, each in kinds.items() if context.has(library)}
    ours, theirs = WatchroomText(), {library: make() for library, make in installed.items()}
    typed = context.compare(
        "typing 1,000 edits",
        clocked(partial(apply_batch, ours.edit, edits)),
        [
            Contender(library, clocked(partial(apply_batch, text.edit, edits)), behind=_TYPING)
            for library, text in theirs.items()
        ],
        rounds=rounds,
        burst=_BURST,
    )
    lines = [json.dumps({"body": delta}) for delta in ours.deltas]
    reading, readers = WatchroomText(), {library: make() for library, make in installed.items()}
    merged = context.compare(
        "taking in 1,000 edits of another",
        clocked(partial(apply_batch, reading.tail, lines)),
        [
            Contender(
                library,
                clocked(partial(apply_batch, text.tail, theirs[library].updates)),
                behind=_MERGING[library],
            )
            for library, text in readers.items()
        ],
        rounds=rounds,
        burst=_BURST,
    )
    texts = {ours.text(), reading.text(), *(each.text() for each in (*theirs.values(), *readers.values()))}
    if len(texts) > 1:
        raise RuntimeError("the texts differ")
    own = ours.checkpoint()
    files = {library: text.checkpoint() for library, text in theirs.items()}
    sizes = context.compare(
        "size with its whole history",
        _size(own),
        [
            Contender(
                library, _size(file), behind="the text stands in it in plain JSON too, beside the history"
            )
            for library, file in files.items()
        ],
        rounds=1,
        unit="bytes",
    )
    opened: list[Row] = []
    for task, of_ours, of_theirs in (
        ("opening it and reading the text", _read_ours, _read),
        ("opening it, up to the first edit", _edit_ours, _edit),
    ):
        opened += context.compare(
            task,
            clocked(partial(of_ours, own)),
            [
                Contender(
                    library,
                    clocked(partial(of_theirs, installed[library], file)),
                    remark=_OPENING[library],
                    behind=_DECODING[library],
                )
                for library, file in files.items()
            ],
            rounds=_OPENINGS,
            burst=_OPENINGS,
            warm=1,
        )
    return [*typed, *merged, *sizes, *opened]


GROUP: Final = Group(
    "text",
    "Text that several write at once",
    "How a paper was written, recorded keystroke by keystroke (259,778 edits, played in batches), and the "
    "file that it becomes. Watchroom keeps its texts in Loro.",
    (_PYCRDT, _LORO),
    _measure,
)
