# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python module stand on: the real daemon (tests/integration/harness.py) and
programs that use the module in processes of their own, with every warning an error."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# the sources, or where the build has the module with its extension
MODULE = pathlib.Path(os.environ.get("EDGEPROF_PYTHON", ROOT / "client" / "python"))
NATIVE = "EDGEPROF_PYTHON" in os.environ
sys.path[:0] = [str(MODULE), str(ROOT / "tests" / "integration")]

from harness import Daemon, VarlinkError, until  # noqa: E402

__all__ = ["Daemon", "DaemonCase", "MODULE", "NATIVE", "ROOT", "VarlinkError", "app_env", "app_of", "ctl", "main", "run", "start", "until"]

NOWHERE = "/nonexistent-edgeprof"


class DaemonCase(unittest.TestCase):
    """One daemon for all tests of a class."""

    config = ""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(cls.config).start()

    @classmethod
    def tearDownClass(cls):
        try:
            cls.daemon.stop()
        finally:
            cls.daemon.clean()


def app_env(daemon=None, **more):
    env = dict(os.environ if daemon is None else daemon.env)
    env.update(PYTHONPATH=str(MODULE), PYTHONWARNINGS="error", PYTHONDONTWRITEBYTECODE="1")
    for name in ("EDGEPROF_PRINT", "EDGEPROF_DISABLE", "EDGEPROF_MAPPING_SIZE"):
        env.pop(name, None)
    if daemon is None:
        env["EDGEPROF_RUNTIME_DIR"] = NOWHERE
    env.update(more)
    return env


def start(code, env, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code], env=env, text=True, **options)


def run(code, env, status=0):
    """The program's standard output and error; its exit status must be as given."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120
    )
    if done.returncode != status:
        raise AssertionError("ended with %d:\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return done.stdout, done.stderr


def ctl(daemon, *arguments):
    done = daemon.ctl("-j", *arguments)
    if done.returncode != 0:
        raise AssertionError("edgeprofctl %s: %d\n%s" % (arguments, done.returncode, done.stderr))
    return json.loads(done.stdout)


def app_of(daemon, name):
    """The app as ListApps tells it, or None."""
    return next((a for a in daemon.call("ListApps")["apps"] if a["name"] == name), None)


def main():
    unittest.main(verbosity=2, warnings="ignore")  # the harness leaves sockets to the collector
