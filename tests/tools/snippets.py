# SPDX-License-Identifier: Apache-2.0
"""The code of README and the manual pages, block by block."""
import pathlib
import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Block:
    def __init__(self, file, text, match):
        self.text = match[2]
        self.language = match[1] or guess(match[2])
        self.place = f"{file.name}:{text[:match.start()].count(chr(10)) + 2}"
        named = re.search(r"as `([\w.+-]+)`[^`]*\Z", text[:match.start()])
        self.name = named[1] if named else None  # a complete program, under this name


def guess(text):
    """Blocks of manual pages have no language; "" is no code."""
    if "edgeprof::" in text:
        return "cpp"
    if re.search(r"^import edgeprof$", text, re.M):
        return "python"
    return "c" if re.search(r"\bedgeprof_\w+\(", text) else ""


def of_file(path):
    text = pathlib.Path(path).read_text()
    return [Block(pathlib.Path(path), text, match) for match in FENCE.finditer(text)]


def everything(source):
    source = pathlib.Path(source)
    return [block for path in [source / "README.md", *sorted(source.glob("*/*.scd")), *sorted(source.glob("*/*/*.scd"))]
            for block in of_file(path)]


def questions(source):
    """The commands of README's tables: what stands before two blanks; without those that wait
    for frames of a program or need a terminal."""
    text = (pathlib.Path(source) / "README.md").read_text()
    return [re.split(r"  +", line.strip())[0] for line in re.findall(r"^    (edgeprofctl (?!session start |top ).*)$", text, re.M)]
