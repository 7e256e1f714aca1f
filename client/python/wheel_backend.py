# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel and the source archive of the module edgeprof for pip (PEP 517), with nothing but the
standard library.

With a C compiler, Python.h and the sources of libedgeprof, the wheel holds the extension, for every CPython from
3.8 on; else, and with EDGEPROF_PURE=1, it is one for any machine. The source archive has those sources in its
folder source, at the places where this repository has them."""
import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE / "source" if (HERE / "source").is_dir() else HERE.parents[1]
SOURCES = ["client/python/fast/*.[ch]", "client/libedgeprof/*.[ch]"]
SOURCES += ["proto/" + name for name in ("fnv.h", "mapping.[ch]", "name.[ch]")]
FLAGS = "-shared -fPIC -O2 -std=c11 -fvisibility=hidden -pthread -D_GNU_SOURCE -DPy_LIMITED_API=0x03080000"
FLAGS += " -fno-plt -fno-tree-slp-vectorize -Wl,-z,nodelete -Wl,-Bsymbolic"


def _sources():
    return sorted(file for pattern in SOURCES for file in ROOT.glob(pattern))


def _extension(folder):
    """The extension as a file in the folder, or None."""
    if os.environ.get("EDGEPROF_PURE") == "1" or sys.implementation.name != "cpython":
        return None
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    files = [str(file) for file in _sources() if file.suffix == ".c"]
    version = '-DEDGEPROF_VERSION="%s"' % _version()
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    output = os.path.join(folder, "_fast.abi3.so")
    command = compiler + FLAGS.split() + [version, "-I%s" % ROOT, "-I%s" % sysconfig.get_path("include")]
    try:
        subprocess.run(command + files + ["-o", output], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print("edgeprof records in Python: %s" % error, file=sys.stderr)
        return None
    return output


def _version():
    return re.search('__version__ = "(.*)"', (HERE / "edgeprof" / "__init__.py").read_text()).group(1)


def _metadata():
    lines = ["Metadata-Version: 2.1", "Name: edgeprof", "Version: " + _version(), "License: Apache-2.0"]
    lines += ["Summary: Reports the stages and frames of a pipeline to edgeprofd", "Requires-Python: >=3.8", ""]
    return "\n".join(lines).encode()


def _module():
    sources = sorted(file for file in (HERE / "edgeprof").rglob("*.py*") if file.suffix != ".pyc")
    return {file.relative_to(HERE).as_posix(): file.read_bytes() for file in sources}


def build_sdist(sdist_directory, config_settings=None):
    files = {"PKG-INFO": _metadata()}
    files.update((name, (HERE / name).read_bytes()) for name in ("pyproject.toml", "wheel_backend.py"))
    files.update(_module())
    for file in _sources() + [ROOT / "LICENSE"]:
        files["source/" + file.relative_to(ROOT).as_posix()] = file.read_bytes()
    folder = "edgeprof-%s" % _version()
    path = os.path.join(sdist_directory, folder + ".tar.gz")
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=when) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo("%s/%s" % (folder, name))
                entry.size, entry.mtime = len(data), when
                archive.addfile(entry, io.BytesIO(data))
    return os.path.basename(path)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        extension = _extension(folder)
        platform = re.sub("[-.]", "_", sysconfig.get_platform())
        tag = "py3-none-any" if extension is None else "cp38-abi3-" + platform
        files = _module()
        if extension is not None:
            files["edgeprof/_fast.abi3.so"] = pathlib.Path(extension).read_bytes()
    about = "edgeprof-%s.dist-info/" % _version()
    files[about + "METADATA"] = _metadata()
    lines = ["Wheel-Version: 1.0", "Generator: edgeprof", "Root-Is-Purelib: %s" % str(extension is None).lower()]
    files[about + "WHEEL"] = "\n".join(lines + ["Tag: " + tag, ""]).encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[about + "RECORD"] = (record + about + "RECORD,,\n").encode()
    wheel = "edgeprof-%s-%s.whl" % (_version(), tag)
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel
