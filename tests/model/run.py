#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks mapping.pml with Spin: the protocol as it is holds in every state, and with any ordering weakened
that it relies on, the search finds a violation. Long form: EDGEPROF_MODEL=long.

A search counts only if it was complete, or in the long form, which has a bit per state instead of the state,
if it did not end early."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mapping.pml")
DEPTH = 2000  # steps of an execution; the longest has fewer than 300
MEMORY = 1500  # MiB

# what the protocol relies on: one weakened is a violation
NEEDED = {
    "head stored with release": ["WEAK_HEAD"],
    "head loaded with acquire": ["WEAK_HEAD_LOAD"],
    "checkpoint before owner = FREEING": ["WEAK_FREEING"],
    "owner = FREEING before base = none": ["WEAK_FREE_BASE"],
    "base = none before owner = 0": ["WEAK_FREE_OWNER"],
    "Python: record before head by a fence": ["PYTHON", "WEAK_FENCE"],
}
SOUND = {
    "libedgeprof": ["EVENTS1=2"],
    "Python": ["PYTHON", "EVENTS1=1"],
}
# implied by the others: the code keeps them, nothing breaks without all of them
IMPLIED = ["WEAK_BASE", "WEAK_LINK", "WEAK_TAIL", "WEAK_TAIL_CHUNK", "WEAK_OWNER_LOAD"]
LONG = {
    "libedgeprof, three events of each": [],
    "libedgeprof, more events": ["EVENTS0=5", "RKILLS=2"],
    "libedgeprof, three writers": ["W=3", "C=4"],
    "Python, more events": ["PYTHON", "EVENTS0=5"],
    "without the orderings that others imply": IMPLIED,
}


def search(defines, compiler_flags, scratch):
    """What the search printed."""
    subprocess.run(["spin", *("-D" + define for define in defines), "-a", MODEL],
        cwd=scratch, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run(["cc", "-w", "-DSAFETY", f"-DMEMLIM={MEMORY}", *compiler_flags, "-o", "pan", "pan.c"],
        cwd=scratch, check=True)  # fmt: skip
    options = ["-w31"] if "-DBITSTATE" in compiler_flags else []
    run = subprocess.run(["./pan", f"-m{DEPTH}", *options], cwd=scratch, capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def is_complete(output):
    """Whether it came to an end: with a bit per state it may have missed some even then."""
    searched = re.search(r"^(Full|Bit) statespace search for:", output, re.M)
    stopped = re.search(r"max search depth too small|Search not completed|out of memory|truncated|aborting", output)
    return bool(searched) and not stopped


def report(what, verdict, output, begin):
    states = re.search(r"^\s*(\S+) states, stored", output, re.M)
    print(f"{what}: {verdict}, {float(states[1]) if states else 0:.0f} states, {time.monotonic() - begin:.1f} s",
        flush=True)  # fmt: skip


def holds(what, defines, compiler_flags, scratch):
    begin = time.monotonic()
    output = search(defines, compiler_flags, scratch)
    ok = is_complete(output) and "errors: 0" in output
    report(what, "holds" if ok else "DOES NOT HOLD, or was not searched to the end", output, begin)
    if not ok:
        print(output)
    return ok


def breaks(what, defines, scratch):
    begin = time.monotonic()
    output = search(defines, ["-O0"], scratch)
    found = re.search(r"assertion violated (.*) \(at depth", output)
    report(f"not {what}", "violation found" if found else "NO VIOLATION", output, begin)
    return bool(found)


def main():
    for program in ("spin", "cc"):
        if not shutil.which(program):
            print(f"{program} is not installed")
            return 77
    ok = True
    with tempfile.TemporaryDirectory() as scratch:
        if os.environ.get("EDGEPROF_MODEL") == "long":
            for what, defines in LONG.items():
                ok = holds(what, defines, ["-DBITSTATE", "-O2"], scratch) and ok
        else:
            for what, defines in NEEDED.items():
                ok = breaks(what, defines, scratch) and ok
            for what, defines in SOUND.items():
                ok = holds(what, defines, ["-O1"], scratch) and ok
    return int(not ok)


if __name__ == "__main__":
    sys.exit(main())
