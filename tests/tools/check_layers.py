#!/usr/bin/env python3
"""Checks who includes whom against the table of the conventions, and functions that are banned.

usage: check_layers.py SOURCE_ROOT
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])

# layer -> folders of ours it may include
LAYERS = {
    "proto": ["proto"],
    "client": ["client", "proto"],
    "daemon/util": ["daemon/util"],
    "daemon/core": ["daemon/core", "daemon/util", "proto"],
    "daemon/collect": ["daemon/collect", "daemon/core", "daemon/util", "proto"],
    "daemon/ingest": ["daemon/ingest", "daemon/core", "daemon/util", "proto"],
    "daemon/api": ["daemon/api", "daemon/core", "daemon/util", "proto"],
    "daemon/publish": ["daemon/publish", "daemon/core", "daemon/util", "proto"],
    "daemon/store": ["daemon/store", "daemon/core", "daemon/util", "proto"],
    "daemon/keep": ["daemon/keep", "daemon/store", "daemon/api", "daemon/core", "daemon/util", "proto"],
    "daemon": ["daemon", "proto"],
}

# library header -> where it may be used (a prefix of the file's path)
LIBRARIES = {
    r"uv\.h": ["daemon/collect", "daemon/ingest", "daemon/api", "daemon/publish", "daemon/store", "daemon/"],
    r"cjson/.*": ["proto/varlink.c", "daemon/api", "daemon/publish/payload", "client/edgeprofctl"],
    r"openssl/.*": ["proto/tls_host", "daemon/publish/mqtt", "client/edgeprofctl/mqtt"],
    r"mosquitto\.h": ["daemon/publish/mqtt", "client/edgeprofctl"],
    r"systemd/sd-journal\.h": ["daemon/publish/journal.c"],
    r"systemd/.*": ["daemon/publish/journal.c", "daemon/notify.c"],
    r"ini\.h": ["daemon/config.c"],
    r"sys/socket\.h": ["daemon/util/closer.c", "daemon/ingest", "daemon/api", "daemon/publish", "daemon/notify.c", "client"],
}

# core reads no clock and opens nothing; proto and core do not log, abort or exit.
PURE = re.compile(
    r"\b(clock_gettime|gettimeofday|time|open|openat|fopen|socket|pread|read|write|printf|fprintf|log_\w+|abort|exit)\("
)
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|system|popen|atoi|alloca|gets|select|signal)\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.S)


def layer_of(path):
    best = ""
    for layer in LAYERS:
        if path.startswith(layer + "/") and len(layer) > len(best):
            best = layer
    return best


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def check(path, text):
    layer = layer_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not match:
            continue
        kind, header = match.groups()
        if kind == '"':
            if "/" not in header:
                if header != "edgeprof.h" or not path.startswith("client/"):
                    yield f"{path}:{number}: {header}: includes name the layer"
                continue
            target = layer_of(header)
            if layer == "daemon" and target:
                continue
            if target not in LAYERS[layer]:
                yield f"{path}:{number}: {layer} may not include {header}"
        else:
            for pattern, places in LIBRARIES.items():
                if re.fullmatch(pattern, header):
                    allowed = any(path.startswith(place) for place in places)
                    pure = layer in ("daemon/core", "daemon/util") and not path.startswith("daemon/util/offload")
                    if not allowed or (pattern == r"uv\.h" and pure):
                        yield f"{path}:{number}: <{header}> does not belong into {layer}"
                    break
    code = COMMENT.sub(blank, text)
    for number, line in enumerate(code.splitlines(), 1):
        for match in BANNED.finditer(line):
            yield f"{path}:{number}: {match.group(1)}() is banned"
        if layer == "daemon/core":
            for match in PURE.finditer(line):
                yield f"{path}:{number}: {match.group(1)}() in core, which is pure"


def main():
    problems = []
    files = sorted(p for folder in ("proto", "client", "daemon") for p in (root / folder).rglob("*.[ch]"))
    for file in files:
        path = file.relative_to(root).as_posix()
        problems += check(path, file.read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems or not files else 0


sys.exit(main())
