"""The pages of links in a real browser, on the smallest screen of a phone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from calls import ok
from playwright.async_api import Page, async_playwright
from watchroom import Workspace
from watchroom.features.requests.rows import Option, PendingCall, Request
from web.browsing import CHROMIUM, QUIET, server
from web.test_phone import CONFIG, ORIGIN, Phone, configure, free_port

pytestmark = [
    pytest.mark.slow(2),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
WIDTH = 320
LONG = "src/" + "averylongfoldernamewithoutanybreak/" * 3 + "x" * 80 + ".py"


@pytest.fixture
def phone(root: Path) -> Iterator[Phone]:
    port = free_port()
    here = CONFIG.replace(ORIGIN, f"http://127.0.0.1:{port}")
    with Workspace.open(root, agents=["alice"]) as workspace:
        configure(
            workspace,
            here[: here.index("[alerts.targets.phone]")]
            + here[here.index("[web]") :].replace(', "phone"', ""),
        )
        with server(root, "--phone-port", str(port)):
            yield Phone(workspace, port)


@asynccontextmanager
async def page_of(
    phone: Phone, number: int, scheme: Literal["dark", "light"] = "light"
) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            page = await browser.new_page(viewport={"width": WIDTH, "height": 568}, color_scheme=scheme)
            await page.goto(f"http://127.0.0.1:{phone.port}/need/{phone.issue(number)}")
            yield page
        finally:
            await browser.close()


def long_change(phone: Phone) -> int:
    before = "".join(f"line {number} before\n" for number in range(60))
    written = {"filepath": LONG, "message": "m", "content": before, "expected_version": 0}
    ok(phone.workspace.tools("alice"), "collab_write", **written)
    after = before.replace("line 9", f"line_{'identifier' * 30}") + "added\n" * 600
    arguments = json.dumps({"filepath": LONG, "message": "m" * 300, "content": after})
    return phone.ask(Request("approve", "x" * 300, calls=(PendingCall("c1", "collab_write", arguments),)))


async def overflow(page: Page) -> int:
    return int(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_long_change_fits_and_is_approved_with_the_second_touch(
    phone: Phone, scheme: Literal["dark", "light"]
) -> None:
    number = long_change(phone)
    async with page_of(phone, number, scheme) as page:
        assert await overflow(page) <= 0
        background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(19, 20, 22)")
        button = page.get_by_role("button", name="Approve")
        box = await button.bounding_box()
        assert box is not None
        # It is in view without scrolling, and large enough for a finger.
        assert box["y"] + box["height"] <= 568
        assert box["height"] >= 48
        await button.click()
        await page.get_by_text("Approved").wait_for()
    assert phone.outcome(number) == "human:dana approved"


async def test_many_choices_can_be_reached(phone: Phone) -> None:
    options = tuple(Option(f"Option {number} {'y' * 60}", f"o{number}") for number in range(40))
    number = phone.ask(Request("select", "Which?", options=options))
    async with page_of(phone, number) as page:
        assert await overflow(page) <= 0
        for name in ("Option 0 ", "Option 39 "):
            await page.get_by_label(name).check()
        await page.get_by_role("button", name="Send").click()
        await page.get_by_text("Answered").wait_for()
    outcome = phone.workspace.requests.ended("alice/mcp/1")
    assert outcome is not None
    assert outcome.answer is not None
    assert outcome.answer.values == ("o39",)


async def test_the_enter_key_answers_nothing(phone: Phone) -> None:
    number = phone.ask()
    async with page_of(phone, number) as page:
        await page.get_by_label("Reason").fill("not yet")
        await page.get_by_label("Reason").press("Enter")
        await page.get_by_label("Reason").type("again")
        await page.get_by_role("button", name="Reject").click()
        await page.get_by_text("Rejected").wait_for()
    assert phone.outcome(number) == "human:dana rejected"


async def test_a_form_on_another_page_answers_nothing(phone: Phone) -> None:
    number = phone.ask()
    async with page_of(phone, number) as page:
        form = await page.locator("[name=form]").input_value()
        address = page.url
        await page.goto("about:blank")
        await page.set_content(
            f'<form method="post" action="{address}"><input name="form" value="{form}">'
            '<button name="decision" value="approve">Win</button></form>'
        )
        await page.get_by_role("button", name="Win").click()
        await page.get_by_text("This link was refused").wait_for()
    assert (phone.refusals, phone.outcome(number)) == (["link_origin"], None)
