#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare on sessions of which the truth is known."""
import json
import pathlib
import re
import xml.etree.ElementTree as xml

import sessions
from compare_case import ctl, folder, make
from harness import run_tests

def row_of(result, name, comparison=0):
    return next(r for r in result["comparisons"][comparison]["rows"] if r["name"] == name)


def result_of(*arguments, status):
    done = ctl("compare", "-j", *arguments)
    assert done.returncode == status, (done.returncode, done.stderr)
    return json.loads(done.stdout)


def test_a_stage_of_microseconds_decides_nothing():
    with folder() as place:
        place = pathlib.Path(place)
        files = [sessions.write(place / f"{name}.jsonl", name, {"infer": sessions.noise(f"{name} infer", 300, 20.0),
                                                               "publish": sessions.noise(f"{name} publish", 300, ms)})
                 for name, ms in (("a", 0.02), ("b", 0.03))]  # fmt: skip
        result = result_of(*files, status=0)
        row = row_of(result, "stages/publish/mean_ms")
        assert row["verdict"] == "slower" and not row["decides"] and not row["regression"], row
        assert row_of(result, "stages/infer/mean_ms")["decides"], result
        result_of(*files, "--metric", "stages/publish/mean_ms", status=1)


# covers G0.23, G3.4: the unit at the end of a name makes no other stage of it
def test_a_stage_on_another_unit_is_compared():
    with folder() as place:
        place = pathlib.Path(place)
        files = [sessions.write(place / f"{name}.jsonl", name, {stage: sessions.noise(name, 300, ms)})
                 for name, stage, ms in (("a", "pose_coreml", 10.0), ("b", "pose_onnx_cpu", 20.0))]  # fmt: skip
        row = row_of(result_of(*files, "--metric", "stages/pose/mean_ms", status=1), "stages/pose/mean_ms")
        assert row["regression"] and 80 < row["difference_percent"] < 120, row


def test_a_stage_named_total_is_the_total():
    with folder() as place:
        place = pathlib.Path(place)
        files = [sessions.write(place / f"{name}.jsonl", name, {"total": sessions.noise(name, 300, ms)})
                 for name, ms in (("a", 20.0), ("b", 26.0))]  # fmt: skip
        assert row_of(result_of(*files, status=1), "total/mean_ms")["regression"]


# covers G2.20
def test_a_regression_is_at_the_threshold_and_above():
    with folder() as place:
        d = pathlib.Path(place)
        for base in (10, 20, 33.3):
            old = sessions.write(d / "old", "old", {"infer": [base] * 20})
            for percent, status in ((14.99, 0), (15, 1), (15.01, 1)):
                new = sessions.write(d / "new", "new", {"infer": [base * (100 + percent) / 100] * 20})
                assert ctl("compare", old, new).returncode == status, (base, percent)


# covers G2.20, G4.13, covers G1.15: exit 0 and 1, and the verdict of each row
def test_a_slowdown_is_found_and_identical_runs_are_not_judged():
    with folder() as place:
        place = pathlib.Path(place)
        a, b = make(place, "a"), make(place, "b")
        slow, slower = make(place, "slow", infer=22.0), make(place, "slower", infer=24.0)
        same = result_of(a, b, status=0)
        assert same["verdict"] == "no regression", same
        assert row_of(same, "stages/infer/mean_ms")["verdict"] == "no difference shown", same
        found = row_of(result_of(a, slow, status=0), "stages/infer/mean_ms")
        assert found["verdict"] == "slower" and not found["regression"], found
        assert found["low_percent"] < 10 < found["high_percent"], found
        assert row_of(result_of(a, slow, "--threshold", "5", status=1), "stages/infer/mean_ms")["regression"]
        worse = result_of(a, slower, status=1)
        rate = row_of(worse, "frames/fps")
        assert rate["difference_percent"] < 0 and rate["verdict"] == "slower", rate
        assert row_of(worse, "stages/capture/mean_ms")["regression"] is False, worse
        back = row_of(result_of(slower, a, status=0), "frames/mean_ms")
        assert back["verdict"] == "faster", back
        only = result_of(a, slower, "--metric", "stages/capture/**", status=0)
        assert {r["name"] for r in only["comparisons"][0]["rows"]} == {
            "stages/capture/mean_ms", "stages/capture/p95_ms"}, only  # fmt: skip


