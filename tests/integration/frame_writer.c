/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instrumented programs with frames, for test_frames.py.
 * usage: frame-writer pipeline APP BASE_NS FRAMES capture|publish
 *            one half of a pipeline whose frame n begins at BASE_NS + n * 10 ms, to the nanosecond:
 *            capture 0-4 ms and infer 4-12 ms in two threads, publish 13-16 ms in another process.
 *            Frames 50 and 51 are left out. Each event is sent when its time has come.
 *        frame-writer paced APP FRAMES
 *            frames of about 5 ms and a deadline of 20 ms; every tenth sleeps for 40 ms in infer
 * Both go on until standard input ends.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

static const uint64_t MS = 1000000;

struct part {
	pthread_t thread;
	const char *stage;
	uint64_t base_ns, from_ns, took_ns;
	unsigned long frames;
};

static void wait_until(uint64_t t_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(t_ns / 1000000000), .tv_nsec = (long)(t_ns % 1000000000)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0) {
	}
}

static void *write_part(void *arg)
{
	const struct part *part = arg;
	int stage = edgeprof_stage(part->stage);
	for (unsigned long i = 0; i < part->frames; i++) {
		uint64_t start_ns = part->base_ns + i * 10 * MS + part->from_ns;
		wait_until(start_ns + part->took_ns);
		if (i != 50 && i != 51) {
			edgeprof_complete(stage, start_ns, part->took_ns, i);
		}
	}
	return NULL;
}

static int pipeline(uint64_t base_ns, unsigned long frames, bool capture)
{
	struct part parts[2] = {{.stage = "capture", .took_ns = 4 * MS},
		{.stage = "infer", .from_ns = 4 * MS, .took_ns = 8 * MS}};
	size_t count = capture ? 2 : 1;
	if (!capture) {
		parts[0] = (struct part){.stage = "publish", .from_ns = 13 * MS, .took_ns = 3 * MS};
	}
	for (size_t i = 0; i < count; i++) {
		parts[i].base_ns = base_ns;
		parts[i].frames = frames;
		if (pthread_create(&parts[i].thread, NULL, write_part, &parts[i]) != 0) {
			return 71;
		}
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(parts[i].thread, NULL);
	}
	return 0;
}

static int paced(unsigned long frames)
{
	int capture = edgeprof_stage("capture"), infer = edgeprof_stage("infer");
	edgeprof_frame_deadline(20 * MS);
	for (unsigned long i = 0; i < frames; i++) {
		edgeprof_frame_begin(i);
		edgeprof_token token = edgeprof_begin(capture);
		wait_until(edgeprof_now() + 2 * MS);
		edgeprof_end(token);
		token = edgeprof_begin(infer);
		wait_until(edgeprof_now() + (i % 10 == 9 ? 40 : 2) * MS);
		edgeprof_end(token);
		edgeprof_frame_end();
		wait_until(edgeprof_now() + 10 * MS);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int r = 64;
	char byte;
	if (argc < 4 || edgeprof_init(argv[2]) < 0) {
		return r;
	}
	if (argc == 6 && strcmp(argv[1], "pipeline") == 0) {
		r = pipeline(strtoull(argv[3], NULL, 10), strtoul(argv[4], NULL, 10),
			strcmp(argv[5], "capture") == 0);
	} else if (argc == 4 && strcmp(argv[1], "paced") == 0) {
		r = paced(strtoul(argv[3], NULL, 10));
	}
	while (r == 0 && read(STDIN_FILENO, &byte, 1) > 0) {
	}
	return r;
}
