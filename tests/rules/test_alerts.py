"""The table ``[alerts]`` of a config, and when it is quiet."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from watchroom.errors import ConfigInvalid
from watchroom.rules.alerts import QuietHours
from watchroom.rules.config import parse_config, render_config

WHOLE = """
[alerts]
kinds = ["request", "failed"]
digest_seconds = 60
ended = false
link = "https://watch.example/team"

[alerts.quiet]
start = "22:00"
end = "07:00"
zone = "Europe/Berlin"

[alerts.targets.phone]
type = "ntfy"
url = "https://ntfy.sh/team"
token = "$NTFY_TOKEN"

[alerts.targets.chat]
type = "slack"
url = "$CHAT_URL"
"""


def test_what_is_written_is_read_again() -> None:
    config = parse_config(WHOLE)
    assert config.alerts.targets["phone"].token == "$NTFY_TOKEN"
    assert parse_config(render_config(config)) == config


def test_the_example_of_the_page_is_a_valid_table() -> None:
    page = (Path(__file__).parents[2] / "docs/needs.md").read_text(encoding="utf-8")
    (example,) = (each.partition("```")[0] for each in page.split("```toml\n")[1:])
    alerts = parse_config(example).alerts
    assert {target.type for target in alerts.targets.values()} == {"ntfy", "slack"}
    assert alerts.quiet is not None


@pytest.mark.parametrize(
    ("before", "after", "entry"),
    [
        ("ended = false", "ended = 0", "alerts.ended"),
        ("ended = false", "endet = false", "alerts.endet"),
        ("= 60", "= -1", "alerts.digest_seconds"),
        ("= 60", "= true", "alerts.digest_seconds"),
        ("= 60", '= "60"', "alerts.digest_seconds"),
        ('"failed"', '"failure"', "alerts.kinds"),
        ("https://watch.example/team", "https://watch.example/?token=s3cret", "alerts.link"),
        ("https://watch.example/team", "file:///s3cret", "alerts.link"),
        ("22:00", "24:00", "alerts.quiet.start"),
        ("22:00", "07:00", "alerts.quiet"),
        ("Europe/Berlin", "../../etc/passwd", "alerts.quiet.zone"),
        ("https://ntfy.sh/team", "file:///s3cret", "alerts.targets.phone.url ($VARIABLE, http, https)"),
        ("https://ntfy.sh/team", "https://me:s3cret@ntfy.sh/team", "alerts.targets.phone.url"),
        ("https://ntfy.sh/team", "https://ntfy.sh:s3cret/team", "alerts.targets.phone.url"),
        ("$NTFY_TOKEN", "s3cret", "alerts.targets.phone.token"),
        ('"slack"', '"pigeon"', "alerts.targets.chat.type"),
        (
            '"slack"\nurl = "$CHAT_URL"',
            '"apprise"\nurl = "tgram://s3cret/1"',
            "alerts.targets.chat.url ($VARIABLE)",
        ),
        ("targets.chat", 'targets."a\\u001b[2Jb"', "alerts.targets."),
    ],
)
def test_a_wrong_entry_is_named_and_no_secret_is(before: str, after: str, entry: str) -> None:
    assert before in WHOLE
    with pytest.raises(ConfigInvalid) as refused:
        parse_config(WHOLE.replace(before, after))
    assert entry in refused.value.message()
    assert "s3cret" not in refused.value.message()
    assert refused.value.message().isprintable()


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-03-28T21:59:59", None),
        # Clocks go forward that night.
        ("2026-03-28T22:00:00", "2026-03-29T07:00:00"),
        ("2026-03-29T06:59:59", "2026-03-29T07:00:00"),
        ("2026-03-29T07:00:00", None),
    ],
)
def test_quiet_hours_end_by_the_clocks_of_their_zone(at: str, until: str | None) -> None:
    zone = ZoneInfo("Europe/Berlin")

    def moment(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1_000_000_000

    found = QuietHours("22:00", "07:00", zone.key).end_of(moment(at), zone)
    assert found == (moment(until) if until else None)
