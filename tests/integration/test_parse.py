#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""edgeprofctl parse tegrastats: real captures, damaged ones, and our own samples, without a daemon."""
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["EDGEPROF_SOURCE"]
CTL = os.path.join(os.environ["EDGEPROF_BUILD"], "client", "edgeprofctl", "edgeprofctl")
CAPTURES = os.path.join(os.environ.get("EDGEPROF_SHARED", ""), "fixtures", "tegrastats")
SAMPLES = os.path.join(SOURCE, "tests", "fixtures", "tegrastats")
KEYS = ["timestamp", "ram_used_mb", "ram_total_mb", "lfb", "swap_used_mb", "swap_total_mb",
        "swap_cached_mb", "iram", "cpus", "emc", "gpu", "gpu2", "engines", "mts", "edp_limit_mhz",
        "temps_c", "temps_peak_c", "temps_offline", "power_mw", "unknown"]


def plain(value):
    """34.0 and 34 are the same number; the order of keys counts."""
    if isinstance(value, dict):
        return [(key, plain(value[key])) for key in value]
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [] if value is None or isinstance(value, (bool, str)) else [value]


def ctl(*arguments, text=None):
    return subprocess.run([CTL, *arguments], input=text, capture_output=True, timeout=120,
                          env=dict(os.environ, EDGEPROF_RUNTIME_DIR="/nonexistent"))


