#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that compilers for ARM turn each publishing store of the event mapping into a release store, and
that nothing there is left to libatomic, whose locks two processes do not share.

codegen.py SOURCE-ROOT: compiles the files of the table with each cross compiler that is installed, with -O2;
in the long form, EDGEPROF_MODEL=long, with -O3 as well. Without inlining, the release stores of each function
are counted: stlr, or dmb and the store. As the files are built, their number may only grow, since inlining
copies."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

# file, function: the stores that mapping.pml has as release stores, and the rest of the mapping's
STORES = [
    ("client/libedgeprof/stage.c", "publish", ["head"]),
    ("client/libedgeprof/stage.c", "edgeprof_begin_", ["depth"]),
    ("client/libedgeprof/stage.c", "set_open_count", ["depth"]),
    ("client/libedgeprof/edgeprof.c", "publish", ["head"]),
    ("client/libedgeprof/thread.c", "chunk_take", ["base", "first_chunk", "next"]),
    ("client/libedgeprof/thread.c", "slot_release", ["state"]),
    ("client/libedgeprof/names.c", "names_copy", ["declarations"]),
    ("daemon/ingest/ring.c", "checkpoint", ["tail"]),
    ("daemon/ingest/ring.c", "next_chunk", ["tail_chunk"]),
    ("daemon/ingest/ring.c", "chunk_free", ["owner FREEING", "base", "owner 0"]),
]
# file, function, its read-modify-write with acquire
EXCHANGES = [
    ("client/libedgeprof/thread.c", "chunk_find"),
    ("client/libedgeprof/thread.c", "slot_take"),
]
# file, function, its acquire loads
LOADS = [
    ("daemon/ingest/ring.c", "begin_pass", ["head"]),
    ("daemon/ingest/ring.c", "resume", ["head"]),
    ("daemon/ingest/ring.c", "chunk_is", ["owner"]),
    ("daemon/ingest/ring.c", "next_chunk", ["first_chunk", "next"]),
    ("daemon/ingest/ring.c", "read_declarations", ["declarations"]),
]
# clang merges the stores to first_chunk and next into one to a selected address, and their loads likewise
MERGED_BY_CLANG = {"chunk_take": 2, "next_chunk": 1}

COMPILERS = [
    ("aarch64-linux-gnu-gcc", []),
    ("clang", ["--target=aarch64-linux-gnu"]),
    ("arm-linux-gnueabihf-gcc", []),
]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-fPIC", "-w", "-c"]
APART = {"gcc": ["-fno-inline", "-fno-crossjumping"], "clang": ["-fno-inline"]}


def functions(objdump, path):
    """The instructions of each function as (mnemonic, operands); a call is ("call", symbol)."""
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    result, body = {}, []
    for line in text.stdout.splitlines():
        label = re.match(r"[0-9a-f]+ <([^.>]*)\S*>:", line)
        call = re.search(r"R_A\w+_(?:CALL26|CALL|JUMP26|JUMP24|THM_CALL|THM_JUMP24|PLT32)\s+(\S+)", line)
        instruction = re.match(r"\s+[0-9a-f]+:\s+(\S+)\s*(.*)", line)
        if label:
            body = result.setdefault(label[1], [])
        elif call:
            body.append(("call", call[1]))
        elif instruction:
            body.append((re.sub(r"\.[nw]$", "", instruction[1]), instruction[2]))
    return result


def release_stores(body):
    """stlr; or the first access of memory after a dmb is a store, be it ldrexd and strexd."""
    count = 0
    for i, (name, _) in enumerate(body):
        if re.match(r"stlr[bh]?$", name):
            count += 1
        elif name == "dmb":
            after = [other for other, _ in body[i + 1 : i + 12] if re.match("ldr|str|ldm|stm|dmb|call|bl", other)]
            exchange = after[:1] == ["ldrexd"] and after[1:2] == ["strexd"]
            count += exchange or bool(after) and after[0].startswith("str")
    return count


def acquire_loads(body):
    """ldar, ldapr; or a dmb with a load right before it, but for stores to the stack."""
    count = 0
    for i, (name, _) in enumerate(body):
        if re.match(r"lda(p?)r[bh]?$", name):
            count += 1
        elif name == "dmb":
            before = [
                other for other, operands in body[max(i - 12, 0) : i]
                if re.match("ldr|str|ldm|stm|dmb|call|bl", other) and "[sp" not in operands
            ]  # fmt: skip
            count += bool(before) and before[-1].startswith("ldr")
    return count


