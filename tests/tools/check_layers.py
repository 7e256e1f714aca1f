#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_layers.py: checks who includes whom, circles of folders and of files, and banned functions.

usage: check_layers.py SOURCE_ROOT

The table of layers is the one of CONTRIBUTING.md. Within a layer no folder may depend on itself by
way of another, and no file of a folder (NAME.c with NAME.h) by way of another file of that folder,
unless all files of the circle include one private header of it (private.h, NAME_private.h, wiring.h).
"""
import pathlib
import re
import sys

MOST_FILES = 25
PRIVATE = re.compile(r"(?:private|/wiring)\.h$")

# layer -> layers of ours that it may include
SIBLING = ["daemon/core", "daemon/util", "proto"]
LAYERS = {
    "proto": [],
    "client": ["proto"],
    "daemon/util": ["proto"],
    "daemon/core": ["daemon/util", "proto"],
    "daemon/collect": SIBLING,
    "daemon/ingest": SIBLING,
    "daemon/varlink": SIBLING,
    "daemon/publish": SIBLING,
    "daemon/persist": SIBLING,
    "daemon/host": SIBLING,
    "daemon/recorder": SIBLING + ["daemon/varlink", "daemon/persist"],
    "daemon/config": None,  # all
    "daemon": None,
}

# library header -> where it may be used (a prefix of the file's path)
UV = ["daemon/util/offload", "daemon/collect/", "daemon/ingest/", "daemon/varlink/", "daemon/publish/"]
UV += ["daemon/persist/", "daemon/recorder/", "daemon/host/", "daemon/config/", "daemon/"]
LIBRARIES = {
    r"uv\.h": UV,
    r"cjson/.*": ["proto/varlink.c", "daemon/varlink/", "client/edgeprofctl/"],
    r"openssl/.*": ["proto/tls", "daemon/publish/mqtt/", "client/edgeprofctl/mqtt/",
                    "client/edgeprofctl/sessions/fingerprint"],
    r"(ncurses|termcap)\.h": ["client/edgeprofctl/top/"],
    r"mosquitto\.h": ["daemon/publish/mqtt/", "client/edgeprofctl/"],
    r"systemd/sd-journal\.h": ["daemon/publish/journal.c"],
    r"systemd/.*": ["daemon/publish/journal.c", "daemon/host/notify.c"],
    r"ini\.h": ["daemon/config/config.c"],
    r"gst/.*": ["client/gstreamer/"],
    r"sys/socket\.h": [
        "daemon/util/deferred_close.c", "daemon/ingest/", "daemon/varlink/", "daemon/publish/", "daemon/recorder/",
        "daemon/host/notify.c", "daemon/host/refusal.c", "daemon/host/socket.", "client/",
    ],
}  # fmt: skip

# core reads no clock and opens nothing; proto and core do not log, abort or exit.
PURE = re.compile(
    r"\b(clock_gettime|gettimeofday|time|open|openat|fopen|socket|pread|read|write|printf|fprintf|log_\w+|abort|exit)\("
)
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|system|popen|atoi|alloca|gets|select|signal)\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def layer_of(path):
    layers = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(layers, key=len, default="")


def folder_of(path):
    return path.rsplit("/", 1)[0]


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def check_library(path, layer, header):
    for pattern, places in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            pure = pattern == r"uv\.h" and layer in ("daemon/core", "daemon/util")
            if not any(path.startswith(p) for p in places) or (pure and "util/offload" not in path):
                return f"<{header}> does not belong in {layer}"
            break
    return None


def check_file(path, text):
    layer = layer_of(path)
    for match in INCLUDE.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        kind, header = match.groups()
        if kind == "<":
            problem = check_library(path, layer, header)
        elif "/" not in header:
            own = header == "edgeprof.h" and path.startswith("client/")
            problem = None if own else f"{header}: includes name the layer"
        else:
            target, allowed = layer_of(header), LAYERS[layer]
            fine = target == layer or allowed is None or target in allowed
            problem = None if fine else f"{layer} may not include {header}"
        if problem:
            yield f"{path}:{number}: {problem}"
    code = COMMENT.sub(blank, text)
    for number, line in enumerate(code.splitlines(), 1):
        for match in BANNED.finditer(line):
            yield f"{path}:{number}: {match.group(1)}() is banned"
        if layer == "daemon/core":
            for match in PURE.finditer(line):
                yield f"{path}:{number}: {match.group(1)}() in core, which is pure"


def circles(arrows):
    """The strongly connected parts of a graph {node: {node, …}} that have more than one node."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(arrows.get(node, ())):
            if target not in order:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == order[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(arrows):
        if node not in order:
            visit(node)
    return found


def check_circles(includes):
    folders, files = {}, {}
    for path, headers in includes.items():
        folder, stem = folder_of(path), path[:-2]
        for header in headers:
            if folder_of(header) != folder:
                folders.setdefault(folder, set()).add(folder_of(header))
            elif header[:-2] != stem:
                files.setdefault(folder, {}).setdefault(stem, set()).add(header[:-2])
    for part in circles(folders):
        yield "circle of folders: " + ", ".join(part)
    for arrows in files.values():
        for part in circles(arrows):
            private = [
                {h for suffix in (".c", ".h") for h in includes.get(stem + suffix, ()) if PRIVATE.search(h)}
                for stem in part
                if not PRIVATE.search(stem + ".h")
            ]
            if not set.intersection(*private):
                yield "circle of files: " + ", ".join(part)


def check_unit_tests(root):
    """A test file that no list of tests/unit/meson.build names would never run. An assertion that does not
    go through unit.h writes a file each time that it holds."""
    listed = set(re.findall(r"'(\w+)'", (root / "tests/unit/meson.build").read_text(encoding="utf-8")))
    for path in (root / "tests/unit").rglob("test_*.c"):
        if path.stem[len("test_") :] not in listed:
            yield f"{path.relative_to(root)}: not in tests/unit/meson.build"
    for path in (root / "tests/unit").rglob("*.[ch]"):
        if path.name != "unit.h" and "<check.h>" in path.read_text(encoding="utf-8"):
            yield f"{path.relative_to(root)}: <check.h>, not tests/unit/unit.h"


def main():
    root = pathlib.Path(sys.argv[1])
    sources = {
        p.relative_to(root).as_posix(): p.read_text(encoding="utf-8")
        for folder in ("proto", "client", "daemon")
        for p in (root / folder).rglob("*.[ch]")
    }
    problems, includes, members = list(check_unit_tests(root)), {}, {}
    for path in sorted(sources):
        problems += check_file(path, sources[path])
        includes[path] = {h for kind, h in INCLUDE.findall(sources[path]) if kind == '"' and h in sources}
        members[folder_of(path)] = members.get(folder_of(path), 0) + 1
    problems += check_circles(includes)
    problems += [f"{f}: {n} source files, at most {MOST_FILES}" for f, n in members.items() if n > MOST_FILES]
    for problem in problems:
        print(problem)
    print(f"{len(sources)} files in {len(members)} folders, {len(problems)} problems")
    return 1 if problems or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
