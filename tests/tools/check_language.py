#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_language.py: keeps tell-tale phrases out of messages, comments and man pages.

usage: check_language.py SOURCE_ROOT

The phrases read like a translation. Each pattern has what to write instead. Messages are the string
literals of C and Python code. Every .c, .h and .hpp file must begin with a comment, after an optional
licence line, whose first line says "NAME: does Y." with the file's own name and a verb in the third
person.
"""
import pathlib
import re
import sys

# pattern -> what to write
PHRASES = {
    r"(?<!there )\bis no (?!longer|more\b|room\b|space\b|default\b)\w+": "invalid …, not a …",
    r"\bmissing behind\b": "option '…' requires an argument",
    r"\bmakes no sense\b": "malformed",
    r"\bis nothing for\b": "refusing to …",
    r"\btakes clock away\b": "throttling active",
    r"\bcalls? nobody\b": "mute notifications",
    r"\bnothing presses\b": "no pressure",
    r"\banew\b": "again",
    r"\bby itself\b|\bby themselves\b": "automatically, alone",
    r"\bof before\b|\bthe boot before\b": "previous",
    r"\bbeside\b": "next to, in addition to",
    r"\bso many\b(?! \w+ that)": "N",
    r"\b(?:is|are|was|were|be|been|not|un)\s?told\b|\btells? of\b": "report, notify, log, expose",
    r"\blet go\b|\blets go\b": "release, unref",
    r"\bturns? of the loop\b": "iteration of the loop",
    r"\bleft out\b": "skipped, omitted",
    r"\bhand(?:s|ed)? on\b": "dispatch, pass on",
    r"\bdoes not tell\b|\bdid not tell\b|\btells? (?:whether|which|how|what|why|who)\b": "report, say, return",
    r"\bsays? bye\b": "detaches from the daemon",
    r"\bpush(?:es|ed)? us out\b": "disconnects, evicts",
    r"\bis(?: it)? no news\b|\bno news\b": "nothing to report",
    r"(?<!session )\btaken over\b": "recovered, restored",
    r"\bthe house's\b": "…",
    r"\bwhat (?:this|the) machine does not have\b": "not available on this machine",
}
PATTERNS = {re.compile(p, re.I): instead for p, instead in PHRASES.items()}
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.S)
LICENCE = re.compile(r"(?:/\* SPDX-License-Identifier: [^*]*\*/|// SPDX-License-Identifier: [^\n]*)\n")
OPENING = re.compile(r"/\*\s*(?:\* )?(\S+): (?:\w+ly )?(\S+)")
FOLDERS = ("client", "config", "daemon", "docs", "proto", "systemd")
PROSE = (".scd", ".md", ".conf", ".varlink")


def texts(path, source):
    """The parts of a file that people read, with their offsets."""
    if path.suffix in (".c", ".h", ".hpp"):
        for match in COMMENT.finditer(source):
            yield match.start(), re.sub(r"\n\s*\*\s?", " ", match.group(0))
        for match in STRING.finditer(COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), source)):
            yield match.start(), match.group(1)
    elif path.suffix in PROSE:
        for match in re.finditer(r"(?:^(?!\s*$).*\n?)+", source, re.M):
            yield match.start(), " ".join(match.group(0).split())
    elif path.suffix == ".py":
        for match in STRING.finditer(source):
            yield match.start(), match.group(1)


def opening_fault(name, source):
    """What is wrong with the first line of a C file; None = nothing."""
    licence = LICENCE.match(source)
    if not licence:
        return "first line: no SPDX-License-Identifier"
    match = OPENING.match(source, licence.end())
    own = pathlib.PurePath(name).name
    if not match or match.group(1) != own:
        return f"first line: write '{own}: does Y.'"
    if not re.fullmatch(r"[a-z-]+s[,;:]?", match.group(2)):
        return f"first line: '{match.group(2)}' is not a verb: write '{own}: does Y.'"
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    suffixes = (".c", ".h", ".hpp", ".py") + PROSE
    listed = sorted(root.glob("*.md"))
    for folder in FOLDERS:
        listed += sorted(path for path in (root / folder).rglob("*") if path.suffix in suffixes and "node_modules" not in path.parts)
    found = 0
    for path in listed:
        name = path.relative_to(root).as_posix()
        source = path.read_text(encoding="utf-8")
        if path.suffix in (".c", ".h", ".hpp"):
            fault = opening_fault(name, source)
            if fault:
                found += 1
                print(f"{name}:1: {fault}")
        for start, text in texts(path, source):
            for pattern, instead in PATTERNS.items():
                for match in pattern.finditer(text):
                    found += 1
                    line = source.count("\n", 0, start) + 1
                    print(f"{name}:{line}: '{match.group(0)}': {instead}")
    print(f"{len(listed)} files, {found} findings")
    return 1 if found or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
