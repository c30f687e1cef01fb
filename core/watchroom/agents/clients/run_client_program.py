"""Runs `client_program` from its bytecode. From source, it takes a megabyte and some milliseconds more."""

import sys

if __name__ == "__main__":
    # This comes last, so that no file here hides a module of the standard library.
    sys.path.append(__file__.rpartition("/")[0])
    from client_program import main  # type: ignore[import-not-found]

    sys.exit(main(sys.argv[1:]))
