"""Seals posted to an address: what arrives, and what becomes of those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from receiver import Receiver, receiving
from watchroom import Workspace
from watchroom.errors import DeliveryUnusable
from watchroom.history.seal import Anchor
from watchroom.history.seal.webhook import open_webhook
from watchroom.kernel.rules.seal_note import parse_signed
from watchroom.texts import catalogue

from seal.sealed import notes

TEXTS = catalogue("en")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


def posting(path: Path, receiver: Receiver) -> Workspace:
    workspace = Workspace.open(path, agents=["alice"])
    environ = {"HOOK": f"{receiver.url}/s3cret"}
    workspace.sealing.publish_on(open_webhook("$HOOK", environ, TEXTS))
    return workspace


def seal(workspace: Workspace) -> int:
    workspace.journal.append(notes(3))
    assert workspace.sealing.write_due(Event(), at_once=True)
    sealed = workspace.sealing.newest()
    assert sealed is not None
    return sealed.seal.seq


def test_the_newest_seal_is_posted_at_most_once_a_minute_and_at_the_end(
    tmp_path: Path, receiver: Receiver
) -> None:
    with posting(tmp_path, receiver) as workspace:
        first = seal(workspace)
        posted = receiver.next()
        assert (posted.path, posted.body["row"]) == ("/s3cret", first)
        assert posted.headers["Idempotency-Key"].startswith(posted.body["workspace"])
        given = Anchor("given", "posted", parse_signed(posted.body["checkpoint"]))
        report = workspace.sealing.verify([given])
        assert (report.findings, given in report.anchors, report.missing) == ((), True, ())
        seal(workspace)
        last = seal(workspace)
        assert receiver.rest() == []
    assert [each.body["row"] for each in receiver.rest()] == [last]


def test_what_fails_is_told_once_without_its_address_and_the_next_one_arrives(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("watchroom.history.seal.publisher.PUBLISH_SECONDS", 0)
    receiver.statuses.extend([500, 302])
    with posting(tmp_path, receiver) as workspace:
        seal(workspace)
        seal(workspace)
        assert len(receiver.rest()) == 2
        (told,) = (each for each in caplog.messages if "no seal was published" in each)
        assert "publish.webhook" in told
        assert "s3cret" not in caplog.text
        last = seal(workspace)
    assert [each.body["row"] for each in receiver.rest()] == [last]


@pytest.mark.parametrize("address", ["$MISSING", "file:///etc/passwd", "https://dana:secret@example.org/"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DeliveryUnusable, match=r"publish\.webhook") as refused:
        open_webhook(address, {}, TEXTS)
    assert "secret" not in str(refused.value)
