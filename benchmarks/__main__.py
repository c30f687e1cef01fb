"""``python -m benchmarks``: the same as ``python benchmarks/run.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from run import main

if __name__ == "__main__":  # contenders that start processes import this module again
    sys.exit(main(sys.argv[1:]))
