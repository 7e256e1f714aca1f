# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl without a daemon, on session files of which the truth is known."""
import os
import subprocess
import tempfile

import sessions
from harness import BUILD

CTL = BUILD / "client" / "edgeprofctl" / "edgeprofctl"


def ctl(*arguments, **variables):
    command = [CTL, *map(str, arguments)]
    environment = {**os.environ, "EDGEPROF_RUNTIME_DIR": "/nonexistent", **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def make(folder, name, seed=None, frames=300, infer=20.0, **more):
    seed = seed or name
    stages = {"capture": sessions.noise(f"{seed} capture", frames, 3),
              "infer": sessions.noise(f"{seed} infer", frames, infer)}  # fmt: skip
    return sessions.write(folder / f"{name}.jsonl", name, stages, **more)


def folder():
    return tempfile.TemporaryDirectory(prefix="edgeprof-compare-")
