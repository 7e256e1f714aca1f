#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""census.py: counts implementations of what the shelf has once, and fails when there are more.

usage: census.py SOURCE_ROOT [--list]

A row is a primitive, a pattern that its implementations contain, and the places that may have it.
Whoever needs another one extends the shelf (daemon/util, proto) instead. --list shows each place.
"""
import pathlib
import re
import sys

LIBRARY = "client/libedgeprof/"  # links nothing of the daemon

# primitive: (pattern, files or folders that may contain it)
PRIMITIVES = {
    "FNV-1a hash": (r"1099511628211|16777619|0x100000001b3", ["proto/fnv.h"]),
    "SipHash": (r"\bsip_?round|0x736f6d6570736575", ["daemon/util/index.c"]),
    "thread": (r"\bpthread_create\(", ["daemon/util/detached.c", "daemon/publish/mqtt/", "client/examples/"]),
    "atomic file": (
        r"\brename(?:at2?)?\(",
        [
            "daemon/util/file.c",
            "daemon/persist/",  # the ring file, made in place
            "daemon/recorder/",  # finished under the name that it was announced by
            "client/edgeprofctl/trace/",
        ],
    ),
    "write-all loop": (r"\bwrite\(\w*fd, ", ["daemon/util/file.c", "client/edgeprofctl/"]),
    "UTF-8 decoder": (r"& 0xc0\) [!=]= 0x(?:80|c0)", ["proto/utf8.c", "proto/text.c", LIBRARY]),
    "string end": (r"\bstatic bool ends_(?:with|in)\b", []),
    "append to a string": (r"\bv?snprintf\([\w>.-]+ \+ ", ["proto/text.c", "client/examples/", "daemon/util/log.c", "daemon/core/report/"]),
    "linked list": (r"^struct (\w+) \{[^}]*?^\tstruct \1 \*(?:next|prev)\b", [LIBRARY, "daemon/core/history/"]),
    "rate limiter": (r"\btat_ns \+", ["daemon/util/ratelimit.h"]),
    "child process": (r"\b(?:posix_spawn|uv_spawn|fork)\(\)?", ["daemon/collect/lib/child", "daemon/collect/board/pi_tool.c", "client/"]),
    "JSON writer": (r'\\"%s\\":', ["proto/json_write.c", "daemon/recorder/recording_folder.c", "client/"]),
}


def main():
    root = pathlib.Path(sys.argv[1])
    shown = "--list" in sys.argv[2:]
    too_many = 0
    for name, (pattern, places) in PRIMITIVES.items():
        expression = re.compile(pattern, re.M)
        inside, outside = set(), []
        for folder in ("proto", "client", "daemon"):
            for path in sorted((root / folder).rglob("*.[ch]")):
                file = path.relative_to(root).as_posix()
                text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), path.read_text(), flags=re.S)
                for match in expression.finditer(text):
                    line = f"{file}:{text.count(chr(10), 0, match.start()) + 1}"
                    if any(file.startswith(place) for place in places):
                        inside.add(file)
                    else:
                        outside.append(line)
                    if shown:
                        print(f"  {name}: {line}")
        too_many += len(outside)
        print(f"{name}: on the shelf or by exception in {len(inside)} files, elsewhere {len(outside)} times")
        for line in outside:
            print(f"  {line}")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
