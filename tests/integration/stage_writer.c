/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instrumented program whose stages take exactly as long as it is told: one command a line on
 * stdin, "ok" for each on stdout. usage: stage-writer APP
 *
 *     stage NAME CATEGORY UNIT DEADLINE_US      declares; '-' = none
 *     run NAME US [FRAME]                       a finished run, 'US' long, that ended now
 *     begin NAME      end      failed           nested, by the clock
 *     measure NAME    (CPU time of the thread and the process, memory growth)
 *     deadline NAME US
 *     idbegin NAME ID      idend NAME ID
 *     grow NAME MIB                             a run that touches so much fresh memory
 *     spin US                                   keeps the thread on a CPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "edgeprof.h"

enum { WORDS = 5 };

static edgeprof_token open_token[16];
static unsigned open_count;

static uint64_t microseconds(const char *text)
{
	return strtoull(text, NULL, 10) * 1000;
}

static const char *label(const char *text)
{
	return strcmp(text, "-") == 0 ? NULL : text;
}

static void run(char **word, int count)
{
	uint64_t duration_ns = microseconds(word[2]);
	uint64_t frame = count > 3 ? strtoull(word[3], NULL, 10) : EDGEPROF_NO_FRAME;
	edgeprof_complete(
		edgeprof_stage(word[1]), edgeprof_now() - duration_ns, duration_ns, frame);
}

static void grow(const char *name, const char *mib)
{
	size_t size = strtoul(mib, NULL, 10) << 20;
	edgeprof_token token = edgeprof_begin(edgeprof_stage(name));
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	edgeprof_end(token);
	if (memory == MAP_FAILED) {
		exit(71);
	}
}

static void spin(const char *us)
{
	uint64_t until_ns = edgeprof_now() + microseconds(us);
	while (edgeprof_now() < until_ns) {
	}
}

static void close_one(int failed)
{
	if (open_count > 0) {
		edgeprof_token token = open_token[--open_count];
		if (failed) {
			edgeprof_end_failed(token);
		} else {
			edgeprof_end(token);
		}
	}
}

static int obey(char **word, int count)
{
	if (strcmp(word[0], "stage") == 0 && count == 5) {
		edgeprof_stage_declare(
			word[1], label(word[2]), label(word[3]), microseconds(word[4]));
	} else if (strcmp(word[0], "run") == 0 && count >= 3) {
		run(word, count);
	} else if (strcmp(word[0], "begin") == 0 && count == 2 && open_count < 16) {
		open_token[open_count++] = edgeprof_begin(edgeprof_stage(word[1]));
	} else if (strcmp(word[0], "end") == 0 || strcmp(word[0], "failed") == 0) {
		close_one(word[0][0] == 'f');
	} else if (strcmp(word[0], "measure") == 0 && count == 2) {
		edgeprof_stage_options(edgeprof_stage(word[1]),
			EDGEPROF_CPU_TIME | EDGEPROF_PROCESS_CPU | EDGEPROF_RSS);
	} else if (strcmp(word[0], "deadline") == 0 && count == 3) {
		edgeprof_deadline(edgeprof_stage(word[1]), microseconds(word[2]));
	} else if (strcmp(word[0], "idbegin") == 0 && count == 3) {
		edgeprof_begin_id(edgeprof_stage(word[1]), strtoull(word[2], NULL, 10));
	} else if (strcmp(word[0], "idend") == 0 && count == 3) {
		edgeprof_end_id(edgeprof_stage(word[1]), strtoull(word[2], NULL, 10));
	} else if (strcmp(word[0], "grow") == 0 && count == 3) {
		grow(word[1], word[2]);
	} else if (strcmp(word[0], "spin") == 0 && count == 2) {
		spin(word[1]);
	} else {
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char line[256];
	if (argc != 2 || edgeprof_init(argv[1]) < 0) {
		return 64;
	}
	while (fgets(line, sizeof(line), stdin)) {
		char *word[WORDS] = {NULL}, *rest = NULL;
		int count = 0;
		for (char *w = strtok_r(line, " \n", &rest); w && count < WORDS;
			w = strtok_r(NULL, " \n", &rest)) {
			word[count++] = w;
		}
		if (count == 0 || obey(word, count) < 0) {
			return 65;
		}
		puts("ok");
		fflush(stdout);
	}
	return 0;
}
