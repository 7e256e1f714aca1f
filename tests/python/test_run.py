#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`python3 -m edgeprof run`: a program behaves as without it, and its pipeline is recorded. The libraries are
small stand-ins of their public interface; test_run_real.py has the real ones."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile

import support
from support import DaemonCase, app_env, app_of, ctl, until

STANDINS = {
    "cv2.py": """
__version__ = "4.9.0-standin"
cuda = False
class VideoCapture:
    def __init__(self, *names): self.left = 20
    def read(self):
        self.left -= 1
        return self.left >= 0, self.left
    def grab(self): return self.read()[0]
class VideoWriter:
    def write(self, image): pass
def resize(image, size=None):
    "Stands for cv2.resize."
    if image is None: raise ValueError("no image")
    return image
def cvtColor(image, code): return image
def imwrite(name, image): return True
class dnn:
    DNN_TARGET_CPU, DNN_TARGET_CUDA = 0, 6
    class Net:
        def setPreferableBackend(self, backendId): pass
        def setPreferableTarget(self, targetId): pass
        def forward(self): return "boxes"
    def readNetFromONNX(name): return dnn.Net()
    def getAvailableTargets(backend): return [0, 6] if backend == 5 and cuda else [0]
    def blobFromImage(image): return image
    def blobFromImages(images): return images
""",
    "onnxruntime.py": """
__version__ = "1.17.0-standin"
class InferenceSession:
    def __init__(self, model, sess_options=None, providers=None): pass
    def get_providers(self): return ["CPUExecutionProvider"]
    def run(self, names, feed): return [feed]
""",
    "tflite_runtime/interpreter.py": """
class Interpreter:
    def __init__(self, model_path=None, model_content=None, experimental_delegates=None): pass
    def invoke(self): pass
class Delegate: pass
def load_delegate(library, options=None):
    if "absent" in library: raise ValueError(library)
    return Delegate()
""",
    "tflite_runtime/__init__.py": "__version__ = '2.14.0-standin'\n",
    "torch.py": """
__version__ = "2.1.0-standin"
class device:
    type = "cuda"
class Tensor:
    device = device()
class nn:
    class Module:
        def __call__(self, *args, **kwargs): return self.forward(*args, **kwargs)
        def parameters(self): return iter(())
""",
    "picamera2.py": """
__version__ = "0.3.12-standin"
class Picamera2:
    def capture_array(self, name="main"): return [name]
    def capture_image(self, name="main"): return self.capture_array(name)
""",
}
LOOP = """
import cv2
camera = cv2.VideoCapture(0)
while True:
    ok, image = camera.read()
    if not ok: break
    cv2.imwrite("x.png", cv2.resize(image, (2, 2)))
"""


def not_ours(text):
    """Standard error without the report."""
    return text.partition("PIPELINE PROFILING REPORT")[0].partition("edgeprof: nothing was measured")[0]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in STANDINS.items():
            self.write("lib/" + name, text)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def env(self, daemon=None, **more):
        path = os.pathsep.join([str(support.MODULE), str(self.folder / "lib")])
        return app_env(daemon, **{"PYTHONPATH": path, **more})

    def python(self, *words, daemon=None, status=0, env=None, **options):
        done = subprocess.run(
            [sys.executable, *words], env=env or self.env(daemon), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, timeout=120, cwd=self.folder, **options
        )
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done

    def profile(self, text, *words, **options):
        """The program's standard error under `run`."""
        path = self.write("app.py", text)
        return self.python("-m", "edgeprof", "run", *words, path, **options).stderr

    def counts(self, text):
        """{stage: count} of the local report."""
        lines = text.partition("PIPELINE PROFILING REPORT")[2].splitlines()[2:]
        return {line.split()[0]: int(line.split()[4]) for line in lines if len(line.split()) > 4}


