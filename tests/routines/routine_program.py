"""What runs of routines start in tests, instead of Watchroom: it does what the variable ``ROUTINE_ACT`` says.

- ``run N``: appends a line to the file ``ROUTINE_RAN``, and ends with status N.
- ``hang``: appends a line, and runs until it is ended.
"""

from __future__ import annotations

import os
import sys
import time


def main() -> int:
    with open(os.environ["ROUTINE_RAN"], "a", encoding="utf-8") as file:
        print(os.getpid(), *sys.argv[1:], file=file, flush=True)
    act, _, status = os.environ.get("ROUTINE_ACT", "run 0").partition(" ")
    while act == "hang":
        time.sleep(0.05)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
