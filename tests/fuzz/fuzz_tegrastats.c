/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: whatever the bytes are, limits hold, names are text, percentages are
 * percentages, and not a byte outside the line is read.
 *     clang -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -I. \
 *         tests/fuzz/fuzz_tegrastats.c proto/tegrastats/*.c -lm -o /tmp/fuzz_tegrastats
 *     /tmp/fuzz_tegrastats -max_len=4096 /tmp/corpus tests/fixtures/tegrastats
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
