#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pip in a virtual environment, without a network: the module from this repository and from its source archive,
with the extension for the interpreter that runs there, and without a compiler. What it records arrives."""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unittest

import support
from support import Daemon, app_env, app_of, until

FOLDER = support.ROOT / "client" / "python"
WHICH = "import edgeprof; print(edgeprof.__version__, edgeprof._recorder.recorder.__name__, edgeprof.__file__)"
APP = """
import edgeprof
assert edgeprof.connect("installed")
for _ in range(100):
    with edgeprof.frame(), edgeprof.stage("work"):
        pass
edgeprof.shutdown()
"""
COMPILER = shutil.which("cc") and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))


def environment(**more):
    """Of a user who has no variable of the tests', and a pip that has no index to ask."""
    env = app_env(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore", **more)
    for name in ("PYTHONPATH", "PYTHONWARNINGS", "EDGEPROF_PURE", "CC"):
        if name not in more:
            env.pop(name, None)
    return env


def sources():
    return sorted(file for file in FOLDER.rglob("*") if "__pycache__" not in str(file))


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.place = pathlib.Path(cls.folder.name)
        cls.python = str(cls.place / "venv" / "bin" / "python3")
        made = subprocess.run([sys.executable, "-m", "venv", str(cls.place / "venv")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=environment())
        if made.returncode != 0:
            raise unittest.SkipTest("no virtual environment (Debian: package python3-venv): " + made.stdout.strip()[:300])

    def run_there(self, *arguments, **more):
        done = subprocess.run([self.python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=str(self.place), env=environment(**more))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def pip(self, *arguments, **more):
        return self.run_there("-m", "pip", "-q", *arguments, **more)

    def installed(self, what, recorder, **more):
        self.pip("install", "--force-reinstall", str(what), **more)
        version, name, file = self.run_there("-c", WHICH).split()
        self.assertTrue(file.startswith(str(self.place)), file)
        self.assertEqual(name, "edgeprof." + recorder)
        return version

    @unittest.skipUnless(COMPILER, "no C compiler, or no Python.h of this interpreter")
    def test_the_folder_is_installed_with_the_extension_and_records(self):
        before = sources()
        self.installed(FOLDER, "_native")
        self.assertEqual(sources(), before)
        with Daemon() as daemon:
            self.run_there("-c", APP, EDGEPROF_RUNTIME_DIR=str(daemon.run_dir))
            app = until("all has arrived", lambda: (a := app_of(daemon, "installed")) and a["received"] == 200 and a)
            self.assertEqual((app["sent"], app["dropped"], app["invalid"]), (200, 0, 0))

    def test_without_a_compiler_it_records_in_python(self):
        self.installed(FOLDER, "_pure", CC="/bin/false")

    @unittest.skipUnless(COMPILER, "no C compiler, or no Python.h of this interpreter")
    def test_the_source_archive_is_enough(self):
        code = "import sys; sys.path.insert(0, %r); import wheel_backend as w; print(w.build_sdist(%r))"
        names = [self.run_there("-c", code % (str(FOLDER), str(self.place))).strip() for _ in range(2)]
        archive = self.place / names[0]
        first = archive.read_bytes()
        with tarfile.open(str(archive)) as tar:
            files = tar.getnames()
            tar.extractall(str(self.place))
        self.assertEqual({file.split("/")[0] for file in files}, {archive.name[: -len(".tar.gz")]})
        top = self.place / files[0].split("/")[0]
        self.assertIn("Version: %s\n" % self.installed(archive, "_native"), (top / "PKG-INFO").read_text())
        shutil.move(str(archive), str(self.place / "first"))
        self.run_there("-c", code % (str(top), str(self.place)))  # an archive of the archive is the same
        self.assertEqual(archive.read_bytes(), first)
        self.installed(archive, "_pure", EDGEPROF_PURE="1")

    def test_uninstalling_leaves_nothing(self):
        self.installed(FOLDER, "_pure", EDGEPROF_PURE="1")
        self.pip("uninstall", "-y", "edgeprof")
        self.assertEqual([str(path) for path in (self.place / "venv").rglob("*edgeprof*")], [])


if __name__ == "__main__":
    support.main()