def acquires_exchange(body):
    """casa, ldaxr, the call of gcc's that selects one of them; or ldrex, strex and dmb."""
    names = [name for name, _ in body]
    if any(re.match(r"(casal?|ldaxr)$", name) for name in names):
        return True
    if any(name == "call" and re.match(r"__aarch64_cas4_acq", operands) for name, operands in body):
        return True
    if "strex" not in names:
        return False
    after = [name for name in names[names.index("strex") + 1 :] if re.match("dmb|ldr|str", name)]
    return after[:1] == ["dmb"]


def left_to_libatomic(bodies):
    return sorted(
        operands for body in bodies.values() for name, operands in body
        if name == "call" and re.match("__(atomic|sync)_", operands)
    )  # fmt: skip


class Compiler:
    def __init__(self, root, program, options, level, scratch):
        self.root, self.scratch, self.level = root, scratch, level
        self.command = [program, *options, level, *FLAGS, "-I", root]
        self.kind = "clang" if program == "clang" else "gcc"
        self.name = " ".join([program, *options, level])
        self.arm = program.startswith("arm-")
        self.objdump = "arm-linux-gnueabihf-objdump" if self.arm else "aarch64-linux-gnu-objdump"

    def compile(self, path, flags):
        output = os.path.join(self.scratch, "object.o")
        subprocess.run([*self.command, *flags, "-o", output, os.path.join(self.root, path)], check=True)
        return functions(self.objdump, output)

    def refuses_armv6(self):
        """Whether it says so where 64-bit words are not lock-free, which would be left to libatomic."""
        path = os.path.join(self.root, "proto/mapping.c")
        options = ["-marm", "-march=armv6+fp", "-fsyntax-only"]
        run = subprocess.run([*self.command, *options, path], capture_output=True, text=True, check=False)
        return "lock-free 64-bit atomics" in run.stderr

    def check(self):
        """What is missing, one line each."""
        wanted = collections.Counter()
        problems = []
        apart = {path: self.compile(path, APART[self.kind]) for path in sorted({row[0] for row in STORES})}
        built = {path: self.compile(path, []) for path in apart}

        def count(rows, counter, what):
            for path, function, names in rows:
                expected = len(names)
                if self.kind == "clang":
                    expected = min(expected, MERGED_BY_CLANG.get(function, expected))
                found = counter(apart[path].get(function, []))
                if counter is release_stores:
                    wanted[path] += expected
                if found < expected:
                    problems.append(f"{path}: {function}: {found} of {expected} {what} ({', '.join(names)})")

        count(STORES, release_stores, "release stores")
        count(LOADS, acquire_loads, "acquire loads")
        for path, function in EXCHANGES:
            if not acquires_exchange(apart[path].get(function, [])):
                problems.append(f"{path}: {function}: no compare and exchange with acquire")
        for path, bodies in built.items():
            found = sum(release_stores(body) for body in bodies.values())
            if found < wanted[path]:
                problems.append(f"{path}: {found} of {wanted[path]} release stores as built")
            calls = left_to_libatomic(bodies)
            if calls:
                problems.append(f"{path}: calls {', '.join(calls)}")
        if self.arm and not self.refuses_armv6():
            problems.append("proto/mapping.h: accepts ARMv6, where 64-bit words are not lock-free")
        return problems


def main():
    root = sys.argv[1]
    failed, tried = False, 0
    for program, options in COMPILERS:
        tools = [program, ("arm-linux-gnueabihf" if program.startswith("arm-") else "aarch64-linux-gnu") + "-objdump"]
        probe = [program, *options, "-x", "c", "-fsyntax-only", "-include", "pthread.h", "/dev/null"]
        if not all(map(shutil.which, tools)) or subprocess.run(probe, capture_output=True, check=False).returncode:
            print(f"{' '.join([program, *options])}: not here, or without headers of libc")
            continue
        for level in ("-O2", "-O3") if os.environ.get("EDGEPROF_MODEL") == "long" else ("-O2",):
            tried += 1
            with tempfile.TemporaryDirectory() as scratch:
                compiler = Compiler(root, program, options, level, scratch)
                problems = compiler.check()
            print(f"{compiler.name}: {'; '.join(problems) or 'all stores as the model has them'}")
            failed = failed or bool(problems)
    if not tried:
        print("no cross compiler for ARM with its objdump")
        return 77
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
