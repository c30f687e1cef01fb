"""A client that `watchroom claude` starts: it reads its hooks from the settings that its arguments name.

Each line on standard input is an event as JSON. It runs the hooks of the event and prints what they answered.
It ends with status 7.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def main(arguments: list[str]) -> int:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    name = own[own.index("--settings") + 1] if "--settings" in own else ""
    hooks: dict[str, Any] = {}
    if name:
        with open(name, encoding="utf-8") as file:
            hooks = json.load(file)["hooks"]
    print(json.dumps({"pid": os.getpid(), "arguments": arguments}), flush=True)
    for line in sys.stdin:
        event = json.loads(line)
        answers = []
        for group in hooks[event["hook_event_name"]]:
            command = ["/bin/sh", "-c", group["hooks"][0]["command"]]
            done = subprocess.run(command, input=line, capture_output=True, text=True, check=False)
            answers.append([done.returncode, done.stdout, done.stderr])
        print(json.dumps(answers), flush=True)
    return 7


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