# covers G4.13: what a pull request and a CI system show
def test_markdown_and_junit_name_what_got_worse():
    with folder() as place:
        place = pathlib.Path(place)
        a, b = make(place, "a"), make(place, "b|<b>", infer=26.0, environment={"governor": "powersave"})
        page = ctl("compare", a, b, "--format", "markdown").stdout
        assert page.startswith("### Regression: b\\|&lt;b&gt; compared with a\n"), page
        assert re.search(r"^\| stages/infer/mean\\_ms .* \*\*regression\*\* \|", page, re.M), page
        assert "<details><summary>" in page and "governor none/powersave" in page, page
        done = ctl("compare", a, b, "--format", "junit", "-o", place / "result.xml")
        assert done.returncode == 1 and done.stdout == "", done
        suite = xml.parse(place / "result.xml").getroot()
        failed = [c.get("name") for c in suite if c.find("failure") is not None]
        assert "b|<b>: stages/infer/mean_ms" in failed, failed
        assert int(suite.get("failures")) == len(failed) < int(suite.get("tests")), suite.attrib
        denied = ctl("compare", a, b, "-o", place / "none" / "result.xml")
        assert denied.returncode == 74 and "none/result.xml" in denied.stderr, denied


# covers G2.20: a missing baseline is made on request only, and a passing run does not move it
def test_a_baseline_is_created_kept_and_updated():
    with folder() as place:
        place = pathlib.Path(place)
        a, slower, file = make(place, "a"), make(place, "slower", infer=26.0), place / "base.json"
        missing = ctl("compare", a, "--baseline", file)
        assert missing.returncode == 2 and "--create-baseline" in missing.stderr, missing
        made = ctl("compare", a, "--baseline", file, "--create-baseline")
        assert made.returncode == 0 and made.stdout == f"Baseline created: {file}\n", made
        first = file.read_bytes()
        for options in ([], ["--create-baseline"]):
            assert ctl("compare", make(place, "b"), "--baseline", file, *options).returncode == 0
            assert ctl("compare", slower, "--baseline", file, *options).returncode == 1
            assert file.read_bytes() == first
        updated = ctl("compare", slower, "--baseline", file, "--update-baseline")
        assert updated.returncode == 0 and "slower" in updated.stdout, updated
        assert ctl("compare", slower, "--baseline", file).returncode == 0
        assert result_of(a, "--baseline", file, status=0)["comparisons"][0]["baseline"] == str(file)


def test_damaged_baselines_are_refused_by_member():
    with folder() as place:
        place = pathlib.Path(place)
        a, file = make(place, "a", frames=20), place / "base.json"
        ctl("compare", a, "--baseline", file, "--create-baseline")
        whole = json.loads(file.read_text())
        series = whole["runs"][0]["series"]
        cases = [("", "not JSON"), ("{", "not JSON"), ("[1]", "'schema'"), ('{"schema":"x"}', "'schema'")]
        for member, value, name in [
            ("values", "x", "runs[0].series[0].values"), ("values", [1, None], "runs[0].series[0].values"),
            ("values", [-1], "runs[0].series[0].values"), ("conditions", [0], "runs[0].series[0].conditions"),
            ("name", 3, "runs[0].series[0].name"),
        ]:  # fmt: skip
            changed = [{**series[0], member: value}, *series[1:]]
            cases.append((json.dumps({**whole, "runs": [{**whole["runs"][0], "series": changed}]}), name))
        for member in ("tags", "series"):
            run = {**whole["runs"][0], member: 7}
            cases.append((json.dumps({**whole, "runs": [run]}), f"runs[0].{member}"))
        cases.append((json.dumps({**whole, "runs": []}), "'runs'"))
        for text, wanted in cases:
            file.write_text(text)
            done = ctl("compare", a, "--baseline", file)
            assert done.returncode == 66 and wanted in done.stderr and str(file) in done.stderr, (text[:80], done)
        assert ctl("compare", a, "--baseline", place).returncode == 66


