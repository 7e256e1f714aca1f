#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh: starts a broker, edgeprofd with its demo pipeline, and the databases that are installed, with the files
# of this folder, on free ports of 127.0.0.1; waits until each has the frame rate; prints one line for each.
# usage: demo.sh [--stay] [BUILD]   --stay: they run until Ctrl-C; BUILD: a build directory (build-release)
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
stay=
[[ ${1:-} != --stay ]] || { stay=1; shift; }
build=$(cd "${1:-$source/build-release}" && pwd)
PATH=$PATH:/usr/sbin
missing=() rows=()
dir=$(mktemp -d "${TMPDIR:-/tmp}/edgeprof-databases.XXXXXX")
# again until all have ended: one that had not become its program yet may lose a signal
trap 'while kill $(jobs -pr) 2>/dev/null; do sleep 0.1; done; wait; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cd "$dir"
export EDGEPROF_RUNTIME_DIR=$dir/run
mkdir run textfile

has() # PROGRAM PACKAGE
{
	command -v "$1" >/dev/null || { missing+=("$1: $2"); return 1; }
}

begin() # NAME COMMAND…: ends with this script, also when that is killed
{
	setpriv --pdeathsig KILL -- "${@:2}" </dev/null >"$1.log" 2>&1 &
}

until_true() # WHAT COMMAND…
{
	local end=$((SECONDS + 120))
	until "${@:2}" >/dev/null 2>&1; do
		((SECONDS < end)) || { echo "demo.sh: it never came true: $1" >&2; tail -n 5 ./*.log >&2; exit 1; }
		sleep 0.2
	done
}

get() # URL [OPTION OF CURL…]
{
	curl -sSf -m 10 -G "$1" "${@:2}" 2>/dev/null
}

# The files, each with the ports of this run instead of the usual ones.
declare -A port
edits=''
next=$((20000 + RANDOM % 10000))
for usual in 1883 8086 8088 8428 9090 9100 9344; do
	next=$((next + 1))
	while (: <>"/dev/tcp/127.0.0.1/$next") 2>/dev/null; do next=$((next + 1)); done
	port[$usual]=$next
	edits+="s/\\b$usual\\b/$next/g;"
done
for file in "$source"/docs/databases/*.{conf,yml} "$source"/daemon/publish/schema/consumers/{*.conf,*.yaml}; do
	sed "$edits" "$file" >"${file##*/}"
done
((EUID)) || echo 'user root' >>mosquitto.conf # a change of user would let it outlive this script
cp "$source/config/prometheus/edgeprof.rules.yml" .

prometheus_newest() # PORT QUERY: time and value
{
	get "http://127.0.0.1:${port[$1]}/api/v1/query" --data-urlencode "query=$2[1m]" |
		jq -er '.data.result[0].values[-1] // empty | "\(.[0]) \(.[1])"'
}

influxdb_newest() # PORT QUERY
{
	get "http://127.0.0.1:${port[$1]}/query" -d db=edgeprof -d epoch=ms --data-urlencode "q=$2" |
		jq -er '.results[0].series[0].values[0] // empty | "\(.[0] / 1000) \(.[1])"'
}

expect() # KIND PORT PACKAGE THROUGH QUERY
{
	rows+=("$1_newest|$2|$3|$4|$5")
}

for need in mosquitto:mosquitto mosquitto_sub:mosquitto-clients jq:jq curl:curl; do
	has "${need%:*}" "apt-get install ${need#*:}" || { echo "demo.sh: ${missing[0]}" >&2; exit 77; }
done
begin mosquitto mosquitto -c mosquitto.conf
begin edgeprofd "$build/daemon/edgeprofd" -c edgeprofd.conf
until_true "edgeprofd answers" "$build/client/edgeprofctl/edgeprofctl" status
begin demo-pipeline "$build/client/examples/demo-pipeline" --app cam

urls=()
if has influxd "apt-get install influxdb"; then
	begin influxdb influxd -config influxdb.conf
	influxdb=http://127.0.0.1:${port[8086]}
	until_true "InfluxDB answers" curl -sf "$influxdb/ping"
	curl -sSf -o /dev/null "$influxdb/query" --data-urlencode 'q=CREATE DATABASE edgeprof WITH DURATION 30d'
	through=telegraf
	if has telegraf "not in Debian, InfluxData has packages; to_influx.sh does its work here"; then
		begin telegraf telegraf --config telegraf.conf --config telegraf-influxdb.conf
	else
		through=to_influx.sh
		urls+=("$influxdb/write?db=edgeprof&precision=ms")
	fi
	expect influxdb 8086 influxdb "$through" "SELECT last(frame_cam_fps) FROM edgeprof WHERE device = 'demo'"
fi
if has prometheus-node-exporter "apt-get install prometheus-node-exporter"; then
	# what edgeprof-metrics.timer does every 15 s
	# shellcheck disable=SC2016
	begin textfile bash -c 'while "$0" metrics -o textfile/edgeprof.prom || true; do sleep 1; done' \
		"$build/client/edgeprofctl/edgeprofctl"
	begin node-exporter prometheus-node-exporter --collector.textfile.directory=textfile \
		--web.listen-address="127.0.0.1:${port[9100]}"
	textfile=1
fi
if has prometheus-mqtt-exporter "apt-get install prometheus-mqtt-exporter"; then
	begin mqtt-exporter prometheus-mqtt-exporter -config prometheus-mqtt-exporter.yaml \
		-listen-address 127.0.0.1 -listen-port "${port[9344]}"
	exporter=1
fi
if has prometheus "apt-get install prometheus"; then
	begin prometheus prometheus --config.file=prometheus.yml --storage.tsdb.path=prometheus \
		--storage.tsdb.retention.time=30d --web.listen-address="127.0.0.1:${port[9090]}"
	[[ ! ${textfile:-} ]] ||
		expect prometheus 9090 prometheus node_exporter 'edgeprof_frames_per_second{app="cam"}'
	[[ ! ${exporter:-} ]] ||
		expect prometheus 9090 prometheus prometheus-mqtt-exporter 'edgeprof_frame_cam_fps{sensor="demo"}'
fi
if has victoria-metrics "apt-get install victoria-metrics"; then
	begin victoria-metrics victoria-metrics -storageDataPath=victoria-metrics -retentionPeriod=1 \
		-httpListenAddr="127.0.0.1:${port[8428]}" -search.latencyOffset=1s \
		-promscrape.config=prometheus.yml -promscrape.config.strictParse=false
	until_true "VictoriaMetrics answers" curl -sf "http://127.0.0.1:${port[8428]}/health"
	urls+=("http://127.0.0.1:${port[8428]}/write?precision=ms")
	expect prometheus 8428 victoria-metrics to_influx.sh 'edgeprof_frame_cam_fps{device="demo"}'
	[[ ! ${textfile:-} ]] ||
		expect prometheus 8428 victoria-metrics node_exporter 'edgeprof_frames_per_second{app="cam"}'
fi
if ((${#urls[@]})); then
	begin to_influx "$source/docs/databases/to_influx.sh" "${port[1883]}" "${urls[@]}"
fi

((${#missing[@]} == 0)) || printf 'not installed: %s\n' "${missing[@]}"
((${#rows[@]})) || { echo "demo.sh: none of the databases is installed" >&2; exit 77; }
for row in "${rows[@]}"; do
	IFS='|' read -r newest usual package through query <<<"$row"
	until_true "$package has $query" "$newest" "$usual" "$query"
	read -r time value < <("$newest" "$usual" "$query")
	version=$(dpkg-query -W -f='${Version}' "$package" 2>/dev/null || echo 'of unknown version')
	jq -rn --arg name "$package ${version%-*}, $through" --arg query "$query" --argjson value "$value" --argjson time "$time" \
		'"\($name): \($query) = \($value * 10 | round / 10), \([now - $time, 0] | max * 10 | round / 10) s old"'
done
if [[ $stay ]]; then
	for usual in 1883 8086 8428 9090; do echo "port $usual of the page: ${port[$usual]}"; done
	wait
fi
