#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/databases.md: its script with the databases that are installed, and Grafana's files against what Grafana and
Prometheus demand of them. Nothing is installed by a test."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BUILD, SOURCE, run_tests, until

FOLDER = SOURCE / "docs" / "databases"
PAGE = FOLDER.with_suffix(".md").read_text()
FLEET, RULES = FOLDER / "grafana" / "fleet.json", FOLDER / "grafana" / "alerts.json"
EXPORTED = set(re.findall(r"prom_name: (\S+)", (SOURCE / "daemon/publish/schema/consumers/prometheus-mqtt-exporter.yaml").read_text()))
ROW = re.compile(r"(\S+) \S+, (\S+): (.+) = ([0-9.]+), ([0-9.]+) s old")
SOURCE_OF_PANEL = {"type": "prometheus", "uid": "${datasource}"}


def check_promql(expressions):
    """Whether Prometheus parses them, where it is installed; the variables of a dashboard are replaced."""
    if not shutil.which("promtool"):
        return "promtool is not installed: PromQL is not checked"
    rules = [{"record": f"r{number}", "expr": re.sub(r"\$(__)?\w+", lambda name: "5m" if name[1] else "x", text)}
             for number, text in enumerate(expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(json.dumps({"groups": [{"name": "g", "rules": rules}]}))  # JSON is YAML
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return None


def test_dashboards():
    expressions = []
    for path in (FLEET, SOURCE / "config" / "grafana" / "edgeprof.json"):
        board = json.loads(path.read_text())
        assert board["title"] and board["schemaVersion"] >= 36
        assert "id" not in board and "uid" not in board, "an import would replace another dashboard"
        variables = {variable["name"]: variable["type"] for variable in board["templating"]["list"]}
        assert variables["datasource"] == "datasource"
        cells, panels = set(), board["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        for panel in panels:
            x, y, w, h = (panel["gridPos"][key] for key in "xywh")
            own = {(column, row) for column in range(x, x + w) for row in range(y, y + h)}
            assert own and x >= 0 and x + w <= 24 and not own & cells, f"{panel['title']} overlaps"
            cells |= own
            targets = panel.get("targets", [])
            assert panel["title"] and (targets or panel["type"] == "row"), panel
            assert len({target["refId"] for target in targets}) == len(targets), panel
            for target in targets:
                assert target["datasource"] == panel["datasource"] == SOURCE_OF_PANEL, panel
                assert set(re.findall(r"\$([a-z]\w*)", target["expr"])) <= set(variables), target
                expressions.append(target["expr"])
    assert len(expressions) > 20
    return check_promql(expressions)


def test_alert_rules():
    expressions = []
    (group,) = json.loads(RULES.read_text())["groups"]
    assert group["name"] and group["folder"] and group["interval"], group
    for rule in group["rules"]:
        query, condition = rule["data"]
        assert rule["uid"] and rule["condition"] == condition["refId"] == condition["model"]["refId"], rule
        assert condition["datasourceUid"] == "__expr__" and condition["model"]["expression"] == query["refId"], rule
        assert condition["model"]["conditions"][0]["evaluator"]["params"], rule
        assert query["datasourceUid"] == "$EDGEPROF_DATASOURCE" and query["relativeTimeRange"]["from"] > 0, rule
        # Grafana replaces $NAME by the environment's in these files; $$ is a $
        assert not re.search(r"(?<!\$)\$(?!\$|EDGEPROF_DATASOURCE)", json.dumps(rule)), rule
        expressions.append(query["model"]["expr"])
    return check_promql(expressions)


def test_names_of_the_fleet_are_exported():
    for path in (FLEET, RULES):
        names = set(re.findall(r"edgeprof_\w+", path.read_text()))
        assert names and names <= EXPORTED, (path, names - EXPORTED)


def processes(scratch):
    """Whether any of its processes lives."""
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"EDGEPROF_RUNTIME_DIR={scratch}/".encode() in entry.read_bytes():
                return True
        except OSError:
            pass
    return False


def test_each_database_has_the_series_and_nothing_outlives_the_script():
    for killed in (False, True):
        with tempfile.TemporaryDirectory() as scratch:
            child = subprocess.Popen([FOLDER / "demo.sh", *["--stay"] * killed, BUILD], env=dict(os.environ, TMPDIR=scratch),
                                     text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            lines = []
            while (line := child.stdout.readline()) and not line.startswith("port "):
                lines.append(line.strip())
            if killed:
                assert processes(scratch)
                child.kill()
            status = child.wait()
            until("all ended", lambda: not processes(scratch))
            if status == 77:
                return "; ".join(lines)
            assert killed or status == 0 and not os.listdir(scratch), lines
        rows = [ROW.fullmatch(line) for line in lines if not line.startswith("not installed: ")]
        assert rows and all(rows), lines
        page = {ROW.fullmatch(line).group(1, 2, 3) for line in PAGE.splitlines() if ROW.fullmatch(line)}
        for row in rows:
            assert float(row[4]) > 0 and float(row[5]) < 60 and (row[2] == "telegraf" or row.group(1, 2, 3) in page), row
        print("  " + "\n  ".join(lines))
    return None


if __name__ == "__main__":
    run_tests(globals())
