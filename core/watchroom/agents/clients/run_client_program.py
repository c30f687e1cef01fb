"""Run `client_program` from its bytecode: from its source it takes a megabyte and some milliseconds more."""

import sys

if __name__ == "__main__":
    # Last, so that nothing here hides a module of the standard library.
    sys.path.append(__file__.rpartition("/")[0])
    from client_program import main  # type: ignore[import-not-found]

    sys.exit(main(sys.argv[1:]))
