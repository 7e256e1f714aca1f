#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code that README and the manual pages show: it compiles, links, runs, and is seen."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from harness import BUILD, CTL, SOURCE, Daemon, program, run_tests, until

sys.path.insert(0, str(SOURCE / "tests" / "tools"))
import snippets  # noqa: E402
from pages import LIBRARY, sanitizer  # noqa: E402

INCLUDE = SOURCE / "client" / "libedgeprof"
BLOCKS = snippets.everything(SOURCE)

# What a fragment stands in: the program around it.
C_AROUND = """#include <edgeprof.h>
#include <stdbool.h>
struct image {{ int width; }};
static bool running = true;
static int run_model(void) {{ running = false; return 0; }}
static struct image camera_next(void) {{ running = false; return (struct image){{0}}; }}
int main(void)
{{
	int rounds = 0;
	(void)camera_next;
	(void)run_model;
	(void)running;
	while (rounds++ < 3) {{
{body}
	}}
	return 0;
}}
"""
CPP_AROUND = """#include <chrono>
{includes}
static bool running = true;
static int run_model() {{ running = false; return 3; }}
int main()
{{
{body}
	return 0;
}}
"""
PYTHON_AROUND = """camera = range(3)
prepare = model = lambda image: image
"""


def whole(block):
    """The block as a program."""
    if block.name:
        return block.text
    text = block.text
    if block.language == "python":
        return PYTHON_AROUND + text
    if block.language == "cpp":
        includes = "\n".join(re.findall(r"^#include.*$", text, re.M))
        return CPP_AROUND.format(includes=includes, body=re.sub(r"^#include.*\n", "", text, flags=re.M))
    text = text.replace("\t...\n", "\t(void)image;\n").replace("for (unsigned long n = 0;; n++)", "for (unsigned long n = 0; n < 3; n++)")
    return C_AROUND.format(body=text)


def compile_block(block, folder):
    compiler = {"c": "cc", "cpp": "c++"}[block.language]
    source = os.path.join(folder, "snippet." + block.language)
    with open(source, "w", encoding="utf-8") as file:
        file.write(whole(block))
    done = subprocess.run(
        [compiler, "-Wall", "-Wextra", *sanitizer(), "-I", INCLUDE, source, "-o", source + ".out",
         "-L", LIBRARY, "-Wl,-rpath," + str(LIBRARY), "-ledgeprof"],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "warning" not in done.stderr, (block.place, done.stderr)
    return [source + ".out"]


def test_they_compile_in_each_standard():
    """As -std=c99 has them, without what gnu17 adds; the programs of the tutorial, too."""
    standards = {"c": ("cc", "c99", "c17"), "cpp": ("c++", "c++11", "c++20")}
    for block in BLOCKS + snippets.of_file(SOURCE / "docs" / "tutorials" / "cpp.md"):
        compiler, *names = standards.get(block.language, [None])
        for name in names if shutil.which(compiler or "") else []:
            done = subprocess.run(
                [compiler, "-std=" + name, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", INCLUDE,
                 "-x", compiler.replace("cc", "c"), "-"], input=whole(block), capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (block.place, name, done.stderr)


def command_of(block, folder):
    if block.language != "python":
        return compile_block(block, folder)
    path = os.path.join(folder, "snippet.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole(block))
    return [sys.executable, path]


def run_all(language):
    if language != "python" and not shutil.which({"c": "cc", "cpp": "c++"}[language]):
        return f"no compiler for {language} here"
    blocks = [block for block in BLOCKS if block.language == language]
    assert len(blocks) >= 2, blocks
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = dict(daemon.env, PYTHONPATH=str(SOURCE / "client" / "python"), ASAN_OPTIONS="detect_leaks=0")
        env.pop("LD_LIBRARY_PATH", None)
        for block in blocks:
            command = command_of(block, folder)
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and done.stderr == "", (block.place, done)
            app = re.search(r'(?:edgeprof_init|edgeprof::init|edgeprof\.connect)\("(.*?)"\)', block.text)
            if app:
                until(f"{block.place}: its stage", lambda: any(
                    stage["stage"].startswith("infer") and stage["total_count"] > 0
                    for stage in daemon.call("ListStages", app=app[1])["stages"]))
    return None


def test_the_c_snippets_run():
    return run_all("c")


def test_the_cpp_snippets_run():
    return run_all("cpp")


def test_the_python_snippets_run():
    return run_all("python")


def test_every_block_is_of_a_known_language():
    known = {"c", "cpp", "python", "sh", "text"}
    unknown = [block for block in BLOCKS if block.language not in known]
    # the grammar of a datagram, and what a table shows
    assert all("edgeprof" not in block.text for block in unknown), [block.place for block in unknown]


def test_the_commands_of_readme_are_understood():
    app = [str(BUILD / "client" / "examples" / "demo-pipeline"), "--app", "cam"]
    with Daemon() as daemon, program(app, daemon.env), tempfile.TemporaryDirectory() as folder:
        until("the app's stages", lambda: [a for a in daemon.call("ListApps")["apps"] if a["received"] > 100])
        commands = snippets.questions(SOURCE)
        assert len(commands) >= 15, commands
        for command in commands:
            words = shlex.split(command)[1:]
            done = subprocess.run([str(CTL), *words], env=daemon.env, cwd=folder, capture_output=True, text=True, timeout=60)
            # 1: bad news, 2: nothing of it here; never wrong usage, an unreachable daemon, or a refusal to root
            assert done.returncode in ((0, 1, 2) if os.geteuid() == 0 else (0, 1, 2, 77)), (command, done)


if __name__ == "__main__":
    run_tests(globals())
