"""What programs of the tests tell the tests: lines in a file of the test's folder."""

import json
import os
import time
from pathlib import Path

STAGE = Path(os.environ["STAGE"])


def mark(what, **more):
    """Writes a mark, in one write, so that lines of many processes do not mix."""
    line = json.dumps({"what": what, "pid": os.getpid(), **more})
    with open(STAGE / "marks", "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def wait_for_gate(name, context=None):
    """Returns when the test opens the gate. Marks it when the program is told to stop meanwhile."""
    is_told = False
    while not (STAGE / f"{name}.gate").exists():
        if context is not None and context.stopping and not is_told:
            is_told = True
            mark("stopping")
        time.sleep(0.005)
