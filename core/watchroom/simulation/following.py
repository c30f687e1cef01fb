"""A script, followed through a conversation: whatever was said so far decides what comes next. Pure.

Nothing is remembered besides the conversation itself, so an agent that is brought back goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from watchroom.model import HUMAN_PREFIX, Json
from watchroom.runtime import AssistantMessage, Message, ToolMessage, UserMessage


class Heard(NamedTuple):
    """What came after a move: the result of its call, and what was said meanwhile, with its authors."""

    result: Mapping[str, Json]
    said: tuple[tuple[str, str], ...] = ()


class Move(NamedTuple):
    """What an agent does next: it thinks aloud and calls a tool; without one it rests until it is spoken
    to."""

    thought: str
    tool: str = ""
    arguments: Mapping[str, Json] = {}


Follow: TypeAlias = Generator[Move, Heard, None]
"""Says one move after the other, and hears what came of each."""


def next_move(
    script: Callable[[str], Follow], messages: Sequence[Message], heeds: Callable[[str], Move]
) -> Move | None:
    """What follows on ``messages`` by a script that begins with what was said first. To what people say in
    between, ``heeds`` gives the answer. None where nothing is left to do."""
    opening, turns = _turns(messages)
    following = script(opening)
    due: Move | None = next(following, None)
    answers: list[Move] = []
    rest: Heard | None = None
    for heard in turns:
        was_answer = bool(answers)
        if was_answer:
            answers.pop(0)
        rest = heard if rest is None else Heard(rest.result, (*rest.said, *heard.said))
        people = [text for author, text in heard.said if author.startswith(HUMAN_PREFIX)]
        answers += [heeds(text) for text in people]
        if not answers and due is not None:
            due, rest = _sent(following, rest), None
    return answers[0] if answers else due


def _sent(following: Follow, heard: Heard) -> Move | None:
    try:
        return following.send(heard)
    except StopIteration:
        return None


def _turns(messages: Sequence[Message]) -> tuple[str, Iterator[Heard]]:
    """What was said first, and what came after each word of the model."""
    first = next((each.content for each in messages if isinstance(each, UserMessage)), "")
    at = next((n for n, each in enumerate(messages) if isinstance(each, UserMessage)), -1)
    groups: list[list[Message]] = []
    early: list[Message] = []
    for message in messages[at + 1 :]:
        if isinstance(message, AssistantMessage):
            groups.append([])
        elif groups:
            groups[-1].append(message)
        else:
            early.append(message)
    if groups:
        groups[0] = [*early, *groups[0]]
    return first, (_heard(group) for group in groups)


def _heard(group: Sequence[Message]) -> Heard:
    results = [each.content for each in group if isinstance(each, ToolMessage)]
    said = tuple((each.author, each.content) for each in group if isinstance(each, UserMessage))
    return Heard(_result(results[-1]) if results else {}, said)


def _result(content: str) -> Mapping[str, Json]:
    given = json.loads(content)
    return given if isinstance(given, dict) else {"success": True, "result": given}
