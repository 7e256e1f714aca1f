#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EDGEPROF_SCOPE: scopes.c, compiled as C and as C++ by what compilers there are, without a warning,
optimized and not, records each stage as often as its name says."""
import os
import re
import shutil
import subprocess
import tempfile

from harness import BUILD, SOURCE, Daemon, run_tests, until

from test_snippets import sanitizer

LIBRARY = BUILD / "client" / "libedgeprof"
INCLUDE = SOURCE / "client" / "libedgeprof"
PROGRAM = SOURCE / "tests" / "integration" / "scopes.c"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wwrite-strings", "-Werror"]
# Pedantic: the macro needs more than C99 has, and says so to the compiler.
COMPILERS = {
    "c": [["gcc", "-std=c99", "-O0", "-D_POSIX_C_SOURCE=200809L"], ["gcc", "-std=c11", "-O3"],
          ["clang", "-std=gnu17", "-O0"], ["clang", "-std=c99", "-O2"]],
    "c++": [["g++", "-std=c++11", "-O0"], ["g++", "-std=c++20", "-O3"], ["clang++", "-std=c++17", "-O0"],
            ["clang++", "-std=c++11", "-O2"]],
}


def names_of(language):
    """What scopes.c records: the names and the counts in them."""
    text = PROGRAM.read_text()
    if language == "c":
        text = re.sub(r"^#ifdef __cplusplus\n(?!#include).*?^#endif$", "", text, flags=re.M | re.S)
    names = set(re.findall(r'"(\w+_\d+)"', text)) - {"buffer__1"}
    return {name: int(name.rsplit("_", 1)[1]) for name in names | {"buffer_a_1", "buffer_b_1", "buffer_c_1"}}


def check(daemon, command, language, folder):
    program = os.path.join(folder, "scopes")
    done = subprocess.run(
        [*command, *WARNINGS, *sanitizer(), "-x", language, PROGRAM, "-x", "none", "-I", INCLUDE, "-o", program,
         "-L", LIBRARY, "-Wl,-rpath," + str(LIBRARY), "-ledgeprof", "-lpthread"],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (command, done.stderr)
    env = dict(daemon.env, ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (command, done)
    wanted = names_of(language)

    def counts():
        return {row["stage"]: row["total_count"] for row in daemon.call("ListStages", app="scopes")["stages"]}

    until(f"{command}: the last stage", lambda: counts().get("threads_400") == 400)
    assert counts() == wanted, (command, {k: v for k, v in counts().items() if wanted.get(k) != v}, wanted.keys() - counts())
    rows = {row["stage"]: row for row in daemon.call("ListStages", app="scopes")["stages"]}
    assert (rows["unit_1"]["category"], rows["unit_1"]["unit"]) == ("model", "gpu"), rows["unit_1"]
    assert rows["category_1"]["category"] == "model", rows["category_1"]
    if language == "c++":
        assert rows["method_4"]["failed"] == rows["second_4"]["failed"] == 1, rows["method_4"]
    app = next(app for app in daemon.call("ListApps")["apps"] if app["name"] == "scopes")
    assert app["dropped"] == 1, app  # the scope of stage -1


def check_all(language):
    commands = [command for command in COMPILERS[language] if shutil.which(command[0])]
    if not commands:
        return f"no compiler for {language} here"
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            if "clang" in command[0] and sanitizer():
                continue  # its runtime is not gcc's
            with Daemon() as daemon:
                check(daemon, command, language, folder)
    return None


def test_scopes_in_c():
    return check_all("c")


def test_scopes_in_cpp():
    return check_all("c++")


if __name__ == "__main__":
    run_tests(globals())
