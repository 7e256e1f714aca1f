#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_man.py: makes edgeprofd.conf(5) from the shipped configuration and the text around it.

usage: make_man.py edgeprofd.conf edgeprofd.conf.5.scd.in OUTPUT

The comment before a key, or before a group of keys, describes it; the comment before a section
describes the section. The line @KEYS@ of the input is replaced.
"""
import pathlib
import re
import sys


def escape(text):
    return re.sub(r"([\\*_#`~\[\]<>])", r"\\\1", text)


def prose(lines):
    text = " ".join(line.strip() for line in lines)
    return re.sub(r"`([^`]*)`", lambda m: f"*{m.group(1)}*", re.sub(r"([\\*_#~<>])", r"\\\1", text))


def main():
    source, frame, output = map(pathlib.Path, sys.argv[1:])
    out, comment, keys = [], [], []

    def flush():
        if keys:
            out.append(", ".join(f"*{escape(k)}* = {escape(v)}" if v else f"*{escape(k)}* =" for k, v in keys))
            out.append("\t" + prose(described[-1]) + "\n" if described[-1] else "")
            keys.clear()

    described = [[]]
    blocks = source.read_text(encoding="utf-8").split("\n\n", 1)[1]
    for line in blocks.split("\n"):
        words = re.match(r"#?\[(.+)\]$", line)
        pair = re.match(r"#(\w+) =\s?(.*)$", line)
        if words:
            flush()
            out.append(f"## [{escape(words.group(1))}]\n")
            if comment:
                out.append(prose(comment) + "\n")
            comment = []
        elif pair:
            if comment:
                flush()
                described.append(comment)
                comment = []
            elif not keys:
                described.append([])
            keys.append(pair.groups())
        elif line.startswith("#"):
            flush()
            comment.append(line[1:])
        elif not line:
            flush()
            comment, described = [], [[]]
    flush()
    output.write_text(frame.read_text(encoding="utf-8").replace("@KEYS@", "\n".join(out)), encoding="utf-8")


if __name__ == "__main__":
    main()
