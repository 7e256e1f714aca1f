#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up meson's test logs: the ten slowest tests, skips with their reasons, failures with the end of what
they printed, and one plain closing line."""
import json
import sys

SLOWEST = 10
LAST_LINES = 25  # of a test that failed


def output(test):
    return "\n".join(test.get(stream, "") for stream in ("stdout", "stderr")).strip().splitlines()


counts = {"passed": 0, "failed": 0, "skipped": 0}
times = []
notes = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            name = test["name"]
            times.append((test["duration"], name, path))
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                counts["passed"] += 1
            elif test["result"] == "SKIP":
                counts["skipped"] += 1
                notes.append(f"skipped: {name}: {(output(test) or ['no reason given'])[-1]}")
            else:
                counts["failed"] += 1
                notes.append(f"failed: {name} ({test['result']}), see {path}")
                notes += [f"    {text}" for text in output(test)[-LAST_LINES:]]
times.sort(reverse=True)
print(f"the {SLOWEST} slowest tests:")
for duration, name, path in times[:SLOWEST]:
    print(f"{duration:6.1f} s  {name} ({path.split('/')[0]})")
for note in notes:
    print(note)
print(", ".join(f"{count} {what}" for what, count in counts.items()))
sys.exit(1 if counts["failed"] or not counts["passed"] else 0)
