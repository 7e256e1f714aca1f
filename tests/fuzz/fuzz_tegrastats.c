/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: whatever the bytes are, limits hold, names are text, percentages are
 * percentages, and not a byte outside the line is read.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proto/tegrastats_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tegrastats stats;
	const char *wrong =
		tegrastats_check(tegrastats_parse((const char *)data, size, &stats), &stats);
	if (wrong) {
		fprintf(stderr, "wrong: %s\n", wrong);
		abort();
	}
	return 0;
}
