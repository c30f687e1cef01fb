"""Whiteboards in the journal: their versions, and the locks on them (BOARDS-5).

`Boards` in `service.py` reads and writes versions. `BoardLocks` in `locks.py` gives a board to one writer for
a few seconds. `rows.py` has the form of a lock's rows. The package `watchroom_whiteboards` has the rest: the
permissions for boards, the structure of their text, and the tools. Start with `Boards.write`.
"""
