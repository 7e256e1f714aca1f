#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/databases.md: its script with the databases that are installed, and Grafana's files against what Grafana and
Prometheus demand of them. Nothing is installed by a test."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from harness import BUILD, SOURCE, run_tests, until

PAGE = SOURCE / "docs" / "databases.md"
FOLDER = SOURCE / "docs" / "databases"
DASHBOARDS = (FOLDER / "grafana" / "fleet.json", SOURCE / "config" / "grafana" / "edgeprof.json")
RULES = FOLDER / "grafana" / "alerts.json"
EXPORTED = (SOURCE / "daemon/publish/schema/consumers/prometheus-mqtt-exporter.yaml").read_text()
ROW = re.compile(r"(\S+) \S+, (\S+): (.+) = ([0-9.]+), ([0-9.]+) s old")


def check_promql(expressions):
    """Whether Prometheus parses them, where it is installed; the variables of a dashboard are replaced."""
    if not shutil.which("promtool"):
        return "promtool is not installed: PromQL is not checked"
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        rules = [{"record": f"r{number}", "expr": re.sub(r"\$__?\w+|\$\{?\w+\}?", "5m" if "$__" in text else "x", text)}
                 for number, text in enumerate(expressions)]
        file.write(json.dumps({"groups": [{"name": "g", "rules": rules}]}))  # JSON is YAML
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return None


def check_dashboard(board):
    """What Grafana demands of a dashboard that is imported; its expressions."""
    assert board["title"] and isinstance(board["schemaVersion"], int) and board["schemaVersion"] >= 36
    assert board.get("id") is None and "uid" not in board, "an import would replace another dashboard"
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    ids, cells, expressions = set(), set(), []
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert panel["id"] not in ids and panel["title"] and panel["type"], panel
        ids.add(panel["id"])
        assert place["x"] >= 0 and place["w"] > 0 and place["x"] + place["w"] <= 24 and place["h"] > 0, place
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not own & cells, f"{panel['title']} overlaps"
        cells |= own
        assert panel["type"] == "row" or panel["targets"], panel
        references = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(references)) == len(references), panel
        for target in panel.get("targets", []):
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel
            used = set(re.findall(r"\$\{?([a-z]\w*)", target["expr"]))
            assert used <= set(variables), used
            expressions.append(target["expr"])
    return expressions


def test_dashboards():
    expressions = [expression for path in DASHBOARDS for expression in check_dashboard(json.loads(path.read_text()))]
    assert len(expressions) > 20
    return check_promql(expressions)


def test_alert_rules():
    expressions = []
    for group in json.loads(RULES.read_text())["groups"]:
        assert group["name"] and group["folder"] and group["interval"], group
        for rule in group["rules"]:
            steps = {step["refId"]: step for step in rule["data"]}
            assert rule["uid"] and len(rule["uid"]) <= 40 and rule["condition"] in steps, rule
            for name, step in steps.items():
                assert step["model"]["refId"] == name and step["relativeTimeRange"]["from"] > 0, step
                if step["datasourceUid"] == "__expr__":
                    assert step["model"]["expression"] in steps and step["model"]["conditions"][0]["evaluator"]["params"], step
                else:
                    assert step["datasourceUid"] == "$EDGEPROF_DATASOURCE", step
                    expressions.append(step["model"]["expr"])
            # Grafana replaces $NAME by the environment's in these files; $$ is a $
            assert not re.search(r"(?<!\$)\$(?!\$|EDGEPROF_DATASOURCE)", json.dumps(rule)), rule
    return check_promql(expressions)


def test_names_of_the_fleet_are_exported():
    exported = set(re.findall(r"prom_name: (\S+)", EXPORTED))
    for path in (DASHBOARDS[0], RULES):
        names = set(re.findall(r"edgeprof_\w+", path.read_text()))
        assert names and names <= exported, (path, names - exported)


def processes(scratch):
    """Those that work in its folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"EDGEPROF_RUNTIME_DIR={scratch}/".encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            pass
    return found


def demo(scratch, *words):
    return subprocess.Popen([FOLDER / "demo.sh", *words, BUILD], env=dict(os.environ, TMPDIR=scratch), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_each_database_has_the_series():
    with tempfile.TemporaryDirectory() as scratch:
        child = demo(scratch)
        text = child.communicate(timeout=500)[0]
        if child.returncode == 77:
            return text.strip()
        assert child.returncode == 0, text
        rows = [ROW.fullmatch(line) for line in text.splitlines() if not line.startswith("not installed: ")]
        assert rows and all(rows), text
        page = {ROW.fullmatch(line).group(1, 2, 3) for line in PAGE.read_text().splitlines() if ROW.fullmatch(line)}
        for row in rows:
            assert float(row[4]) > 0 and float(row[5]) < 60, row
            assert row.group(1, 2, 3) in page, row
        until("all ended", lambda: not processes(scratch))
        assert not os.listdir(scratch)
        print(text, end="")
        return None


def test_nothing_outlives_a_script_that_is_killed():
    with tempfile.TemporaryDirectory() as scratch:
        child = demo(scratch, "--stay")
        text = ""
        while "port " not in text and (line := child.stdout.readline()):
            text += line
        if "port " not in text:
            assert child.wait() == 77, text
            return text.strip()
        assert processes(scratch)
        child.send_signal(signal.SIGKILL)
        child.wait()
        until("all ended", lambda: not processes(scratch))
        return None


if __name__ == "__main__":
    run_tests(globals())