# covers G3.14: of three runs a side the first is dropped, and the others are averaged
def test_runs_are_grouped_by_a_tag():
    with folder() as place:
        place = pathlib.Path(place)
        runs = []
        for build, infer in (("old", 20.0), ("new", 25.0)):
            for i in range(3):
                first = 60.0 if i == 0 else infer  # a cold start
                runs.append(make(place, f"{build}{i}", infer=first, tags={"build": build}))
        result = result_of(*runs, "--by", "build", status=1)
        comparison = result["comparisons"][0]
        assert [comparison["baseline"], comparison["current"]] == ["build=old", "build=new"], comparison
        assert comparison["baseline_runs"] == comparison["current_runs"] == 2, comparison
        row = row_of(result, "stages/infer/mean_ms")
        assert 19.5 < row["baseline"] < 20.5 and row["regression"], row
        absent = ctl("compare", *runs, "--by", "colour")
        assert absent.returncode == 2 and "colour" in absent.stderr, absent


# covers G0.21, covers G0.22, covers G0.23, G4.3: a row a variant, also of one that failed
def test_variants_are_listed_with_their_size_accuracy_and_error():
    with folder() as place:
        place = pathlib.Path(place)
        variants = [
            make(place, "fp32", infer=40.0, tags={"delegate": "CPU", "size_mb": "16.0", "accuracy": "0.72"}),
            make(place, "int8", infer=20.0, tags={"delegate": "XNNPACK", "size_mb": "4.2", "accuracy": "0.69"}),
            sessions.write(place / "gpu.jsonl", "gpu", {}, tags={"delegate": "GPU"}, error="no OpenCL"),
        ]  # fmt: skip
        done = ctl("compare", "-j", "--table", "--by", "delegate", *variants)
        rows = json.loads(done.stdout)["variants"]
        assert done.returncode == 0 and [r["name"] for r in rows] == [
            "delegate=CPU", "delegate=XNNPACK", "delegate=GPU"], (done, rows)  # fmt: skip
        assert rows[1]["size_mb"] == 4.2 and abs(rows[1]["accuracy_diff"] + 0.03) < 1e-9, rows
        assert abs(rows[1]["max_fps"] * rows[1]["mean_ms"] - 1000) < 1e-6, rows
        assert abs(rows[1]["latency_ms"] - 23) < 1 and rows[1]["p95_ms"] > rows[1]["mean_ms"], rows
        assert rows[2]["error"] == "no OpenCL" and rows[2]["mean_ms"] is None, rows
        text = ctl("compare", "--table", *variants).stdout.splitlines()
        assert len(text) == 4 and text[3].split()[0] == "gpu" and text[3].endswith("no OpenCL"), text


# What could not be compared is an error with its cause, never a green result or an empty baseline.
def test_what_is_not_comparable_says_why():
    with folder() as place:
        place = pathlib.Path(place)
        a, empty = make(place, "a"), sessions.write(place / "empty.jsonl", "empty", {})
        failed = sessions.write(place / "gpu.jsonl", "gpu", {}, error="no OpenCL")
        for arguments, why in (((a, failed), "'gpu' failed: no OpenCL"), ((failed, a), "'gpu' failed: no OpenCL"),
                               ((a, empty), "at least 10"), ((a, a, "--metric", "x"), "matches 'x'"),
                               ((a, a, "--metric", "infre"), "matches 'infre'; did you mean 'infer'?")):  # fmt: skip
            done = ctl("compare", *arguments, "--format", "junit")
            assert done.returncode == 2 and why in done.stderr, done
            suite = xml.fromstring(done.stdout)
            assert suite.get("errors") == "1" and why in suite[0].find("error").get("message"), done.stdout
            page = ctl("compare", *arguments, "--format", "markdown").stdout
            assert page.startswith("### Not comparable (") and "|  |" not in page, page
        for what in (empty, failed):
            done = ctl("compare", what, "--baseline", place / "base.json", "--create-baseline")
            assert done.returncode == 2 and not (place / "base.json").exists(), done
        runs = [make(place, f"r{i}", tags={"build": "new"}) for i in range(3)]
        runs.append(sessions.write(place / "r3.jsonl", "r3", {}, tags={"build": "new"}, error="crash"))
        base = make(place, "base", tags={"build": "old"})
        comparison = result_of(base, *runs, "--by", "build", status=0)["comparisons"][0]
        assert comparison["current_runs"] == 2, comparison  # the first is skipped, the last failed


