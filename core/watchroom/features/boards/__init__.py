"""The journal's part of whiteboards: their versions, and the locks on them (BOARDS-5).

`Boards` in `service.py` reads and writes versions. `BoardLocks` in `locks.py` gives a board to one writer for
a few seconds. `rows.py` has the form of a lock's rows. The package `watchroom_whiteboards` has the rest: who
may read and write which board, the structure of its text, and the tools. Start with `Boards.write`.
"""
