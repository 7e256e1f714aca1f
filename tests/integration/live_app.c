/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real pipeline of 30 frames a second that gets into trouble after QUIET_S seconds, by itself or
 * because of what others do.
 * usage: live-app TROUBLE FILE QUIET_S
 *
 *     leak    lost memory in each frame
 *     buffer  a large buffer in each 40th frame
 *     fsync   writes and syncs in each frame, always
 *     disk    reads past the page cache, always
 *     memory  reads the mapped file, always
 *     pipe    captures when a byte comes from stdin, always
 *     hog     computes more, always
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

enum { PAGE = 4096, BLOCK = 256 * 1024, BUFFER = 256 * 1024 * 1024 };

static const uint64_t ms = 1000000, frame_ns = 33333333;
static const char *trouble, *mapped;
static char *block; /* as direct input and output wants it */
static size_t mapped_size;
static int file;

static bool is(const char *name)
{
	return strcmp(trouble, name) == 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 * ms + (uint64_t)t.tv_nsec;
}

/* Needs so much of a processor, however long that takes. */
static void compute(uint64_t need_ns)
{
	for (uint64_t end_ns = cpu_ns() + need_ns; cpu_ns() < end_ns;) {
	}
}

static void prepare(const char *path)
{
	struct stat info;
	file = open(path, O_RDWR | (is("disk") ? O_DIRECT : 0));
	block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file < 0 || fstat(file, &info) < 0 || block == MAP_FAILED) {
		exit(71);
	}
	mapped_size = (size_t)info.st_size;
	mapped = mmap(NULL, mapped_size, PROT_READ, MAP_SHARED, file, 0);
}

static void capture(uint64_t due_ns)
{
	if (is("pipe")) {
		(void)!read(STDIN_FILENO, block, 1);
	} else {
		struct timespec t = {(time_t)(due_ns / (1000 * ms)), (long)(due_ns % (1000 * ms))};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

static void infer(bool on, uint64_t frame)
{
	compute(is("hog") ? 20 * ms : 3 * ms);
	if (is("memory")) {
		for (size_t i = 0; i < mapped_size; i += PAGE) {
			block[0] ^= mapped[i];
		}
	} else if (is("disk")) {
		(void)!pread(file, block, BLOCK, 0);
	} else if (on && is("leak")) {
		memset(malloc(BLOCK), 1, BLOCK);
	} else if (on && is("buffer") && frame % 40 == 0) {
		char *buffer = malloc(BUFFER);
		for (size_t i = 0; buffer && i < BUFFER; i += PAGE) {
			buffer[i] = 1;
		}
		free(buffer);
	}
}

static void save(uint64_t frame)
{
	if (is("fsync")) {
		(void)!pwrite(file, block, PAGE, (off_t)(frame % 64 * PAGE));
		fsync(file);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		return 64;
	}
	trouble = argv[1];
	edgeprof_init(trouble);
	prepare(argv[2]);
	int capture_id = edgeprof_stage("capture"), infer_id = edgeprof_stage("infer"),
	    save_id = edgeprof_stage("postprocess");
	uint64_t due_ns = edgeprof_now(), on_ns = due_ns + strtoul(argv[3], NULL, 10) * 1000 * ms;
	for (uint64_t frame = 0;; frame++) {
		bool on = edgeprof_now() >= on_ns;
		edgeprof_frame_begin(frame);
		edgeprof_token token = edgeprof_begin(capture_id);
		capture(due_ns);
		edgeprof_end(token);
		token = edgeprof_begin(infer_id);
		infer(on, frame);
		edgeprof_end(token);
		token = edgeprof_begin(save_id);
		save(frame);
		edgeprof_end(token);
		edgeprof_frame_end();
		uint64_t now_ns = edgeprof_now();
		due_ns = due_ns + frame_ns < now_ns ? now_ns : due_ns + frame_ns;
	}
}
