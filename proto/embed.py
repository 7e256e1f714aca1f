#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file that holds a text file as a string: embed.py INPUT OUTPUT HEADER NAME."""
import sys

text, name = open(sys.argv[1], "rb").read(), sys.argv[4]
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write(f'#include "{sys.argv[3]}"\n\nconst char {name}[] = {{\n')
    for line in text.splitlines(keepends=True):
        out.write("\t" + "".join(f"{byte - 256 * (byte > 127)}, " for byte in line) + "\n")
    out.write("\t0};\n")
