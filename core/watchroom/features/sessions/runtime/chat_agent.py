"""The usual agent: a model that calls tools until it answers without a call."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import Final, TypeGuard

from pydantic import JsonValue

from watchroom import validation
from watchroom.errors import InvalidTool
from watchroom.features.requests.rows import Option, parse_arguments
from watchroom.features.sessions.runtime.agent import (
    ANY_TOOL,
    AgentTool,
    CallLlm,
    CallOrigin,
    CallTool,
    Finish,
    Instruction,
    LiveTools,
    Policies,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    Tool,
)
from watchroom.features.sessions.runtime.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from watchroom.features.sessions.runtime.models.protocol import ModelPayload, ModelRuntime
from watchroom.features.sessions.runtime.state import AgentState
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.features.sessions.runtime.tools import checked_tools
from watchroom.model import Json
from watchroom.texts import Language, catalogue

ASK_PERSON: Final = "ask_person"
"""The tool by which a model asks people for a text or for a choice of ``options``."""


_MISSPELT: Final = 0.9
"""Similarity (0 to 1) above which an unknown name in the policies counts as a misspelt tool."""


class ChatAgent:
    """Asks its model and runs the calls of its answers until it answers without a call.

    - ``tools``: offered to the model. `watchroom.features.sessions.runtime.tool` makes them from functions.
    - ``model_runtime``: default: the model of the `RuntimeConfig`.
    - ``system``: sent before the session's messages, and not recorded among them.
    - ``model``, ``options``: as in `ModelPayload`.
    - ``policies``: which calls need an approval. People are asked about these calls together, after the other
      calls ran.
    - ``asks``: whether the model has the tool `ASK_PERSON`.
    - ``live``: its view is sent after the messages. Its tools override ``tools`` of the same name, and their
      earlier results are sent in short form.
    - ``language``: the language of texts for the model.

    Raise `InvalidTool` if a tool cannot be offered to a model, or if a policy misspells the name of a tool.

    Example::

        policies = Policies(tools={"send_invoice": "ask"})
        agent = ChatAgent([send_invoice], model_runtime=model, policies=policies)
        async with workspace.sessions.begin("alice", agent, messages=messages) as session:
            state = await session.run()
    """

    def __init__(
        self,
        tools: Iterable[AgentTool] | Mapping[str, AgentTool] = (),
        *,
        model_runtime: ModelRuntime | None = None,
        system: str = "",
        model: str = "",
        options: Mapping[str, JsonValue] | None = None,
        policies: Policies = ANY_TOOL,
        asks: bool = False,
        live: LiveTools | None = None,
        language: Language = "en",
    ) -> None:
        own = {ASK_PERSON: _build_ask_person(language)} if asks else {}
        fixed: Mapping[str, AgentTool] = {**checked_tools(tools), **own}
        _check_policies(policies, fixed, live)
        self.tools: Mapping[str, Tool] = fixed if live is None else _WithLive(fixed, live)
        self._live = live
        self._condenser = None if live is None else _MessageCondenser(live)
        self.model_runtime = model_runtime
        self.policies = policies
        self._system = (SystemMessage(content=system),) if system else ()
        self._model = model
        self._options = options or {}
        self._definitions = tuple(
            tool.definition
            for name, tool in fixed.items()
            if self._is_offered(tool, name) and not (live is not None and live.find(name))
        )

    def runner(self, state: AgentState) -> Instruction | Awaitable[Instruction]:
        """Return the next instruction for ``state``: run an open call, ask the model, or finish."""
        calls = state.open_calls
        if calls:
            return self._next_call(calls)
        if state.said_last == "assistant":
            return Finish(reason="answered")
        return self._ask_model(state) if self._live is None else self._ask_model_with_view(state, self._live)

    async def _ask_model_with_view(self, state: AgentState, live: LiveTools) -> Instruction:
        snapshot = await run_in_thread(live.snapshot)
        tools = tuple(tool.definition for tool in snapshot.tools if self._is_offered(tool, tool.name))
        return self._ask_model(state, tools, snapshot.shown)

    def _ask_model(
        self, state: AgentState, tools: tuple[Mapping[str, Json], ...] = (), shown: str = ""
    ) -> Instruction:
        view = (UserMessage(content=shown),) if shown else ()
        said = state.messages if self._condenser is None else self._condenser.messages(state)
        return CallLlm.model_construct(
            type="call_llm",
            payload=ModelPayload.model_construct(
                messages=(*self._system, *said, *view),
                tools=(*self._definitions, *tools),
                model=self._model,
                options=self._options,
            ),
        )

    def _is_offered(self, tool: Tool, name: str) -> TypeGuard[AgentTool]:
        if not isinstance(tool, AgentTool) or not tool.definition:
            return False
        return "never" not in (self.policies.of(name), self.policies.of(tool.writes_as or name))

    def _next_call(self, calls: tuple[ToolCall, ...]) -> Instruction:
        questions = [call for call in calls if self._is_question(call)]
        others = [call for call in calls if call not in questions]
        for call in others:
            if self.policies.of(call.function.name) != "ask":
                return CallTool(tool_call=call)
        return (
            RequestHumanApprove(pending_tools_calling=tuple(others))
            if others
            else _build_question(questions[0])
        )

    def _is_question(self, call: ToolCall) -> bool:
        """Return whether ``call`` is a question to people, which needs no approval."""
        if call.function.name != ASK_PERSON or self.policies.of(ASK_PERSON) == "never":
            return False
        return isinstance(parse_arguments(call.function.arguments).get("question"), str)


def _check_policies(policies: Policies, tools: Mapping[str, AgentTool], live: LiveTools | None) -> None:
    """Raise `InvalidTool` if a policy has almost the same name as a tool. Other unknown names are accepted,
    because they can name live tools or tools of another agent with the same policies."""
    for name in policies.tools:
        if name in tools or (live is not None and live.find(name) is not None):
            continue
        from difflib import get_close_matches

        if get_close_matches(name, tools, n=1, cutoff=_MISSPELT):
            raise InvalidTool(tool=validation.escape_unstorable(name, 100), rule="policy_misspelt")


class _WithLive(Mapping[str, Tool]):
    """An agent's tools by name, including its live tools."""

    def __init__(self, fixed: Mapping[str, Tool], live: LiveTools) -> None:
        self._fixed = fixed
        self._live = live

    def __getitem__(self, name: str) -> Tool:
        found = self._live.find(name)
        return self._fixed[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def _build_question(call: ToolCall) -> Instruction:
    given = parse_arguments(call.function.arguments)
    prompt = str(given["question"])
    about = {"tool_call_id": call.id}
    offered = given.get("options")
    options = tuple(Option(str(each), str(each)) for each in offered) if isinstance(offered, list) else ()
    if not options:
        return RequestHumanPrompt(prompt=prompt, metadata=about)
    several = given.get("several") is True
    return RequestHumanSelect(prompt=prompt, options=options, multi=several, metadata=about)


def _build_ask_person(language: Language) -> AgentTool:
    texts = catalogue(language)
    shape: dict[str, Json] = {
        "question": {"type": "string", "description": texts("ask_person.question")},
        "options": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": texts("ask_person.options"),
        },
        "several": {"type": ["boolean", "null"], "description": texts("ask_person.several")},
    }
    function: dict[str, Json] = {
        "name": ASK_PERSON,
        "description": texts("ask_person.description"),
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": shape,
            "required": list(shape),
            "additionalProperties": False,
        },
    }

    def lacks_question(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return {"success": False, "error": "invalid_arguments", "message": texts("ask_person.question")}

    return AgentTool(ASK_PERSON, lacks_question, {"type": "function", "function": function}, repeatable=True)


class _MessageCondenser:
    """Returns the messages for the model with earlier results of live tools in short form.

    The state keeps the whole results. The messages of the last session are cached, so that turns of a long
    session stay fast.
    """

    def __init__(self, live: LiveTools) -> None:
        self._live = live
        self._seen: tuple[Message, ...] = ()
        self._sent: list[Message] = []
        self._tools: dict[str, str] = {}

    def messages(self, state: AgentState) -> tuple[Message, ...]:
        """Return all messages of ``state``, condensed up to the model's last answer."""
        known = len(self._seen)
        if state.messages[:known] != self._seen:
            known, self._sent, self._tools = 0, [], {}
        places = range(len(state.messages), 0, -1)
        newest = next((at for at in places if isinstance(state.messages[at - 1], AssistantMessage)), 0)
        for message in state.messages[known:newest]:
            self._sent.append(self._condense(message, is_newest=False))
        self._seen = state.messages[: max(known, newest)]
        return (*self._sent, *(self._condense(each, is_newest=True) for each in state.messages[newest:]))

    def _condense(self, message: Message, *, is_newest: bool) -> Message:
        if isinstance(message, AssistantMessage):
            self._tools.update((call.id, call.function.name) for call in message.tool_calls)
        if not isinstance(message, ToolMessage):
            return message
        tool = self._tools.get(message.tool_call_id, "")
        content = self._live.condense(tool, message.content, is_newest=is_newest)
        return message if content == message.content else message.model_copy(update={"content": content})