class Same(Case):
    """Standard output, standard error and exit status are those of the program alone."""

    def same(self, *words, status=0, **options):
        plain = self.python(*words, status=None, **options)
        ours = self.python("-m", "edgeprof", "run", *words, status=None, **options)
        self.assertEqual(plain.returncode, status, plain.stderr)
        outputs = [re.sub("0x[0-9a-f]+", "0x", done.stdout) for done in (ours, plain)]
        self.assertEqual((ours.returncode, outputs[0], not_ours(ours.stderr)), (status, outputs[1], plain.stderr))
        return ours

    def test_ends_of_programs(self):
        for text, status in [
            ("pass", 0), ("import sys; sys.exit(3)", 3), ("raise SystemExit('bye')", 1), ("1/0", 1),
            ("import os; os._exit(4)", 4), ("def f(:", 1), ("import cv2; cv2.nothing", 1),
            ("raise KeyboardInterrupt", -signal.SIGINT),
            ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
            ("import sys; sys.excepthook = lambda *a: print(a[0], a[2].tb_next); 1/0", 1),
            ("import atexit; atexit.register(lambda: print('last')); print('first')", 0),
            ("import os\nif os.fork(): print(os.wait()[1])\nelse: raise SystemExit(5)", 0),
            ("import os, sys\nif len(sys.argv) < 2: os.execv(sys.executable, [sys.executable, __file__, '1'])\nprint(sys.argv[1])", 0),
            ("import sys; sys.stderr.close()", 0),
        ]:  # fmt: skip
            with self.subTest(text=text):
                self.same(self.write("app.py", ("" if text == "1/0" else LOOP) + text), status=status)

    def test_what_a_program_sees_of_itself(self):
        text = """
import os, sys, __main__
print(__name__, globals().get("__file__"), __spec__, __package__, __builtins__, sys.argv, sys.path, __main__.__dict__ is globals())
print(sys._getframe().f_back, os.environ.get("PYTHONPATH"), [n for n in os.environ if "RUN" in n], sys.flags)
"""
        self.write("pkg/__init__.py", "")
        self.write("pkg/other.py", "word = 'relative'\n")
        self.write("pkg/__main__.py", text + "from .other import word; print(word)\n")
        script = self.write("dir/__main__.py", text)
        with zipfile.ZipFile(self.folder / "app.zip", "w") as archive:
            archive.write(script, "__main__.py")
        for words in ([script, "a", "-b"], ["dir"], ["app.zip", "--list"], ["-m", "pkg", "-a"], ["-m", "pkg.other"], ["-c", text, "x"]):
            with self.subTest(words=words):
                self.same(*words)
        self.same("-", "y", input=text)
        self.same("absent.py", status=2)
        self.same("-m", "absent", status=1)
        self.same(self.write("reads.py", "import sys; print(sys.stdin.read())"), input="line\n")
        for flags in (["-u"], ["-O", "-X", "dev"], ["-uB"]):
            plain = self.python(*flags, script).stdout
            self.assertEqual(self.python(*flags, "-m", "edgeprof", "run", script).stdout, plain)

    def test_results_exceptions_and_names(self):
        text = LOOP + """
import pickle, inspect, copy
print(cv2.resize(5), cv2.resize.__name__, cv2.resize.__doc__, inspect.signature(cv2.resize), cv2.resize.__module__)
for arguments in ((None,), (), (1, 2, 3)):
    try: cv2.resize(*arguments)
    except Exception as error: print(repr(error))
print(type(camera), isinstance(camera, cv2.VideoCapture), pickle.loads(pickle.dumps(camera)).left)
print(pickle.loads(pickle.dumps(cv2.resize)) is cv2.resize, copy.copy(cv2.resize) is cv2.resize)
class Own(cv2.VideoCapture):
    def read(self): return super().read()
print(Own().read())
class Record: pass
print(pickle.loads(pickle.dumps(Record())).__class__ is Record)
"""
        self.same(self.write("app.py", text))

    def test_replaced_and_reloaded(self):
        text = """
import importlib, cv2
from cv2 import resize
cv2.resize = lambda image: "mine"
print(cv2.resize(1), resize(1))
importlib.reload(cv2)
print(cv2.resize(1), cv2.resize.__wrapped__.__name__ if hasattr(cv2.resize, "__wrapped__") else "resize")
"""
        self.same(self.write("app.py", text))

    def test_a_standard_error_that_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        for text in ("", "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)"):
            script = self.write("app.py", LOOP + text)
            command = [sys.executable, "-m", "edgeprof", "run", script]
            done = subprocess.run(command, env=self.env(), stderr=writer, cwd=self.folder, timeout=120)
            self.assertEqual(done.returncode, 0)

    def test_a_sitecustomize_of_the_user(self):
        self.write("lib/sitecustomize.py", "import builtins; builtins.custom = True\n")
        self.same(self.write("app.py", "import sitecustomize, subprocess, sys; print(sitecustomize.__file__, custom)\n"
                             "subprocess.run([sys.executable, '-c', 'import sys; print([n for n in sys.modules if \"edgeprof\" in n])'])"))

    def test_a_module_called_edgeprof(self):
        self.write("own/edgeprof.py", "print('another')\n")
        script = self.write("own/app.py", "import edgeprof, cv2; print(cv2.resize(1))")
        done = self.python("-m", "edgeprof", "run", script)
        self.assertEqual(done.stdout, "another\n1\n")
        self.assertIn("edgeprof: cv2 is not wrapped: the program has a module edgeprof of its own\n", done.stderr)


