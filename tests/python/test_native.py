#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extension in C: when it is used, that nobody notices it, and how pip makes it."""
import os
import sys
import tempfile
import unittest
import zipfile

import support
from support import Daemon, app_env, run

import edgeprof  # noqa: E402

WHICH = "import edgeprof; print(edgeprof._recorder.recorder.__name__)"


class Choice(unittest.TestCase):
    def test_it_is_used_unless_another_is_asked_for(self):
        self.assertEqual(run(WHICH, app_env())[0], "edgeprof._native\n")
        for name in ("EDGEPROF_PURE", "EDGEPROF_PRINT"):
            self.assertEqual(run(WHICH, app_env(**{name: "1"}))[0], "edgeprof._pure\n")

    def test_nobody_notices(self):
        code = """
import edgeprof, inspect
for thing in (edgeprof.stage, edgeprof.frame, edgeprof.StageProfiler, edgeprof.StageProfiler.start,
              edgeprof.StageProfiler.stop, edgeprof.connect, edgeprof.counts, edgeprof.shutdown):
    names = [(p.name, p.default) for p in inspect.signature(thing).parameters.values()]
    print(thing.__name__, names, inspect.getdoc(thing))
for call in ("stage()", "stage(1)", "stage('')", "stage('x', frame=-1)", "stage('x', frame='1')", "frame(-1)",
             "frame(2**64 - 1)", "frame('1')", "stage('x', unit=1)", "stage('x', no=1)", "stage(['x'])",
             "StageProfiler().start(1)", "StageProfiler().start('')"):
    try:
        eval("edgeprof." + call)
    except Exception as error:
        print(call, type(error).__name__, error)
p = edgeprof.StageProfiler(); p.stop(); p.start("x"); p.start(stage_name="x"); p.stop()
print(p.orphan_end, p.abandoned, {name: len(times) for name, times in p.timings.items()})
edgeprof.stages._profilers.clear()
with edgeprof.frame(7) as f: print(f.id)
with edgeprof.frame() as f: print(f.id)
class Own(edgeprof.frame): pass
with Own(id=8) as f: print(f.id, list(edgeprof.counts()))
"""
        env = app_env()
        ours, others = run(code, env)[0], run(code, dict(env, EDGEPROF_PURE="1"))[0]
        self.assertEqual(ours.splitlines(), others.splitlines())


class Accounts(unittest.TestCase):
    def test_interpreters_of_one_process_are_counted_together(self):
        code = """
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
import edgeprof, sys, time
assert edgeprof.connect("interpreters")
inside = '''
import edgeprof
for i in range(50):
    with edgeprof.stage("inside"), edgeprof.frame(): pass
print(edgeprof._recorder.recorder.__name__, flush=True)
'''
new = sys.version_info >= (3, 12)
for own in [False, True][: new + 1]:
    kind = {"isolated": own} if (3, 10) <= sys.version_info < (3, 13) else {}
    if sys.version_info >= (3, 13): i = interpreters.create("isolated" if own else "legacy")
    else: i = interpreters.create(**kind)
    assert not getattr(interpreters, "exec" if sys.version_info >= (3, 13) else "run_string")(i, inside)
    interpreters.destroy(i)
with edgeprof.stage("outside"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == c["received"] == 101, c
print(new)
"""
        with Daemon() as daemon:
            lines = run(code, app_env(daemon))[0].split()
        # one that has a lock of its own does not load it, and records all the same
        self.assertEqual(lines[:-1], ["edgeprof._native", "edgeprof._pure"][: 1 + (lines[-1] == "True")])

    def test_stages_that_overlap_are_counted_once_each(self):
        code = """
import edgeprof, random, threading, time
assert edgeprof.connect("tangle")
kept = [edgeprof.stage(name) for name in "abc"]
choose, ends = random.Random(3), 0
def some(n):
    global ends
    for _ in range(n):
        entered = [choose.choice(kept + [edgeprof.stage("d"), edgeprof.stage("e", cpu_time=True)]) for _ in range(20)]
        for manager in entered: manager.__enter__()
        choose.shuffle(entered)
        for manager in entered: manager.__exit__(None, None, None)
        ends += 20 + sum(isinstance(manager, edgeprof._common.Detailed) for manager in entered)
        while edgeprof.counts()["in_ring"] > 500: time.sleep(0.001)
some(100)
for stage in kept: stage.__enter__()
thread = threading.Thread(target=lambda: [stage.__exit__(None, None, None) for stage in kept])
thread.start(); thread.join()          # ended by another
for stage in kept: stage.__exit__(None, None, None)   # and once too often
with edgeprof.stage("last"): pass
while edgeprof.counts()["in_ring"]: time.sleep(0.01)
c = edgeprof.counts()
assert c["sent"] == c["received"] == ends + 4, (c, ends)
"""
        with Daemon() as daemon:
            run(code, app_env(daemon, EDGEPROF_MAPPING_SIZE="1048576"))
            run(code, app_env(daemon, EDGEPROF_MAPPING_SIZE="1048576", EDGEPROF_PURE="1"))


class Wheel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def wheel(self, **environment):
        code = "import sys; sys.path.insert(0, %r); import wheel_backend; print(wheel_backend.build_wheel(%r))"
        code %= (str(support.ROOT / "client" / "python"), self.folder.name)
        name = run(code, app_env(**environment))[0].split()[-1]
        with zipfile.ZipFile(os.path.join(self.folder.name, name)) as archive:
            archive.extractall(os.path.join(self.folder.name, "site"))
        site = os.path.join(self.folder.name, "site")
        command = "import os; os.execl(%r, 'python3', '-m', 'edgeprof', 'run', '-c', 'pass')" % sys.executable
        self.assertIn("nothing was measured", run(command, app_env(PYTHONPATH=site))[1])
        return name, run(WHICH, app_env(PYTHONPATH=site))[0].strip()

    def test_without_a_compiler_it_is_for_any_machine(self):
        self.assertEqual(self.wheel(CC="/bin/false"), ("edgeprof-%s-py3-none-any.whl" % edgeprof.__version__, "edgeprof._pure"))

    def test_with_one_it_has_the_extension(self):
        name, recorder = self.wheel()
        self.assertRegex(name, "^edgeprof-[0-9.]+-cp38-abi3-linux_")
        self.assertEqual(recorder, "edgeprof._native")


if __name__ == "__main__":
    support.main()
