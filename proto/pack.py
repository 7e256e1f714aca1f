#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the C file of a text, packed to less than half: pack.py INPUT OUTPUT.

Byte pair encoding: each byte that the text does not use stands for the pair of bytes that is the most frequent one
then, which may be such bytes themselves."""
import collections
import sys

text = open(sys.argv[1], "rb").read()
size = len(text) + 1
pairs = {}
for byte in sorted(set(range(1, 256)) - set(text)):
    pair = collections.Counter(zip(text, text[1:])).most_common(1)[0][0]
    pairs[byte] = pair
    text = text.replace(bytes(pair), bytes([byte]))
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write('#include "proto/varlink_packed.h"\n\n'
              f"const size_t proto_interface_size = {size};\n"
              "const unsigned char proto_packed_pairs[256][2] = {\n")
    out.writelines(f"\t[{byte}] = {{{first}, {second}}},\n" for byte, (first, second) in pairs.items())
    out.write("};\nconst unsigned char proto_packed_interface[] = {\n")
    out.writelines(f"\t{', '.join(map(str, text[i:i + 24]))},\n" for i in range(0, len(text), 24))
    out.write("\t0};\n")
