#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUTPUT: makes the page, one file. The packages of the lock file are fetched by npm unless they are there.
set -euo pipefail
output=$(realpath -m -- "${1:?usage: build.sh OUTPUT}")
cd "$(dirname "$0")"
if ! cmp -s package-lock.json node_modules/.lock; then
	npm ci --ignore-scripts --no-audit --no-fund
	cp package-lock.json node_modules/.lock
fi
node build.mjs "$output"
