#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example runs as it is, with a daemon and without one."""
import subprocess
import sys
import unittest

import support
from support import Daemon, app_env, app_of, ctl, until

EXAMPLE = support.ROOT / "client" / "examples" / "hello_stages.py"


class Example(unittest.TestCase):
    def run_it(self, env):
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "30"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.assertEqual((done.returncode, done.stdout), (0, "30 frames, 4 MiB of weights\n"), done.stderr)
        return done.stderr

    def test_with_a_daemon(self):
        with Daemon() as daemon:
            self.assertEqual(self.run_it(app_env(daemon)), "")
            until("its end", lambda: (app_of(daemon, "hello") or {}).get("state") == "ended")
            counts = {s["stage"]: s["total_count"] for s in ctl(daemon, "stages", "hello")["stages"]}
            self.assertEqual(counts, {"load_model": 1, "capture": 30, "preprocess": 30, "infer": 30})
            self.assertEqual(ctl(daemon, "frames", "hello")["frames"][0]["total_count"], 30)
            self.assertEqual(app_of(daemon, "hello")["invalid"], 0)

    def test_alone(self):
        self.assertEqual(self.run_it(app_env()), "")
        self.assertEqual(self.run_it(app_env(EDGEPROF_PRINT="1")).count("[infer] "), 30)


if __name__ == "__main__":
    support.main()