class Recorded(Case):
    def test_a_frame_is_from_one_capture_to_the_next(self):
        text = self.profile(LOOP)
        self.assertEqual(self.counts(text), {"capture": 21, "preprocess": 20, "output": 20})
        self.assertRegex(text, r"FRAME .* 20 frames")
        two = "import cv2\na, b = cv2.VideoCapture(0), cv2.VideoCapture(1)\nfor i in range(10): a.read(); b.read()"
        self.assertRegex(self.profile(two), r"FRAME .* 9 frames")
        own = "import edgeprof, cv2\na = cv2.VideoCapture(0)\nfor i in range(10):\n with edgeprof.frame(): a.read()"
        self.assertNotIn("FRAME", self.profile(own))

    def test_a_library_that_imports_itself(self):
        """As the packages of OpenCV for pip do."""
        self.write("lib/native/cv2.py", STANDINS["cv2.py"])
        (self.folder / "lib/cv2.py").unlink()
        self.write("lib/cv2/__init__.py", """
import importlib, sys
sys.path.insert(0, %r)
own = sys.modules.pop("cv2")
native = importlib.import_module("cv2")
sys.modules["cv2"] = own
globals().update({k: v for k, v in vars(native).items() if k not in globals() or k == "__version__"})
""" % str(self.folder / "lib/native"))
        text = LOOP + "import importlib\nimportlib.reload(cv2.sys.modules['cv2'])\ncv2.resize(1)\n"
        self.assertEqual(self.counts(self.profile(text))["preprocess"], 21)

    def test_outermost_calls_count(self):
        text = self.profile("""
import torch, picamera2
class Inner(torch.nn.Module):
    def forward(self, x): return x
class Outer(torch.nn.Module):
    def forward(self, x): return Inner()(Inner()(x))
for i in range(5): Outer()(torch.Tensor())
camera = picamera2.Picamera2()
for i in range(4): assert camera.capture_image("lores") == ["lores"]
""")
        self.assertEqual(self.counts(text), {"infer@gpu": 5, "capture": 4})
        self.assertRegex(text, r"FRAME .* 3 frames")

    def test_units_and_fallbacks(self):
        onnx = "import onnxruntime as o\ns = o.InferenceSession('m', providers=%r)\nfor i in range(3): s.run(None, {})"
        self.assertIn("running on CPU fallback", self.profile(onnx % [("CUDAExecutionProvider", {}), "CPUExecutionProvider"]))
        self.assertNotIn("fallback", self.profile(onnx % ["CPUExecutionProvider"]))
        lite = """
from tflite_runtime.interpreter import Interpreter, load_delegate
try: delegates = [load_delegate(%r)]
except ValueError: delegates = None
i = Interpreter("m", experimental_delegates=delegates)
i.invoke()
"""
        self.assertIn("infer@edgetpu", self.profile(lite % "libedgetpu.so.1"))
        self.assertRegex(self.profile(lite % "absent-libedgetpu.so.1"), "infer@cpu .*running on CPU fallback")
        net = "import cv2\ncv2.cuda = %s\nn = cv2.dnn.readNetFromONNX('m')\nn.setPreferableTarget(%d)\n"
        net += "n.setPreferableBackend(backendId=5)\nn.forward()"
        self.assertRegex(self.profile(net % (False, 6)), "infer@cpu .*running on CPU fallback")
        self.assertNotIn("fallback", self.profile(net % (False, 0)))
        self.assertEqual(self.counts(self.profile(net % (True, 6))), {"model_load": 1, "infer@gpu": 1})

    def test_unknown_versions_are_left_alone(self):
        self.write("lib/cv2.py", STANDINS["cv2.py"].replace('"4.9.0', '"9.1').replace("def cvtColor", "def gone"))
        text = self.profile("import cv2; assert not hasattr(cv2.resize, '__wrapped__')")
        self.assertIn("edgeprof: cv2 9.1-standin is not wrapped: known versions are 4.x\n", text)
        self.write("lib/cv2.py", STANDINS["cv2.py"].replace("def cvtColor", "def gone"))
        text = self.profile("import cv2; cv2.resize(1)")
        self.assertIn("edgeprof: cv2 4.9.0-standin: cvtColor is not wrapped: ", text)
        self.assertEqual(self.counts(text), {"preprocess": 1})

    def test_list(self):
        self.assertIn("edgeprof: cv2.resize -> preprocess\n", self.profile("import cv2", "--list"))
        self.assertIn("torch.nn.Module.__call__ -> infer\n", self.python("-m", "edgeprof", "run", "--list").stdout)

    def test_nothing_is_imported_or_wrapped_without_need(self):
        text = "import sys; assert not {'cv2', 'torch', 'edgeprof', 'json', 'socket'} & set(sys.modules)"
        self.assertEqual(self.profile(text), "edgeprof: nothing was measured: no library that is wrapped was imported\n")
        self.assertEqual(self.profile(LOOP, env=self.env(EDGEPROF_DISABLE="1")), "")

    def test_usage(self):
        for words in ([], ["walk"], ["run"], ["run", "--fast", "x"], ["run", "-a"]):
            done = self.python("-m", "edgeprof", *words, status=2)
            self.assertRegex(done.stderr, "^edgeprof: .*\nusage: ")
        self.assertIn("usage: ", self.python("-m", "edgeprof", "run", "--help").stdout)


