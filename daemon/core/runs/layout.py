#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the C file with the hash of all headers that saved structures may be in: layout.py OUTPUT DEPFILE FOLDER..."""
import hashlib
import pathlib
import sys

output, depfile = sys.argv[1:3]
headers = sorted(header for folder in sys.argv[3:] for header in pathlib.Path(folder).rglob("*.h"))
number = hashlib.sha256(b"".join(header.read_bytes() for header in headers)).hexdigest()[:8]
pathlib.Path(output).write_text('#include "daemon/core/runs/save_private.h"\n\n'
                                f"const uint32_t saved_layout = 0x{number};\n")
escaped = (str(header).replace(" ", "\\ ") for header in headers)
pathlib.Path(depfile).write_text(f"{output}: {' '.join(escaped)}\n")
