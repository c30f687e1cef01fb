"""docs/phone.md: the settings and figures that it names."""

from __future__ import annotations

import re
from pathlib import Path

from watchroom.features.config.rows import parse_config
from watchroom.features.links.rules import MAX_LINK_SECONDS
from watchroom.serving.phone import content, limits, server
from watchroom_cli.watch.web import PHONE_PORT

PAGE = (Path(__file__).parents[2] / "docs/phone.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_examples_are_valid() -> None:
    whole, button = EXAMPLES
    target = whole.partition("[web]")[0]
    assert parse_config(whole).web.public_url in PAGE
    assert parse_config(target + button).web == parse_config(whole).web._replace(approve_button=True)


def test_the_page_names_the_limits() -> None:
    assert re.findall(r"\b86\d\d\b", PAGE) == [str(PHONE_PORT)] * PAGE.count(str(PHONE_PORT))
    for stated in (
        f"after {MAX_LINK_SECONDS // 3600} hours",
        f"after {content.MAX_LINES} lines",
        f"at most {server.MAX_BODY_BYTES // 1024} KiB",
        f"within {server.READ_SECONDS:.0f} seconds",
        f"opened {limits.MAX_PER_LINK} times per minute",
        f"{limits.MAX_UNKNOWN} unknown links",
    ):
        assert stated in PAGE
    assert limits.MAX_ROWS == 10
    assert "at most ten per minute" in PAGE
