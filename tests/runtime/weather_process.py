"""An agent in a process of its own: asks about the weather, or goes on where another process was ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping

from runtime.weather import ANSWER, QUESTION, Calls, Model, call, calling, weather_agent
from watchroom import Json, Workspace
from watchroom.features.sessions.runtime import ToolMessage

SESSION = "weather"


class WeatherModel(Model):
    """Knows from the messages what to say, as models do: it may be asked in any process."""

    def __init__(self) -> None:
        super().__init__()

    async def __call__(self, payload):  # type: ignore[no-untyped-def]  # as a model runtime
        has_result = isinstance(payload.messages[-1], ToolMessage)
        for chunk in (
            [{"content": ANSWER}] if has_result else calling(call(city="Beijing"), content="Let me see.")
        ):
            yield chunk


class Weather(Calls):
    """The tool; says that it was called."""

    def __call__(self, arguments: Mapping[str, Json]) -> Json:
        print(f"called with {arguments['city']}", flush=True)
        return {"temperature": 25, "condition": "sunny"}


async def main(root: str, action: str) -> None:
    agent = weather_agent(WeatherModel(), Weather())
    with Workspace.open(root, agents=["forecaster"]) as workspace:
        sessions = workspace.sessions
        if action == "begin":
            messages = [{"role": "user", "content": QUESTION}]
            entered = sessions.begin("forecaster", agent, messages=messages, session_id=SESSION)
        else:
            entered = sessions.resume("forecaster", SESSION, agent)
        async with entered as session:
            state = await session.run()
        print(f"{state.status}: {state.messages[-1].content}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
