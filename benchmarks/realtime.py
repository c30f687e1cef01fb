"""Documents that many edit at once, against bare Loro: on how a paper was written, edit by edit, and on long
texts."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, TypeVar

from loro import ExportMode, LoroDoc
from measure import Measure, Rounds, Work, interleaved, middle, ratio
from watchroom import Json
from watchroom.crdt import Document, FieldType, Text
from watchroom.crdt.checkpoint import Checkpoint, parse_checkpoint, render_checkpoint
from watchroom.crdt.timeline import Timeline

TRACE: Final = Path(__file__).parent.parent / "tests" / "traces" / "automerge-paper.json.gz"
SCHEMA: Final[Mapping[str, FieldType]] = {"body": "rga"}
REPLICA: Final = "author#a1"
OURS, BARE = "Watchroom", "bare Loro"
BATCH: Final = 1000
"""So many edits are one piece of work."""
BURST: Final = 5
OPENINGS: Final = 50
JUMPS: Final = (0.5, 0.1, 0.9, 0.0, 0.95, 0.3, 0.31, 0.7, 0.2, 1.0)
"""Shares of the history."""
LENGTHS: Final = {"10 KB": 10_000, "10 MB": 10_000_000}
PASTES: Final = {"5 MB": 5_000_000, "10 MB": 9_900_000}
EDITS: Final = 3000
LINE: Final = "a line of a long text, about as long as a line of text mostly is\n"


class Edit(NamedTuple):
    position: int
    deleted: int
    inserted: str


T = TypeVar("T")


def measure() -> list[Measure]:
    edits = read_trace()
    ours, bare = writers = WatchroomText(), BareText()
    written = _in_batches(
        {
            OURS: partial(apply_batch, ours.edit, edits),
            BARE: partial(apply_batch, bare.edit, edits),
        },
        len(edits),
    )
    lines = [json.dumps({"body": delta}) for delta in ours.deltas]
    reading, bare_reading = readers = WatchroomText(), BareText()
    tailed = _in_batches(
        {
            OURS: partial(apply_batch, reading.tail, lines),
            BARE: partial(apply_batch, bare_reading.tail, bare.updates),
        },
        len(edits),
    )
    if len({each.text() for each in (*writers, *readers)}) > 1:
        raise RuntimeError("the texts differ")
    checkpoint, snapshot = ours.checkpoint(), bare.checkpoint()
    return [
        _compared(f"document, {len(edits):,} edits: an edit and its delta", written, 3),
        _compared("document: tailing a delta from its line of JSON", tailed, 2.5),
        _size(len(checkpoint), len(snapshot)),
        *_opened(checkpoint, snapshot),
        _lengths(),
        *_pasted(),
        _jumped(ours.jumps()),
    ]


def read_trace() -> list[Edit]:
    trace = json.loads(gzip.decompress(TRACE.read_bytes()))
    return [Edit(*patch) for transaction in trace["txns"] for patch in transaction["patches"]]


class WatchroomText:
    """A document with one text."""

    def __init__(self, checkpoint: bytes | None = None) -> None:
        self._document = Document(SCHEMA) if checkpoint is None else parse_checkpoint(checkpoint).document
        self.deltas: list[object] = []

    def edit(self, edit: Edit) -> None:
        position, deleted, inserted = edit
        text = self._document.text("body")
        self.deltas.append(text.replace(position, position + deleted, inserted, REPLICA).delta)

    def tail(self, line: str) -> None:
        self._document.merge(json.loads(line))

    def text(self) -> str:
        return self._document.text("body").value

    def values(self) -> Mapping[str, Json]:
        return self._document.values()

    def checkpoint(self) -> bytes:
        return render_checkpoint(
            Checkpoint("paper", 1, frozenset({REPLICA}), self._document), "2026-01-01T00:00Z", "a"
        )

    def jumps(self) -> list[float]:
        """The seconds that it takes to go to moments all over the history, and to have the text of each."""
        deltas = [{"body": delta} for delta in self.deltas if isinstance(delta, dict)]
        timeline = Timeline(
            self._document, len(deltas) + 1, lambda after, until: deltas[after - 1 : until - 1]
        )
        for delta in deltas:
            timeline.add(delta)
        taken = []
        for share in JUMPS:
            began = time.perf_counter()
            timeline.at(1 + round(share * len(deltas))).values()
            taken.append(time.perf_counter() - began)
        return taken


class BareText:
    """A Loro document, which hands out its updates as they are made."""

    def __init__(self, snapshot: bytes | None = None) -> None:
        self._document = LoroDoc()  # type: ignore[no-untyped-call]
        if snapshot is not None:
            self._document.import_(snapshot)
        self._text = self._document.get_text("text")
        self.updates: list[bytes] = []
        self._subscription = self._document.subscribe_local_update(self._keep)

    def _keep(self, update: bytes) -> bool:
        self.updates.append(update)
        return True

    def edit(self, edit: Edit) -> None:
        position, deleted, inserted = edit
        if deleted:
            self._text.delete(position, deleted)
        if inserted:
            self._text.insert(position, inserted)
        self._document.commit()

    def tail(self, update: bytes) -> None:
        self._document.import_(update)

    def text(self) -> str:
        return self._text.to_string()

    def checkpoint(self) -> bytes:
        return self._document.export(ExportMode.Snapshot())


def apply_batch(act: Callable[[T], None], pieces: Sequence[T], batch: int) -> None:
    for piece in pieces[batch * BATCH : (batch + 1) * BATCH]:
        act(piece)


def _in_batches(contenders: Mapping[str, Work], count: int) -> Rounds:
    return interleaved(contenders, count // (BATCH * BURST) + 1, BURST)


def _compared(name: str, rounds: Rounds, goal: float) -> Measure:
    each = ", ".join(f"{who} {middle(taken) / BATCH * 1e6:.3g} µs" for who, taken in rounds.items())
    return Measure(f"{name}, against bare Loro", ratio(rounds[OURS], rounds[BARE]), "×", goal, remark=each)


def _jumped(seconds: list[float]) -> Measure:
    each = f"slowest of {len(seconds)} all over the history; median {median(seconds) * 1e3:.0f} ms"
    return Measure("document: a jump to a moment of its past", max(seconds) * 1e3, "ms", 200, remark=each)


def _size(ours: int, bare: int) -> Measure:
    each = f"{ours / 1024:,.0f} KB, Loro {bare / 1024:,.0f} KB"
    return Measure("document: its checkpoint against the bare snapshot", ours / bare, "×", 1.5, remark=each)


def _opened(checkpoint: bytes, snapshot: bytes) -> list[Measure]:
    edit = Edit(50_000, 0, "x")

    def read_ours(n: int) -> None:
        WatchroomText(checkpoint).values()

    def read_bare(n: int) -> None:
        document = LoroDoc()  # type: ignore[no-untyped-call]
        document.import_(snapshot)
        document.get_text("text").to_string()

    def edit_ours(n: int) -> None:
        WatchroomText(checkpoint).edit(edit)

    def edit_bare(n: int) -> None:
        BareText(snapshot).edit(edit)

    read = interleaved({OURS: read_ours, BARE: read_bare}, OPENINGS, 1)
    edited = interleaved({OURS: edit_ours, BARE: edit_bare}, OPENINGS, 1)
    return [
        Measure(f"{name}, against bare Loro", ratio(each[OURS], each[BARE]), "×", goal, remark=_both(each))
        for name, each, goal in (
            ("document: opening it and reading its values", read, 6),
            ("document: opening it, up to the first edit", edited, None),
        )
    ]


def _both(rounds: Rounds) -> str:
    return ", ".join(f"{name} {middle(each) * 1e3:.3g} ms" for name, each in rounds.items())


def _lengths() -> Measure:
    writers = {name: partial(_type_into, _text_of(length)) for name, length in LENGTHS.items()}
    rounds = interleaved(writers, 20, 100)
    return Measure(
        "document: an edit in 10 MB against one in 10 KB",
        ratio(rounds["10 MB"], rounds["10 KB"]),
        "×",
        2,
        remark=", ".join(f"{name}: {middle(each) * 1e6:.3g} µs" for name, each in rounds.items()),
    )


def _pasted() -> list[Measure]:
    """What a paste and thousands of small edits cost whoever takes them in next: linear in the text."""
    pastes = {name: _pasted_and_edited(length) for name, length in PASTES.items()}
    from_rows = {name: partial(_take_in, deltas) for name, (deltas, _) in pastes.items()}
    from_file = {name: partial(_edit_from, file) for name, (_, file) in pastes.items()}
    return [
        Measure(f"{name}, 10 MB against 5 MB", ratio(each["10 MB"], each["5 MB"]), "×", 3, remark=_both(each))
        for name, each in (
            (f"document: a paste and {EDITS:,} edits made apart, from rows", interleaved(from_rows, 10, 1)),
            ("document: the same from its file, up to the first edit", interleaved(from_file, 10, 1)),
        )
    ]


def _pasted_and_edited(length: int) -> tuple[list[Json], bytes]:
    """The deltas of two writers who edit a paste at once, and the file."""
    one, other = Document(SCHEMA), Document(SCHEMA)
    text = (LINE * (length // len(LINE) + 1))[:length]
    deltas: list[Json] = [{"body": one.text("body").insert(0, text, REPLICA).delta}]
    other.merge(deltas[0])
    for number in range(EDITS):
        document, replica = ((one, REPLICA), (other, "editor#b2"))[number % 2]
        position = number * 7919 % length
        deltas.append({"body": document.text("body").insert(position, "edit ", replica).delta})
    one.merge_all(deltas)
    return deltas, render_checkpoint(
        Checkpoint("paste", 1, frozenset({REPLICA}), one), "2026-01-01T00:00Z", "a"
    )


def _take_in(deltas: list[Json], n: int) -> None:
    Document(SCHEMA).merge_all(deltas)


def _edit_from(file: bytes, n: int) -> None:
    WatchroomText(file).edit(Edit(5, 0, "x"))


def _text_of(length: int) -> Text:
    text = Document(SCHEMA).text("body")
    text.insert(0, (LINE * (length // len(LINE) + 1))[:length], REPLICA)
    return text


def _type_into(text: Text, n: int) -> None:
    text.insert(len(text) // 2, "x", REPLICA)
