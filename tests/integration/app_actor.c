/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instrumented program that does what it is told: one command a line on stdin, one line of
 * answer each. usage: app-actor APP
 *
 *     runs STAGE COUNT US      frame N          open STAGE          close
 *     mark LABEL               alloc MIB        gauge NAME VALUE    counter NAME VALUE
 *     loaded LABEL MIB         a mark with file_size_mb, num_threads and two input_tensor_sizes_kb
 *     attribute STAGE NAME VALUE
 *     frames COUNT US  whole ones
 *     thread STAGE             opens it in another thread, for good
 *     fork                     a child runs one stage, waits for stdin's end and exits
 *     exec PROGRAM             counts
 *     session NAME             without a warm-up, tagged precision=fp16; answers with the name it
 * got stop ERROR               the session Spaces in labels are written as '_'.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

static edgeprof_token open_token[16];
static unsigned open_count;

static void *open_for_good(void *arg)
{
	edgeprof_begin(edgeprof_stage(arg));
	for (;;) {
		pause();
	}
	return NULL;
}

/* 0: not at all; a sleep of a moment takes long on a busy machine. */
static void sleep_us(long us)
{
	struct timespec pause_for = {us / 1000000, us % 1000000 * 1000};
	if (us > 0) {
		nanosleep(&pause_for, NULL);
	}
}

static void run(const char *stage, long count, long us)
{
	int id = edgeprof_stage(stage);
	for (long i = 0; i < count; i++) {
		edgeprof_token token = edgeprof_begin(id);
		sleep_us(us);
		edgeprof_end(token);
	}
}

static void frames(long count, long us)
{
	static uint64_t frame;
	for (long i = 0; i < count; i++) {
		edgeprof_frame_begin(++frame);
		sleep_us(us);
		edgeprof_frame_end();
	}
}

static void loaded(const char *label, double mib)
{
	const struct edgeprof_value values[] = {{"file_size_mb", mib}, {"num_threads", 4},
		{"input_tensor_sizes_kb", 588}, {"input_tensor_sizes_kb", 4}};
	edgeprof_mark_with(label, values, sizeof(values) / sizeof(values[0]));
}

static void fork_child(void)
{
	char byte;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		run("child", 1, 0);
		while (read(0, &byte, 1) > 0) {
		}
		exit(0);
	}
	printf("%d ", (int)pid);
}

/* Touched, and kept for good. */
static void allocate(long mib)
{
	static void *newest; /* begins with the address of the one before */
	size_t size = (size_t)mib << 20;
	void **memory = malloc(size);
	if (memory) {
		memset(memory, 1, size);
		*memory = newest;
		newest = memory;
	}
}

static void start_session(const char *name)
{
	char got[64] = "";
	const struct edgeprof_tag tag = {"precision", "fp16"};
	int r = edgeprof_session_start(
		name, &(struct edgeprof_session){.size = sizeof(struct edgeprof_session),
			      .tags = &tag,
			      .tag_count = 1,
			      .warmup = -1,
			      .ret_name = got,
			      .ret_name_size = sizeof(got)});
	printf("%d %s ", r, got);
}

static void obey(char *command, char *a, char *b, char *c)
{
	static char thread_stage[128];
	pthread_t thread;
	for (char *p = a; *p && (!strcmp(command, "mark") || !strcmp(command, "loaded")); p++) {
		*p = *p == '_' ? ' ' : *p;
	}
	if (!strcmp(command, "runs")) {
		run(a, strtol(b, NULL, 10), strtol(c, NULL, 10));
	} else if (!strcmp(command, "frame")) {
		edgeprof_set_frame(strtoul(a, NULL, 10));
	} else if (!strcmp(command, "frames")) {
		frames(strtol(a, NULL, 10), strtol(b, NULL, 10));
	} else if (!strcmp(command, "open") && open_count < 16) {
		open_token[open_count++] = edgeprof_begin(edgeprof_stage(a));
	} else if (!strcmp(command, "close") && open_count > 0) {
		edgeprof_end(open_token[--open_count]);
	} else if (!strcmp(command, "mark")) {
		edgeprof_mark(a);
	} else if (!strcmp(command, "loaded")) {
		loaded(a, strtod(b, NULL));
	} else if (!strcmp(command, "alloc")) {
		allocate(strtol(a, NULL, 10));
	} else if (!strcmp(command, "gauge")) {
		edgeprof_gauge(edgeprof_gauge_declare(a, "celsius"), strtod(b, NULL));
	} else if (!strcmp(command, "counter")) {
		edgeprof_counter(edgeprof_stage(a), strtod(b, NULL));
	} else if (!strcmp(command, "attribute")) {
		edgeprof_attribute(edgeprof_stage(a), edgeprof_stage(b), strtod(c, NULL));
	} else if (!strcmp(command, "thread")) {
		snprintf(thread_stage, sizeof(thread_stage), "%s", a);
		pthread_create(&thread, NULL, open_for_good, thread_stage);
	} else if (!strcmp(command, "fork")) {
		fork_child();
	} else if (!strcmp(command, "session")) {
		start_session(a);
	} else if (!strcmp(command, "stop")) {
		printf("%d ", edgeprof_session_stop(NULL, a));
	} else if (!strcmp(command, "exec")) {
		execl(a, a, b, (char *)NULL);
	}
}

int main(int argc, char **argv)
{
	char line[512];
	if (argc != 2 || edgeprof_init(argv[1]) < 0) {
		return 64;
	}
	while (fgets(line, sizeof(line), stdin)) {
		char command[32] = "", a[128] = "", b[128] = "", c[128] = "";
		struct edgeprof_counts counts;
		sscanf(line, "%31s %127s %127s %127s", command, a, b, c);
		obey(command, a, b, c);
		edgeprof_counts(&counts);
		printf("ok %llu %llu %llu\n", (unsigned long long)counts.sent,
			(unsigned long long)counts.received, (unsigned long long)counts.dropped);
		fflush(stdout);
	}
	return 0;
}
