"""The pages as HTML. They have no scripts, load nothing, and fit a screen of 320 pixels. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Final

from watchroom.features.requests.rows import Option
from watchroom.serving.phone.content import ShownCall, ShownRequest
from watchroom.texts import Catalogue
from watchroom.validation import HIDDEN_CHARACTERS

_FILLERS: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b-\u180f\ufe00-\ufe0d\U000e0100-\U000e01ef"
)
_INVISIBLE: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN_CHARACTERS}{_FILLERS}]")
MAX_REASON_CHARACTERS: Final = 2000
MAX_ANSWER_CHARACTERS: Final = 10_000

_STYLE: Final = """
:root{color-scheme:light dark;--back:#fff;--text:#1a1a1a;--dim:#595959;--line:#c9c9c9;--soft:#f2f2f2;
--added:#e2f5e5;--added-text:#0b521b;--removed:#fde6e6;--removed-text:#861111;--yes:#14692a;--no:#a11b1b;
--warn:#7a4a00}
@media(prefers-color-scheme:dark){:root{--back:#131416;--text:#e9e9e9;--dim:#a8a8a8;--line:#45484d;
--soft:#1f2124;--added:#10301a;--added-text:#a6e8b4;--removed:#3a1717;--removed-text:#f7b9b9;--yes:#1d7a35;
--no:#b32525;--warn:#f0b95c}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;font:16px/1.4 system-ui,sans-serif;background:var(--back);color:var(--text);
overflow-wrap:anywhere}
main,.bar{max-width:44rem;margin:0 auto;padding:12px}
header{color:var(--dim);font-size:14px}
h1{font-size:20px;line-height:1.25;margin:4px 0 10px}
h2{font-size:16px;margin:16px 0 4px}
p{margin:8px 0}
.pre{white-space:pre-wrap}
dl{margin:0;font-size:14px}
dl div{padding:3px 0;border-bottom:1px solid var(--line)}
dt{display:inline;color:var(--dim)}
dt::after{content:" "}
dd{display:inline;margin:0;white-space:pre-wrap}
pre{margin:8px 0;padding:4px 0;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;
overflow-wrap:anywhere;background:var(--soft);border-radius:6px;tab-size:4}
pre span{display:block;padding:0 6px 0 20px;text-indent:-14px}
.added{background:var(--added);color:var(--added-text)}
.removed{background:var(--removed);color:var(--removed-text)}
.place,.dim{color:var(--dim)}
.warning{color:var(--warn);font-weight:600}
.bar{position:sticky;bottom:0;background:var(--back);border-top:1px solid var(--line);
padding-bottom:calc(12px + env(safe-area-inset-bottom))}
label{display:block;font-size:14px;color:var(--dim)}
label.option{display:flex;align-items:center;gap:10px;min-height:48px;font-size:16px;color:var(--text);
border-bottom:1px solid var(--line)}
label.option input{width:22px;height:22px;flex:none}
textarea{width:100%;margin-top:2px;padding:9px;font:16px/1.3 system-ui,sans-serif;color:var(--text);
background:var(--soft);border:1px solid var(--line);border-radius:6px;resize:vertical}
.buttons{display:flex;gap:10px;margin-top:8px}
button{flex:1;min-height:52px;font:600 17px system-ui,sans-serif;color:#fff;border:0;border-radius:8px}
.yes{background:var(--yes)}
.no{background:var(--no)}
:focus-visible{outline:3px solid var(--dim);outline-offset:2px}
"""
_STYLE_SUM: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_SUM}'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
"""Content security policy: this style sheet, and forms that lead back to this server."""


def show_text(text: str) -> str:
    """Return ``text`` as HTML. Characters that are invisible or change the direction of text become visible,
    because an agent may have written them."""
    return escape(_INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def message_page(place: str, title: str, lines: Iterable[str], texts: Catalogue) -> str:
    """Return a page with only a message: its ``title`` and ``lines``. ``place``: the workspace's name,
    empty for none."""
    body = "".join(f'<p class="pre">{show_text(line)}</p>' for line in lines if line)
    return _whole(place, title, body, "", texts)


def request_page(
    place: str, request: ShownRequest, person: str, form: str | None, note: str, texts: Catalogue
) -> str:
    """Return the page of a ``request``.

    - ``place``: the workspace's name.
    - ``person``: the name of the person who answers.
    - ``form``: the token of the form; None for a page without a form.
    - ``note``: a sentence instead of the form, or about an invalid answer; empty for none.
    """
    parts = [_facts(request.facts)]
    if request.warning:
        parts.append(f'<p class="warning">{show_text(request.warning)}</p>')
    if request.question:
        parts.append(f'<p class="pre">{show_text(request.question)}</p>')
    parts += [_call(call, texts) for call in request.calls]
    if note:
        parts.append(f'<p class="warning pre">{show_text(note)}</p>')
    if form is None:
        return _whole(place, request.title, "".join(parts), "", texts)
    parts.append(f'<p class="dim">{show_text(texts("phone.answers_as", person=person))}</p>')
    parts.append(_fields(request, form, texts))
    return _whole(place, request.title, "".join(parts), _bar(request, texts), texts)


def _whole(place: str, title: str, body: str, bar: str, texts: Catalogue) -> str:
    """Return a page with ``body``, which is a form if there is a ``bar`` with buttons."""
    name = f"Watchroom · {place}" if place else "Watchroom"
    main = f"<main><header>{show_text(name)}</header><h1>{show_text(title)}</h1>{body}</main>"
    if bar:
        main = f'<form method="post" accept-charset="utf-8" autocomplete="off">{main}{bar}</form>'
    return (
        f'<!doctype html>\n<html lang="{show_text(texts("phone.language"))}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex">'
        f"<title>{show_text(title)}</title><style>{_STYLE}</style></head><body>{main}</body></html>\n"
    )


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<div><dt>{show_text(name)}</dt><dd>{show_text(value)}</dd></div>" for name, value in facts
    )
    return f"<dl>{rows}</dl>" if rows else ""


def _call(call: ShownCall, texts: Catalogue) -> str:
    title = f"{call.name} {call.path}".strip()
    lines = "".join(f'<span class="{kind}">{show_text(text)}</span>' for kind, text in call.lines)
    parts = [f"<h2>{show_text(title)}</h2>", _facts(call.facts), f"<pre>{lines}</pre>" if lines else ""]
    if call.omitted:
        parts.append(f'<p class="warning">{show_text(texts("phone.more_lines", count=call.omitted))}</p>')
    if call.note:
        parts.append(f'<p class="dim">{show_text(call.note)}</p>')
    return "".join(parts)


def _fields(request: ShownRequest, form: str, texts: Catalogue) -> str:
    """Return the fields of the form above its buttons."""
    hidden = f'<input type="hidden" name="form" value="{show_text(form)}">'
    if request.kind == "prompt":
        return hidden + _text_field("text", texts("phone.answer"), MAX_ANSWER_CHARACTERS, 4)
    options = enumerate(request.options)
    return hidden + "".join(_option(number, option, multi=request.multi) for number, option in options)


def _bar(request: ShownRequest, texts: Catalogue) -> str:
    """Return the buttons of the form, which stay at the bottom of the screen."""
    is_approval = request.kind == "approve"
    reason = _text_field("reason", texts("phone.reason"), MAX_REASON_CHARACTERS, 1) if is_approval else ""
    yes, no = ("approve", "reject") if is_approval else ("send", "decline")
    buttons = _button(no, "no", texts) if request.can_decline else ""
    return f'<div class="bar">{reason}<div class="buttons">{buttons}{_button(yes, "yes", texts)}</div></div>'


def _text_field(name: str, label: str, most: int, rows: int) -> str:
    # Not an input of one line: there, the enter key would press the first button.
    field = f'<textarea name="{name}" rows="{rows}" maxlength="{most}"></textarea>'
    return f"<label>{show_text(label)}{field}</label>"


def _option(number: int, option: Option, *, multi: bool) -> str:
    kind = "checkbox" if multi else "radio"
    # Its number, because browsers change some characters of a value.
    field = f'<input type="{kind}" name="choice" value="{number}">'
    return f'<label class="option">{field}<span>{show_text(option.label)}</span></label>'


def _button(decision: str, style: str, texts: Catalogue) -> str:
    label = show_text(texts(f"phone.button.{decision}"))
    return f'<button class="{style}" name="decision" value="{decision}">{label}</button>'
