"""The config table ``[web]``, the check of a link, and what alerts contain of it."""

from __future__ import annotations

import pytest
from watchroom.errors import ConfigInvalid
from watchroom.features.alerts.payloads import NeedLink, alert_payload, alert_text, ntfy_buttons
from watchroom.features.alerts.rows import AlertItem, AlertMessage
from watchroom.features.config.rows import dump_config, dump_settings, parse_config, parse_settings
from watchroom.features.links.rows import Link, dump_link, link_path, parse_link
from watchroom.features.links.rules import WebSettings, find_refusal
from watchroom.texts import catalogue

TARGET = '[alerts.targets.phone]\ntype = "ntfy"\nurl = "https://ntfy.example.org/t"\n'
WEB = '[web]\npublic_url = "https://Team.Example.org:443/"\nperson = "dana"\ntargets = ["phone"]\n'
SETTINGS = WebSettings("https://team.example.org", "dana", ("phone",))
LINK = Link("request", 9, "dana", 0, 100, "page", "alice asks")
ASKED = AlertItem("request", "bob/1/1", 9, "bob asks: Which month?", "bob")
LOST = AlertItem("lost", "p", 12, "a process died")
TEXTS = catalogue()


def test_the_table_is_read_and_written() -> None:
    config = parse_config(TARGET + WEB)
    assert config.web == SETTINGS
    assert (config.web.host, config.web.actor) == ("team.example.org", "human:dana")
    whole = config._replace(web=config.web._replace(approve_button=True))
    assert parse_config(dump_config(whole)).web == whole.web
    assert parse_settings(dump_settings(whole)).web == whole.web
    assert parse_config(TARGET).web == WebSettings()


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('public_url = "http://team.example.org"', "web.public_url"),
        ('public_url = "https://team.example.org/path"', "web.public_url"),
        ('public_url = "https://team.example.org?x=1"', "web.public_url"),
        ('public_url = "https://dana:pw@team.example.org"', "web.public_url"),
        ("public_url = 5", "web.public_url"),
        ('person = "da/na"', "web.person"),
        ('targets = ["chat"]', "web.targets"),
        ("targets = []", "web.targets"),
        ("approve_button = 1", "web.approve_button"),
        ("port = 1", "web (public_url"),
    ],
)
def test_an_invalid_entry_is_named(entry: str, problem: str) -> None:
    name = entry.partition(" ")[0]
    others = "\n".join(line for line in WEB.splitlines() if not line.startswith(name))
    with pytest.raises(ConfigInvalid, match=problem.replace("(", r"\(")):
        parse_config(f"{TARGET}{others}\n{entry}\n")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8643", "http://localhost:8643", "http://[::1]:8643"])
def test_only_addresses_of_this_machine_can_be_without_encryption(url: str) -> None:
    text = TARGET + WEB.replace("https://Team.Example.org:443/", url)
    assert parse_config(text).web.public_url == url


def test_a_link_is_valid_once_for_its_person_until_it_expires() -> None:
    def refusal(link: Link | None = LINK, enrolment: int = 0, now: int = 99, used: bool = False) -> object:
        return find_refusal(link, SETTINGS, enrolment, now, is_used=used)

    assert refusal() is None
    assert refusal(None) == "link_unknown"
    assert refusal(used=True) == "link_used"
    assert refusal(now=100) == "link_expired"
    assert refusal(enrolment=4) == "link_person"
    assert refusal(LINK._replace(person="eve")) == "link_person"


def test_a_link_is_read_back_and_a_damaged_one_is_none() -> None:
    assert parse_link(dump_link(LINK)) == LINK
    for text in ("", "[]", dump_link(LINK._replace(row=True)), dump_link(LINK).replace("page", "all")):
        assert parse_link(text) is None
    assert "secret" not in link_path("secret")


def test_an_alert_about_one_need_leads_to_its_page() -> None:
    message = AlertMessage("new", (ASKED,))
    links = {ASKED.identity: NeedLink("https://h/need/t", "https://h/approve/u")}
    text = alert_text(message, "team", "https://dash", TEXTS, links)
    assert text.body.splitlines() == ["bob asks: Which month?", "https://h/need/t", "https://dash"]
    hook = alert_payload("webhook", message, text, "team", "https://dash", "", links)
    assert hook["link"] == "https://h/need/t"
    assert isinstance(hook["needs"], list)
    assert hook["needs"][0]["link"] == "https://h/need/t"
    assert alert_payload("ntfy", message, text, "team", "", "t", links)["click"] == "https://h/need/t"
    assert ntfy_buttons(message, links, TEXTS) == [
        {"action": "view", "label": "Open", "url": "https://h/need/t", "clear": False},
        {
            "action": "http",
            "label": "Approve",
            "url": "https://h/approve/u",
            "method": "POST",
            "clear": True,
        },
    ]


def test_an_alert_about_several_needs_has_a_link_for_each() -> None:
    message = AlertMessage("new", (ASKED, LOST))
    links = {
        ASKED.identity: NeedLink("https://h/need/t", "https://h/approve/u"),
        LOST.identity: NeedLink("/n"),
    }
    text = alert_text(message, "team", "https://dash", TEXTS, links)
    assert text.body.splitlines()[1::2] == ["https://h/need/t", "/n"]
    assert (
        alert_payload("webhook", message, text, "team", "https://dash", "", links)["link"] == "https://dash"
    )
    labels = [each["label"] for each in ntfy_buttons(message, links, TEXTS)]
    assert labels == ["Open #9", "Open #12"]


def test_a_long_message_of_ntfy_contains_no_part_of_a_link() -> None:
    items = tuple(AlertItem("lost", f"p{n}", n, "x" * 300) for n in range(1, 20))
    links = {each.identity: NeedLink(f"https://h/need/{'t' * 43}") for each in items}
    message = AlertMessage("new", items)
    text = alert_text(message, "team", "", TEXTS, links)
    shown = str(alert_payload("ntfy", message, text, "team", "", "t", links)["message"])
    assert len(shown.encode()) <= 3800
    assert shown.splitlines()[-1] in text.body.splitlines()