def test_a_session_that_broke_off_is_named():
    with folder() as place:
        place = pathlib.Path(place)
        a, b = make(place, "a"), pathlib.Path(make(place, "b"))
        b.write_text("".join(b.read_text().splitlines(keepends=True)[:-1]))  # without its end
        assert re.search(r"^Incomplete +b: .*broke off$", ctl("compare", a, b).stdout, re.M)
        assert re.search(r"^Incomplete +b: ", ctl("compare", a, b, "--format", "markdown").stdout, re.M)
        assert [i["name"] for i in result_of(a, b, status=0)["comparisons"][0]["incomplete"]] == ["b"]


def test_too_few_values_are_no_data():
    with folder() as place:
        place = pathlib.Path(place)
        few, some = make(place, "few", frames=9), make(place, "some", infer=40.0, frames=12)
        done = ctl("compare", few, some)
        assert done.returncode == 2 and "at least 10" in done.stderr, done
        assert "too few values" in done.stdout, done
        assert ctl("compare", make(place, "other", frames=12), some).returncode == 1
        assert ctl("compare", few).returncode == 64
        assert ctl("compare", few, place / "none.jsonl").returncode == 66
        assert ctl("compare", few, some, "--threshold", "0").returncode == 64
        assert ctl("compare", few, some, "--create-baseline").returncode == 64


# A board that gets hot half way is slower there; only its cool half is like the other run.
def test_matching_conditions_are_compared_alone():
    with folder() as place:
        place = pathlib.Path(place)
        cool = [("temperature/max", "celsius", [(i / 2, 51.0) for i in range(40)]),
                ("cpu/0/frequency", "hertz", [(i / 2, 2.4e9) for i in range(40)])]  # fmt: skip
        values = sessions.noise("x", 200, 20) + sessions.noise("y", 100, 40)
        half_s = sum(values[:200]) / 1000
        hot = [("temperature/max", "celsius", [(i / 10, 51.0 if i / 10 < half_s else 83.0) for i in range(100)]),
               ("cpu/0/frequency", "hertz", [(i / 10, 2.4e9 if i / 10 < half_s else 1.2e9) for i in range(100)])]  # fmt: skip
        a = sessions.write(place / "a.jsonl", "a", {"infer": sessions.noise("a", 300, 20)}, sensors=cool)
        b = sessions.write(place / "b.jsonl", "b", {"infer": values}, sensors=hot)
        plain = row_of(result_of(a, b, status=0), "stages/infer/mean_ms")
        assert plain["difference_percent"] > 20, plain
        result = result_of(a, b, "--thermal", status=0)
        row, kept = row_of(result, "stages/infer/mean_ms"), result["comparisons"][0]["thermal"]
        assert abs(row["difference_percent"]) < 5 and not row["regression"], row
        assert kept["baseline_kept"] == kept["current_kept"], kept
        assert 150 < kept["current_kept"] < 205 < kept["current_frames"], kept
        warm = [("temperature/max", "celsius", [(i / 2, 71.0) for i in range(40)])]
        c = sessions.write(place / "c.jsonl", "c", {"infer": values}, sensors=warm)
        done = ctl("compare", a, c, "--thermal")
        assert done.returncode == 2 and "temperature and clock" in done.stderr, done
        # without a sensor no value has a temperature, and none is kept
        done = ctl("compare", make(place, "d"), a, "--thermal")
        assert done.returncode == 2 and "temperature and clock" in done.stderr, done


# covers G4.13: the row that the help names is one
def test_the_metric_of_the_help_is_a_row():
    with folder() as place:
        a = make(pathlib.Path(place), "a")
        name = re.search(r"such as (\S+)", ctl("compare", "--help").stdout)[1]
        assert row_of(result_of(a, a, "--metric", name, status=0), name), name


if __name__ == "__main__":
    run_tests(globals())