class WithDaemon(DaemonCase, Case):
    def stages(self, app):
        until("its end", lambda: (app_of(self.daemon, app) or {}).get("state") == "ended")
        return {(s["stage"], s.get("unit")): s for s in ctl(self.daemon, "stages", app)["stages"]}

    def total(self, app):
        return {name: s["total_count"] for (name, unit), s in self.stages(app).items()}

    def test_the_report_is_the_daemons(self):
        text = self.profile(LOOP, "-a", "vision", daemon=self.daemon)
        self.assertIn("REPORT OF vision\n", text)
        self.assertEqual(self.total("vision"), {"capture": 21, "preprocess": 20, "output": 20})
        self.assertEqual(ctl(self.daemon, "frames", "vision")["frames"][0]["total_count"], 20)

    def test_a_fallback_is_known_to_the_daemon(self):
        self.profile("import onnxruntime as o\ns = o.InferenceSession('m', providers=['CUDAExecutionProvider'])\n"
                     "for i in range(3): s.run(None, {})", "-a", "fallback", daemon=self.daemon)
        self.assertTrue(self.stages("fallback")["infer", "cpu"]["cpu_fallback"])

    def test_threads_tasks_and_processes(self):
        text = """
import asyncio, cv2, multiprocessing, threading
def work(number):
    for i in range(10): cv2.resize(i, (1, 1))
async def tasks():
    async def one():
        for i in range(10):
            cv2.resize(i, (1, 1)); await asyncio.sleep(0)
    await asyncio.gather(one(), one())
if __name__ == "__main__":
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    asyncio.run(tasks())
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        children = [context.Process(target=work, args=(i,)) for i in range(2)]
        for c in children: c.start()
        for c in children: c.join(); assert c.exitcode == 0
"""
        env = self.env(self.daemon, PYTHONWARNINGS="")
        self.profile(text, "-a", "many", env=env)
        self.assertEqual(self.total("many"), {"preprocess": 40 + 20 + 60})
        self.assertIn("Child processes are not included.", self.profile(text, env=self.env(PYTHONWARNINGS="")))

    def test_a_report_of_processes_alone(self):
        text = """
import %smultiprocessing
def work(number):
    import cv2
    for i in range(10): cv2.resize(i, (1, 1))
if __name__ == "__main__":
    with multiprocessing.get_context(%r).Pool(2) as pool: pool.map(work, range(2))
"""
        for method in ("fork", "spawn", "forkserver"):
            for head in ("", "cv2, "):
                report = self.profile(text % (head, method), "-a", method + str(len(head)), daemon=self.daemon)
                self.assertRegex(report, r"\npreprocess .* 20\n", (method, head))
        report = self.profile("import cv2", daemon=self.daemon)
        self.assertEqual(report, "edgeprof: nothing was measured: the program called nothing that is wrapped\n")

    def test_a_daemon_that_dies(self):
        with support.Daemon() as daemon:
            text = LOOP + "import os, signal, edgeprof, time\nassert edgeprof.counts()['attached']\nos.kill(%d, signal.SIGKILL)" % daemon.pid
            report = self.profile(text, env=self.env(daemon))
            daemon.process.wait()
            daemon.process = None
        self.assertEqual(self.counts(report)["capture"], 21)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be another user")
    def test_another_user(self):
        os.chmod(self.folder, 0o755)
        path = self.write("app.py", "import cv2, os; os.setgid(65534); os.setuid(65534)\n" + LOOP)
        done = self.python("-m", "edgeprof", "run", "-a", "other", path, daemon=self.daemon)
        self.assertEqual(done.stdout, "")
        self.assertIn("PIPELINE PROFILING REPORT", done.stderr)


if __name__ == "__main__":
    support.main()
