#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are the unit files right, and is the sandbox tight? Exit 77 (skip) without systemd-analyze.
# usage: check_units.sh SYSTEMD_SOURCE_DIR SERVICE EDGEPROFD METRICS_SERVICE EDGEPROFCTL
set -eu
source=$1 service=$2 program=$(realpath "$3") metrics=$4 ctl=$(realpath "$5")
command -v systemd-analyze >/dev/null || {
	echo "systemd-analyze is not installed"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$source/edgeprofd.socket" "$source/edgeprof-metrics.timer" "$dir"
sed "s|^\(Exec[A-Za-z]*=\)[^ ]*/edgeprofctl|\1$ctl|" "$metrics" >"$dir/edgeprof-metrics.service"
sed "s|^\(Exec[A-Za-z]*=\)[^ ]*/edgeprofd|\1$program|" "$service" >"$dir/edgeprofd.service"
# Man pages that are not installed here, and services of this machine, are not our matter.
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no --recursive-errors=no \
	"$dir/edgeprofd.service" "$dir/edgeprofd.socket" "$dir/edgeprof-metrics.service" \
	"$dir/edgeprof-metrics.timer" 2>"$dir/problems" || true
grep -E '(edgeprofd|edgeprof-metrics)\.(service|socket|timer)' "$dir/problems" && exit 1
# Overall exposure must be at most 1.4; the tool's threshold is in tenths.
for unit in edgeprofd edgeprof-metrics; do
	systemd-analyze security --offline=true --no-pager --threshold=14 "$dir/$unit.service" >"$dir/report" || {
		tail -n 60 "$dir/report"
		exit 1
	}
	tail -n 1 "$dir/report"
done