class Parse(unittest.TestCase):
    def parse(self, path=None, text=None):
        done = ctl("parse", "tegrastats", *([path] if path else []), text=text)
        self.assertEqual((done.returncode, done.stderr), (0, b""), path)
        objects = [json.loads(line) for line in done.stdout.decode().splitlines()]
        for one in objects:
            self.assertEqual(list(one), KEYS)
        return objects

    def check(self, folder):
        names = sorted(glob.glob(os.path.join(folder, "*.expected.json")))
        for expected in names:
            with self.subTest(os.path.basename(expected)), open(expected) as file:
                want = json.load(file)
                got = self.parse(expected.replace(".expected.json", ".txt"))
                self.assertEqual(plain(got), plain(want if isinstance(want, list) else [want]))
        return len(names)

    def captures(self):
        if not os.path.isdir(CAPTURES):
            self.skipTest("no captures: " + CAPTURES)
        return CAPTURES

    # covers G0.14
    def test_every_capture_is_read_exactly(self):
        self.assertGreater(self.check(self.captures()), 30)

    # covers G0.14
    def test_every_own_sample_is_read_exactly(self):
        self.assertGreater(self.check(SAMPLES), 8)

    def test_streams_give_an_object_a_line(self):
        for path in glob.glob(os.path.join(self.captures(), "streams", "*.txt")):
            with open(path) as file:
                lines = file.read().splitlines()
            got = self.parse(path)
            self.assertEqual(len(got), len(lines), path)
            for line, one in zip(lines, got):
                self.assertIn(f"RAM {one['ram_used_mb']}/{one['ram_total_mb']}MB", line)
                self.assertEqual(one["unknown"], [])
                self.assertEqual(len(one["cpus"]), line[:line.index("]")].count(",") + 1)

    def test_damage_invents_no_value(self):
        folder = os.path.join(self.captures(), "malformed")
        for path in glob.glob(os.path.join(folder, "*.txt")):
            with self.subTest(os.path.basename(path)), open(path, "rb") as file:
                text = file.read().decode("latin-1")
                told = {float(one) for one in re.findall(r"(?<![\d.])-?\d+(?:\.\d+)?", text)}
                for one in self.parse(path):
                    lfb = one["lfb"] or {}
                    allowed = told | {float(lfb.get("block_mb", 0) * 1024)}
                    self.assertLessEqual({float(n) for n in numbers(one)}, allowed)

    def test_damage_costs_only_what_is_damaged(self):
        folder = os.path.join(self.captures(), "malformed")

        def first(name):
            return self.parse(os.path.join(folder, name))[0]
        self.assertEqual(first("truncated_mid_power.txt")["unknown"], ["VDD_SOC", "281"])
        self.assertEqual(list(first("truncated_mid_power.txt")["power_mw"]),
                         ["VDD_IN", "VDD_CPU_GPU_CV"])
        self.assertEqual(first("truncated_mid_cpu.txt")["cpus"], [])
        self.assertEqual(first("unterminated_bracket.txt")["cpus"], [])
        self.assertEqual(first("unterminated_bracket.txt")["emc"]["load_pct"], 43)
        self.assertEqual(first("percent_over_100.txt")["gpu"],
                         {"load_pct": None, "freqs_mhz": [621]})
        self.assertEqual(len(first("cpu_128_cores.txt")["cpus"]), 128)
        self.assertIsNone(first("negative_ram.txt")["ram_used_mb"])
        self.assertEqual(first("negative_ram.txt")["ram_total_mb"], None)
        self.assertEqual(first("negative_ram.txt")["swap_used_mb"], 851)
        self.assertEqual(first("huge_numbers.txt")["ram_total_mb"], None)
        self.assertNotIn("cpu", first("huge_numbers.txt")["temps_c"])
        self.assertEqual(first("huge_numbers.txt")["temps_c"]["soc2"], 52.437)
        glued = first("two_lines_glued.txt")
        self.assertEqual(list(glued["power_mw"]), ["VDD_IN", "VDD_CPU_GPU_CV"])
        self.assertEqual(glued["timestamp"], "11-15-2024 08:38:09")
        self.assertEqual(first("crlf.txt")["unknown"], [])
        self.assertEqual(first("crlf.txt")["power_mw"]["VDD_SOC"]["avg"], 2817)
        self.assertEqual(first("whole_sensor_offline.txt")["temps_offline"],
                         ["CV0", "CPU", "GPU", "tj"])
        self.assertEqual(first("whole_sensor_offline.txt")["cpus"],
                         [{"online": False, "load_pct": None, "freq_mhz": None}] * 2)
        self.assertEqual(self.parse(os.path.join(folder, "blank_line.txt")), [])
        self.assertEqual(self.parse(os.path.join(folder, "empty.txt")), [])

    def test_other_programs_words_give_nothing_but_unknown(self):
        for line in ("bash: tegrastats: command not found", "Killed process 1234 (sh) 5/6",
                     "Nov 21 06:00:00 host sshd[1]: session 5 off", "loaded 95% of 3"):
            (one,) = self.parse(text=line.encode())
            self.assertEqual(one["unknown"], line.split())
            self.assertEqual(numbers(one), [])

    def test_a_live_pipe_is_answered_line_by_line(self):
        child = subprocess.Popen([CTL, "parse", "tegrastats"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        try:
            for used in (1, 2, 3):
                child.stdin.write(b"RAM %d/9MB\n" % used)
                child.stdin.flush()
                self.assertEqual(json.loads(child.stdout.readline())["ram_used_mb"], used)
            child.stdin.write(b"RAM 4/9MB")
            child.stdin.close()
            self.assertEqual(json.loads(child.stdout.readline())["ram_used_mb"], 4)
            self.assertEqual(child.wait(30), 0)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def test_a_line_without_an_end_is_cut_and_the_next_is_whole(self):
        long = b"RAM 1/9MB " + b"x" * 200000 + b" SWAP 7/7MB\nRAM 2/9MB\n"
        got = self.parse(text=long)
        self.assertEqual([one["ram_used_mb"] for one in got], [1, 2])
        self.assertIsNone(got[0]["swap_used_mb"])

    def test_json_pretty_is_the_same_value(self):
        line = b"RAM 1/9MB (lfb 1x512kB) CPU [1%@2,off]\n"
        done = ctl("parse", "tegrastats", "--json=pretty", text=line)
        self.assertIn(b"\n  \"ram_used_mb\": 1,\n", done.stdout)
        self.assertEqual(json.loads(done.stdout), self.parse(text=line)[0])

    def test_exit_statuses(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (os.path.join(folder, "absent"), folder):
                done = ctl("parse", "tegrastats", path)
                self.assertEqual((done.returncode, done.stdout), (66, b""))
                self.assertIn(path.encode(), done.stderr)
        self.assertEqual(ctl("parse").returncode, 64)
        self.assertEqual(ctl("parse", "vmstat").returncode, 64)
        self.assertEqual(ctl("parse", "tegrastats", "a", "b").returncode, 64)
        self.assertEqual(ctl("parse", "tegrastats", "-", text=b"RAM 1/2MB\n").returncode, 0)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([CTL, "parse", "tegrastats"], input=b"RAM 1/2MB\n", stdout=full,
                                  stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 74)

    def test_completion_offers_the_verb_and_its_format(self):
        script = os.path.join(SOURCE, "client", "edgeprofctl", "completion", "edgeprofctl.bash")
        for words, want in ((["pars"], "parse"), (["parse", ""], "tegrastats")):
            run = (f"source {script}; COMP_WORDS=(edgeprofctl {' '.join(w or chr(39) * 2 for w in words)});"
                   f"COMP_CWORD={len(words)}; _edgeprofctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            path = os.path.dirname(CTL) + ":" + os.environ["PATH"]
            done = subprocess.run(["bash", "-c", run], env=dict(os.environ, PATH=path), capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.stdout, want + "\n", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
