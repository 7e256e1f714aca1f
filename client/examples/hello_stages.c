/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello_stages.c: shows the smallest complete program: three stages a frame, a deadline, a mark, a
 * gauge.
 *
 *     cc hello_stages.c $(pkg-config --cflags --libs libedgeprof) && ./a.out 100
 *     edgeprofctl stages hello
 */
#include <stdlib.h>
#include <time.h>

#include <edgeprof.h>

static void work_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

int main(int argc, char **argv)
{
	unsigned long frames = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	edgeprof_init("hello");
	const int capture = edgeprof_stage("capture");
	const int infer = edgeprof_stage_declare("infer", "model", "cpu", 0);
	const int publish = edgeprof_stage("publish");
	const int queue = edgeprof_gauge_declare("queue", "frames");
	const int boxes = edgeprof_stage("boxes");
	edgeprof_deadline(infer, 33 * 1000 * 1000);
	edgeprof_frame_deadline(50 * 1000 * 1000);
	edgeprof_mark("model loaded");
	for (unsigned long n = 0; n < frames; n++) {
		edgeprof_frame_begin(n);
		edgeprof_token token = edgeprof_begin(capture);
		work_ms(2);
		edgeprof_end(token);
		token = edgeprof_begin(infer);
		work_ms(6);
		edgeprof_attribute(infer, boxes, (double)(n % 4));
		edgeprof_end(token);
		{
			EDGEPROF_SCOPE(publish);
			work_ms(1);
		}
		edgeprof_gauge(queue, (double)(n % 3));
		edgeprof_frame_end();
	}
	return 0;
}
