#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file that holds the interface description as the string proto_interface."""
import sys

text = open(sys.argv[1], encoding="utf-8").read()
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write('#include "proto/varlink.h"\n\nconst char proto_interface[] =\n')
    for line in text.splitlines(keepends=True):
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        out.write(f'\t"{escaped}"\n')
    out.write("\t;\n")
