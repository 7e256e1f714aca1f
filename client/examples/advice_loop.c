/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice_loop.c: does less work while the machine is hot or throttled or frames are late, and
 * returns to normal afterwards. Each second it prints what the daemon advised and what it did, for
 * example "reduced 20 of 30":
 *
 *     cc advice_loop.c $(pkg-config --cflags --libs libedgeprof)
 *     ./a.out [FPS [WORK_MS [SECONDS]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <edgeprof.h>

static void sleep_until(uint64_t time_ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* The model: of half the size when it matters. */
static void infer(int stage, const struct edgeprof_advice *advice, uint64_t work_ns)
{
	EDGEPROF_SCOPE(stage);
	bool small = advice->level == EDGEPROF_ADVICE_MINIMAL;
	sleep_until(edgeprof_now() + (small ? work_ns / 2 : work_ns));
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"none", "full", "reduced", "minimal"};
	unsigned long fps = argc > 1 ? strtoul(argv[1], NULL, 10) : 30;
	uint64_t work_ns = (argc > 2 ? strtoul(argv[2], NULL, 10) : 5) * 1000000;
	unsigned long seconds = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
	fps = fps > 0 ? fps : 1;
	edgeprof_init("advice-loop");
	edgeprof_frame_deadline(1000000000 / fps);
	int stage = edgeprof_stage("infer");
	uint64_t camera_ns = edgeprof_now();
	for (unsigned long n = 0, worked = 0; n < seconds * fps; n++) {
		sleep_until(camera_ns += 1000000000 / fps);
		struct edgeprof_advice advice;
		edgeprof_advice(&advice);
		if (!edgeprof_should_skip()) {
			edgeprof_frame_begin(n);
			infer(stage, &advice, work_ns);
			edgeprof_frame_end();
			worked++;
		}
		if ((n + 1) % fps == 0) {
			printf("%s %lu of %lu\n", names[advice.level], worked, fps);
			fflush(stdout);
			worked = 0;
		}
	}
	return 0;
}
