"""Seals posted to an address: what arrives, and what becomes of those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from receiver import Receiver, receiving
from service_process import running_service
from watchroom import Workspace
from watchroom.errors import DeliveryUnusable
from watchroom.history.seal import Anchor
from watchroom.history.seal.webhook import open_webhook
from watchroom.history.seal.writer import MAX_UNSEALED_ROWS
from watchroom.kernel.rules.seal_note import parse_signed
from watchroom.serving.service.link import ServiceLink
from watchroom.texts import catalogue
from watchroom_tui.services.settings import settings_path

from seal.sealed import notes

TEXTS = catalogue("en")

pytestmark = pytest.mark.slow(15)


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


def test_no_process_posts_a_seal_that_another_one_posted(tmp_path: Path, receiver: Receiver) -> None:
    with posting(tmp_path, receiver) as first:
        row = seal(first)
        assert receiver.next().body["row"] == row
        with posting(tmp_path, receiver) as second:
            assert second.sealing.write_due(Event(), at_once=True) is None
            assert receiver.rest() == []
            last = seal(second)
        assert receiver.next().body["row"] == last
        first.sealing.write_due(Event())
    assert receiver.rest() == []


def test_the_service_posts_seals_with_no_front_end_open(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("WATCHROOM_SEALS", receiver.url)
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text('[publish]\nwebhook = "$WATCHROOM_SEALS"\n')
    root = tmp_path / "team"
    with Workspace.open(root, agents=["alice"]) as workspace:
        workspace.journal.append(notes(MAX_UNSEALED_ROWS))
    with running_service(), closing(ServiceLink((), "/use", [("root", str(root))])) as link:
        link.start()
        posted = receiver.next()
    assert posted.body["size"] > MAX_UNSEALED_ROWS
    assert parse_signed(posted.body["checkpoint"]).seal.seq == posted.body["row"]
    assert receiver.rest() == []


@pytest.mark.parametrize("address", ["$MISSING", "file:///etc/passwd", "https://dana:secret@example.org/"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DeliveryUnusable, match=r"publish\.webhook") as refused:
        open_webhook(address, {}, TEXTS)
    assert "secret" not in str(refused.value)
