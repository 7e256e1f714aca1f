#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed library in builds of others: a C and a C++ program find it through pkg-config and through CMake's
find_package(edgeprof), at another place than it was made for, and the daemon sees both."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import BUILD, SOURCE, Daemon, run_tests, until

FLAGS = os.environ.get("EDGEPROF_FLAGS", "")  # a library with sanitizers needs them in the program, too
COMPILERS = {"CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
EXAMPLES = {"CC": "hello_stages.c", "CXX": "hello_stages.cpp"}
PROJECT = """cmake_minimum_required(VERSION 3.16)
project(consumer C CXX)
find_package(edgeprof {version} REQUIRED)
find_package(edgeprof REQUIRED)  # somebody else's file of the same project
add_executable(in_CC hello_stages.c)
target_link_libraries(in_CC PRIVATE edgeprof::edgeprof)
set(CMAKE_CXX_STANDARD 11)
add_executable(in_CXX hello_stages.cpp)
target_link_libraries(in_CXX PRIVATE edgeprof::edgeprof)
"""


def missing(*tools):
    found = [tool for tool in (*COMPILERS.values(), *tools) if not shutil.which(tool)]
    return f"not installed: {', '.join(found)}" if found else None


@contextlib.contextmanager
def installed():
    """The tree with what a developer installs, and an empty folder."""
    with tempfile.TemporaryDirectory(prefix="edgeprof-packages.") as scratch:
        root, work = pathlib.Path(scratch) / "root", pathlib.Path(scratch) / "work"
        work.mkdir()
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "devel,runtime"],
                       check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, DESTDIR=str(root)))
        yield root, work


def the_daemon_sees(binary, library):
    with Daemon() as daemon:
        env = dict(daemon.env, LD_LIBRARY_PATH=str(library))
        subprocess.run([binary, "5"], env=env, check=True, stdout=subprocess.DEVNULL)
        until("its events", lambda: any(app["received"] > 15 for app in daemon.call("ListApps")["apps"]))


def run(command, env=None):
    done = subprocess.run([str(word) for word in command], env=dict(os.environ, **(env or {})),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def build(command, env=None):
    status, said = run(command, env)
    assert status == 0, (command, said)
    return said


def test_pkg_config():
    if reason := missing("pkg-config"):
        return reason
    with installed() as (root, work):
        file = next(root.rglob("libedgeprof.pc"))
        env = {"PKG_CONFIG_PATH": str(file.parent), "PKG_CONFIG_SYSROOT_DIR": str(root),
               "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
        words = build(["pkg-config", "--cflags", "--libs", "libedgeprof"], env).split()
        assert any(str(root) in word for word in words), words
        for language, compiler in COMPILERS.items():
            example = SOURCE / "client/examples" / EXAMPLES[language]
            build([compiler, *FLAGS.split(), "-o", work / language, example, *words])
            the_daemon_sees(work / language, file.parents[1])
    return None


def cmake(root, work, version):
    prefix = next(path for path in root.rglob("edgeprof.h")).parents[1]
    (work / "CMakeLists.txt").write_text(PROJECT.format(version=version))
    shutil.rmtree(work / "build", ignore_errors=True)
    return run(["cmake", "-G", "Ninja", "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
               dict(COMPILERS, CFLAGS=FLAGS, CXXFLAGS=FLAGS))


def test_cmake():
    if reason := missing("cmake"):
        return reason
    with installed() as (root, work):
        for name in EXAMPLES.values():
            shutil.copy(SOURCE / "client/examples" / name, work)
        status, said = cmake(root, work, "0.1")
        assert status == 0, said
        build(["cmake", "--build", work / "build"])
        library = next(root.rglob("libedgeprof.so")).parent
        for language in EXAMPLES:
            the_daemon_sees(work / "build" / f"in_{language}", library)
        for version in ("0.2", "1.0"):
            status, said = cmake(root, work, version)
            assert status != 0 and "0.1.0" in said, said
    return None


if __name__ == "__main__":
    run_tests(globals())
