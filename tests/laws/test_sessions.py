"""Laws of a session's states: any sequence of steps is replayed from its records to an equal state, a state is
its own JSON, and nothing that happens changes a state that there was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from effort import rounds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from watchroom import Json
from watchroom.features.requests.rows import Answer, CallDecision, Option
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    AssistantMessage,
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    Limits,
    ModelPayload,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    StepResult,
    ToolMessage,
    UserMessage,
    create_initial_state,
)
from watchroom.features.sessions.runtime.events import MessageReceived
from watchroom.features.sessions.runtime.step_rows import (
    apply_encoded_step,
    decode_initial_state,
    encode_initial_state,
    encode_step,
    step_detail,
    summarize_step,
)
from watchroom.features.sessions.runtime.transitions import (
    accepts_message,
    add_message,
    apply_answer,
    apply_expiry,
    cancel,
    pause,
    resume,
)

texts = st.text(max_size=12)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
whatever = st.text(st.characters(), max_size=12)
"""Halves of characters, too: models and tools give them."""
arguments = st.one_of(
    st.dictionaries(whatever, whatever, max_size=2).map(json.dumps),
    st.sampled_from(("", "null", "[]", "{", '{"n": NaN}', '{"n": 1e999}')),
)
metadata = st.dictionaries(texts, anything, max_size=2)
people = st.sampled_from(("human:dana", "human:kim"))
chunks = st.lists(whatever, max_size=4)
asks = st.lists(st.tuples(st.sampled_from(("good", "bad", "gone")), arguments), max_size=3)


class Puppet:
    """Decides on what it is told next; its model says what it is told, its tools give what they are told."""

    def __init__(self) -> None:
        self.next: object = None
        self.says: list[object] = []
        self.gives: Json = None
        self.tools = {"good": self.good, "bad": self.bad}

    def runner(self, state: AgentState) -> Instruction:
        if isinstance(self.next, Exception):
            raise self.next
        return self.next  # type: ignore[return-value]  # mappings are understood, too

    async def model_runtime(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        for chunk in self.says:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk  # type: ignore[misc]  # whatever it is

    async def good(self, given: Mapping[str, Json]) -> Json:
        return self.gives

    async def bad(self, given: Mapping[str, Json]) -> Json:
        raise ValueError("bad")


class SessionMachine(RuleBasedStateMachine):
    """A session, its replayed twin, and each state as it was when it was new."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.puppet = Puppet()
        self.runtime = AgentRuntime(self.puppet, RuntimeConfig(limits=Limits(errors=3)))
        self.past: list[tuple[AgentState, str]] = []

    @initialize(said=st.lists(texts, max_size=2), about=metadata)
    def begin(self, said: list[str], about: dict[str, Any]) -> None:
        messages = [{"role": "user", "content": text} for text in said]
        self.state = create_initial_state(session_id="s1", messages=messages, metadata=about)
        self.replayed = decode_initial_state(encode_initial_state(self.state))

    def teardown(self) -> None:
        self.loop.close()

    def happens(self, result: StepResult) -> None:
        before, after = self.state, result.new_state
        assert after.events == (*before.events, *result.events)
        json.dumps(step_detail(after))
        summarize_step(before, result).encode()
        self.past.append((before, before.model_dump_json()))
        self.replayed = apply_encoded_step(self.replayed, encode_step(before, after))
        self.state = after

    def step(self, instruction: object) -> None:
        self.puppet.next = instruction
        self.happens(self.loop.run_until_complete(self.runtime.step(self.state)))

    @rule(words=chunks, calls=asks, breaks=st.booleans(), tokens=st.integers(0, 50))
    def ask_the_model(
        self, words: list[str], calls: list[tuple[str, str]], breaks: bool, tokens: int
    ) -> None:
        self.puppet.says = [{"content": word} for word in words]
        self.puppet.says.append({"usage": {"input_tokens": tokens, "output_tokens": 1}})
        self.puppet.says += [
            {"tool_calls": [{"index": n, "id": "c", "function": {"name": name, "arguments": text}}]}
            for n, (name, text) in enumerate(calls)
        ]
        if breaks:
            self.puppet.says.append(OSError("unplugged"))
        self.step(CallLlm())

    @precondition(lambda self: self.state.open_calls)
    @rule(gives=anything | whatever)
    def run_a_call(self, gives: Json) -> None:
        self.puppet.gives = gives
        self.step(CallTool(tool_call=self.state.open_calls[0]))

    @precondition(lambda self: self.state.open_calls)
    @rule()
    def ask_for_approval(self) -> None:
        self.step(RequestHumanApprove(pending_tools_calling=self.state.open_calls))

    @rule(prompt=texts, about=metadata, of_a_call=st.booleans())
    def ask_for_a_text(self, prompt: str, about: dict[str, Any], of_a_call: bool) -> None:
        if of_a_call and self.state.open_calls:
            about = {"tool_call_id": self.state.open_calls[0].id}
        self.step(RequestHumanPrompt(prompt=prompt, metadata=about, timeout=5))

    @rule(multi=st.booleans())
    def ask_for_a_choice(self, multi: bool) -> None:
        self.step(RequestHumanSelect(options=(Option("A", "a"), Option("B", "b")), multi=multi))

    @precondition(lambda self: self.state.asked is not None)
    @rule(by=people, approved=st.lists(st.booleans(), min_size=9, max_size=9), text=texts.filter(str.strip))
    def answer(self, by: str, approved: list[bool], text: str) -> None:
        asked = self.state.asked
        assert asked is not None
        if self.state.status not in ("waiting_for_human_input", "paused"):
            return
        decisions = tuple(
            CallDecision(call.id, yes, text, '{"edited": true}' if yes else None)
            for call, yes in zip(asked.calls, approved, strict=False)
        )
        answers = {"approve": Answer(decisions), "prompt": Answer(text=text), "select": Answer(values=("a",))}
        self.happens(apply_answer(self.state, answers[asked.kind], by))

    @precondition(lambda self: self.state.status == "waiting_for_human_input")
    @rule()
    def let_it_expire(self) -> None:
        self.happens(apply_expiry(self.state))

    @precondition(lambda self: accepts_message(self.state) and self.state.status != "cancelled")
    @rule(text=texts, by=people)
    def tell(self, text: str, by: str) -> None:
        self.happens(add_message(self.state, text, by))

    @precondition(lambda self: self.state.status in ("idle", "running", "waiting_for_human_input"))
    @rule(by=people)
    def pause(self, by: str) -> None:
        self.happens(pause(self.state, by))

    @precondition(lambda self: self.state.status in ("paused", "error"))
    @rule(by=people)
    def resume(self, by: str) -> None:
        self.happens(resume(self.state, by))

    @precondition(lambda self: len(self.past) > 8 and self.state.status != "cancelled")
    @rule(by=people, reason=texts)
    def cancel(self, by: str, reason: str) -> None:
        self.happens(cancel(self.state, by, reason))

    @rule(reason=texts)
    def finish(self, reason: str) -> None:
        self.step(Finish(reason=reason))

    @precondition(lambda self: self.state.messages and not self.state.open_calls)
    @rule(summary=texts, kept=st.integers(0, 1))
    def shorten(self, summary: str, kept: int) -> None:
        """As an executor of one's own may do when a conversation has grown too long."""
        if not isinstance(self.state.messages[0], UserMessage):
            kept = 0
        messages = (*self.state.messages[:kept], UserMessage(content=summary))
        event = MessageReceived(message=UserMessage(content=summary))
        state = self.state.with_changes(messages=messages, events=(*self.state.events, event))
        self.happens(StepResult(events=(event,), new_state=state))

    @rule()
    def fail(self) -> None:
        self.step(ValueError("fail"))

    @invariant()
    def its_records_replay_to_it(self) -> None:
        assert self.replayed == self.state

    @invariant()
    def it_is_its_own_json(self) -> None:
        assert AgentState.model_validate_json(self.state.model_dump_json()) == self.state

    @invariant()
    def what_was_is_as_it_was(self) -> None:
        for state, text in self.past[-3:]:
            assert state.model_dump_json() == text

    @invariant()
    def no_result_is_without_its_call(self) -> None:
        open_calls: set[str] = set()
        ids: set[str] = set()
        for message in self.state.messages:
            if isinstance(message, AssistantMessage):
                new = {call.id for call in message.tool_calls}
                assert len(new) == len(message.tool_calls)
                assert not new & ids
                ids |= new
                open_calls = new
            elif isinstance(message, ToolMessage):
                open_calls.remove(message.tool_call_id)


def test_a_session_is_what_its_records_say() -> None:
    run_state_machine_as_test(
        SessionMachine, settings=settings(max_examples=rounds(30, 60), stateful_step_count=25)
    )
