#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`python3 -m edgeprof run` with the libraries themselves, as far as the distribution's interpreter has them
(README.md says what to install)."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import app_env

PYTHON = "/usr/bin/python3"  # for which distributions have libraries


def needs(code):
    """Skips unless the interpreter runs the code."""
    done = subprocess.run([PYTHON, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return unittest.skipIf(done.returncode, "%s cannot: %s" % (PYTHON, code))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def same(self, text, *words):
        """What was printed, which is the same without edgeprof, and {stage: count}."""
        script = self.folder / "app.py"
        script.write_text(text)
        env, outputs = app_env(PYTHONWARNINGS="", OPENCV_LOG_LEVEL="SILENT"), []
        for command in ([str(script), *words], ["-m", "edgeprof", "run", str(script), *words]):
            done = subprocess.run([PYTHON, *command], env=env, cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=240)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.append(done.stdout)
        self.assertEqual(outputs[0], outputs[1])
        self.assertNotIn("is not wrapped", done.stderr)
        self.report = done.stderr.partition("PIPELINE PROFILING REPORT")[2]
        lines = [line.split() for line in self.report.splitlines()[2:]]
        return {line[0]: int(line[4]) for line in lines if len(line) > 4}


@needs("import cv2, numpy")
class OpenCV(Case):
    def test_a_file_is_read_converted_and_written(self):
        counts = self.same("""
import cv2, numpy, pickle
image = numpy.zeros((48, 64, 3), numpy.uint8)
writer = cv2.VideoWriter("a.avi", cv2.VideoWriter_fourcc(*"MJPG"), 25, (64, 48))
for i in range(10): writer.write(image)
writer.release()
camera = cv2.VideoCapture("a.avi")
while True:
    ok, image = camera.read()
    if not ok: break
    small = cv2.cvtColor(cv2.resize(image, (32, 24)), cv2.COLOR_BGR2GRAY)
    cv2.dnn.blobFromImage(image)
print(cv2.imwrite("a.png", small), small.shape, small.mean())
print(type(camera), isinstance(camera, cv2.VideoCapture), cv2.VideoCapture.__module__, cv2.VideoCapture.read.__name__)
print(cv2.resize, pickle.loads(pickle.dumps(cv2.resize)) is cv2.resize, cv2.resize.__doc__[:20])
class Own:
    function = cv2.resize  # builtin: no method
print(Own.function(small, (4, 4)).shape, Own().function(small, (4, 4)).shape, cv2.VideoCapture.read(camera)[0])
for arguments in ((), (small,), (None, (1, 1)), (small, "x")):
    try: cv2.resize(*arguments)
    except Exception as error: print(type(error), error)
try: cv2.VideoCapture.read(5)
except Exception as error: print(type(error))
""")  # fmt: skip
        self.assertEqual(counts["capture"], 13)
        self.assertEqual(counts["output"], 11)
        self.assertGreaterEqual(counts["preprocess"], 32)
        self.assertRegex(self.report, "FRAME ")

    def test_a_network_falls_back_to_the_cpu(self):
        (self.folder / "n.prototxt").write_text(
            'input: "x" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n'
            'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n')  # fmt: skip
        text = """
import cv2, numpy
net = cv2.dnn.readNetFromCaffe("n.prototxt")
net.setPreferableBackend(cv2.dnn.DNN_BACKEND_CUDA)
net.setPreferableTarget(cv2.dnn.DNN_TARGET_CUDA)
for i in range(3):
    net.setInput(cv2.dnn.blobFromImage(numpy.ones((8, 8, 3), numpy.uint8)))
    print(net.forward().sum(), type(net))
"""
        counts = self.same(text)
        self.assertEqual((counts["model_load"], sum(counts[n] for n in counts if n.startswith("infer"))), (1, 3))
        if "infer@cpu" in counts:  # else this OpenCV has CUDA
            self.assertIn("running on CPU fallback", self.report)


@needs("import gi; gi.require_version('GstApp', '1.0'); from gi.repository import GstApp")
class GStreamer(Case):
    def test_samples_by_signal_and_by_method(self):
        text = """
import gi, sys
gi.require_version("Gst", "1.0"); gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp
Gst.init(None)
pipeline = Gst.parse_launch("videotestsrc num-buffers=12 ! video/x-raw,width=64,height=48 ! appsink name=s sync=false")
sink = pipeline.get_by_name("s")
pipeline.set_state(Gst.State.PLAYING)
pull = sink.pull_sample if sys.argv[1] == "method" else lambda: sink.emit("pull-sample")
samples = list(iter(pull, None))
pipeline.set_state(Gst.State.NULL)
print(len(samples), type(sink).__mro__[0], type(samples[0]))
"""
        for how in ("signal", "method"):
            self.assertEqual(self.same(text, how), {"capture": 13})


@needs("import torch")
class PyTorch(Case):
    def test_the_outermost_module_is_the_inference(self):
        counts = self.same("""
import io, pickle, threading, torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU())).eval()
x = torch.ones(1, 4)
with torch.no_grad():
    for i in range(5): print(model(x).sum().item())
    thread = threading.Thread(target=lambda: model(input=x)); thread.start(); thread.join()
    print(pickle.loads(pickle.dumps(model))(x).sum().item(), torch.jit.script(model)(x).sum().item())
    try: model(1, 2, 3)
    except TypeError as error: print(str(error)[-50:])
""")
        self.assertEqual(counts, {"infer@cpu": 9})

    @needs("import torch; torch.compile")
    def test_the_compiler_sees_the_modules_only(self):
        counts = self.same("""
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
compiled = torch.compile(model, backend="eager", fullgraph=True)
with torch.no_grad(): print([torch.equal(compiled(torch.ones(1, 4)), model(torch.ones(1, 4))) for i in range(3)])
""")
        self.assertEqual(sum(counts.values()), 6)


def _field(number, value):
    """A field of a protocol buffer, of the length that fits into a byte."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


@needs("import onnxruntime, numpy")
class OnnxRuntime(Case):
    def test_a_session_that_did_not_get_its_provider(self):
        shape = _field(2, _field(1, _field(1, 1) + _field(2, _field(1, _field(1, 4)))))
        node = _field(1, b"x") + _field(1, b"x") + _field(2, b"y") + _field(4, b"Add")
        graph = _field(1, node) + _field(2, b"g") + _field(11, _field(1, b"x") + shape) + _field(12, _field(1, b"y") + shape)
        model = _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))
        (self.folder / "m.onnx").write_bytes(model)
        text = """
import sys, warnings, numpy, onnxruntime
warnings.simplefilter("ignore")
session = onnxruntime.InferenceSession("m.onnx", providers=sys.argv[1:])
for i in range(5): print(session.run(None, {"x": numpy.ones(4, numpy.float32)}))
try: session.run(None, {})
except Exception as error: print(type(error), error)
"""
        self.assertEqual(self.same(text, "CPUExecutionProvider"), {"model_load": 1, "infer@cpu": 6})
        self.assertNotIn("fallback", self.report)
        counts = self.same(text, "CUDAExecutionProvider", "CPUExecutionProvider")
        if "infer@cpu" in counts:  # else this ONNX Runtime has CUDA
            self.assertIn("running on CPU fallback", self.report)


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    if program.result.wasSuccessful() and len(program.result.skipped) == program.result.testsRun:
        print("none of the libraries is installed")
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
