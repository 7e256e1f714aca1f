#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sends what devices publish to databases that take InfluxDB's line protocol, in one request a second.
# usage: to_influx.sh BROKER_PORT URL…
set -euo pipefail
setpriv --pdeathsig TERM -- mosquitto_sub -h 127.0.0.1 -p "$1" -t 'edgeprof/+/summary' -t 'edgeprof/+/stage/+/+' -F '%t %p' |
	jq --unbuffered -Rr '
		def escape: gsub("[[:cntrl:]]"; "_") | gsub("(?<c>[,= \\\\])"; "\\\(.c)");
		index(" ") as $at | (.[:$at] / "/" | map(escape)) as $topic | .[$at + 1:] | fromjson? | . as $payload
		| [to_entries[] | select((.value | type) == "number" and .key != "ts_ms") | "\(.key | escape)=\(.value)"]
		| select(length > 0) | join(",") as $fields
		| (if $topic[2] == "stage" then "edgeprof_stage,device=\($topic[1]),app=\($topic[3]),stage=\($topic[4])"
		   else "edgeprof,device=\($topic[1])" end) as $series
		# without a time the database takes its own, which is right where the clock of the device is not
		| "\($series) \($fields)" + (if $payload.clock then "" else " \($payload.ts_ms)" end)' |
	while IFS= read -r line; do
		lines=("$line")
		end=$((SECONDS + 1))
		while ((SECONDS < end)) && IFS= read -r -t 1 line; do
			lines+=("$line")
		done
		for url in "${@:2}"; do
			printf '%s\n' "${lines[@]}" | curl -sSf -m 10 -o /dev/null --data-binary @- "$url" || true
		done
	done
