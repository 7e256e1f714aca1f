/* SPDX-License-Identifier: Apache-2.0 */
/* demo_pipeline.c: runs an instrumented pipeline: capture -> preprocess -> infer -> postprocess ->
 * publish, on pixels that it renders itself and a small network that it really computes. One thread
 * does it all, or one captures while the other infers; the frame's id ties their events together.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/examples/demo_vision.h"
#include "client/libedgeprof/edgeprof.h"

enum { QUEUE = 3, BOXES = 8 };

/* The options that are numbers. */
enum { LOAD, FPS, FRAMES, THREADS, NUMBERS };

static const struct {
	const char *name;
	uint64_t low, high;
} numbers[NUMBERS] = {[LOAD] = {"load", 1, 32},
	[FPS] = {"fps", 0, 10000},
	[FRAMES] = {"frames", 0, UINT64_MAX - 1},
	[THREADS] = {"threads", 1, 2}};

struct options {
	const char *app, *output;
	uint64_t number[NUMBERS];
	bool verbose;
};

static struct {
	int capture, preprocess, infer, postprocess, publish;
	int waiting, boxes; /* a gauge, and an attribute of postprocess */
} stage;

/* Frames between the threads: a full queue makes capture wait, as a camera driver would drop. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct frame frames[QUEUE];
	uint64_t start_ns[QUEUE];
	size_t head, tail;
	bool ended;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct pipeline {
	const struct options *options;
	struct network *network;
	FILE *output;
	float input[3 * INPUT_WIDTH * INPUT_HEIGHT];
	size_t boxes; /* of the last frame */
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* Sleeps up to the frame's time; a pipeline that is late does not catch up in a burst. */
static void pace(const struct options *options, uint64_t *due_ns)
{
	if (options->number[FPS] == 0) {
		return;
	}
	uint64_t now_ns = edgeprof_now();
	if (*due_ns > now_ns) {
		struct timespec until = {
			(time_t)(*due_ns / 1000000000u), (long)(*due_ns % 1000000000u)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		now_ns = *due_ns;
	}
	*due_ns = now_ns + 1000000000u / options->number[FPS];
}

static void capture(struct frame *frame, uint64_t id)
{
	EDGEPROF_SCOPE(stage.capture);
	frame_render(frame, id);
}

static void publish(
	struct pipeline *p, const struct frame *frame, const struct box *boxes, size_t count)
{
	EDGEPROF_SCOPE(stage.publish);
	char text[1024];
	size_t used = (size_t)snprintf(
		text, sizeof(text), "{\"frame\":%llu,\"boxes\":[", (unsigned long long)frame->id);
	for (size_t i = 0; i < count; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"%s{\"x\":%d,\"y\":%d,\"w\":%d,\"h\":%d,\"score\":%.3f}", i ? "," : "",
			boxes[i].x, boxes[i].y, boxes[i].width, boxes[i].height,
			(double)boxes[i].score);
	}
	snprintf(text + used, sizeof(text) - used, "]}\n");
	fputs(text, p->output);
}

static void process_frame(struct pipeline *p, const struct frame *frame)
{
	struct box boxes[BOXES];
	edgeprof_token token = edgeprof_begin(stage.preprocess);
	frame_preprocess(frame, p->input);
	edgeprof_end(token);
	token = edgeprof_begin(stage.infer);
	const float *heat = network_infer(p->network, p->input);
	edgeprof_end(token);
	token = edgeprof_begin(stage.postprocess);
	p->boxes = network_boxes(heat, boxes, BOXES);
	edgeprof_attribute(stage.postprocess, stage.boxes, (double)p->boxes);
	edgeprof_end(token);
	publish(p, frame, boxes, p->boxes);
	if (p->options->verbose && frame->id % 30 == 0) {
		printf("frame %llu: %zu boxes\n", (unsigned long long)frame->id, p->boxes);
		fflush(stdout);
	}
}

static bool wanted(const struct options *options, uint64_t id)
{
	return !stop && (options->number[FRAMES] == 0 || id < options->number[FRAMES]);
}

static void run_alone(struct pipeline *p)
{
	static struct frame frame;
	uint64_t due_ns = 0;
	for (uint64_t id = 0; wanted(p->options, id); id++) {
		pace(p->options, &due_ns);
		edgeprof_frame_begin(id);
		capture(&frame, id);
		process_frame(p, &frame);
		edgeprof_frame_end();
	}
}

/* Infers what capture_frames queued, until the queue has ended and is empty. */
static void *infer_frames(void *arg)
{
	struct pipeline *p = arg;
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		while (queue.head == queue.tail && !queue.ended) {
			pthread_cond_wait(&queue.changed, &queue.lock);
		}
		if (queue.head == queue.tail) {
			break;
		}
		pthread_mutex_unlock(&queue.lock);
		size_t place = queue.tail % QUEUE;
		const struct frame *frame = &queue.frames[place];
		edgeprof_set_frame(frame->id);
		process_frame(p, frame);
		edgeprof_frame(frame->id, queue.start_ns[place]);
		pthread_mutex_lock(&queue.lock);
		queue.tail++;
		pthread_cond_signal(&queue.changed);
	}
	pthread_mutex_unlock(&queue.lock);
	return NULL;
}

static void capture_frames(const struct options *options)
{
	uint64_t due_ns = 0;
	for (uint64_t id = 0; wanted(options, id); id++) {
		pace(options, &due_ns);
		pthread_mutex_lock(&queue.lock);
		while (queue.head - queue.tail == QUEUE) {
			pthread_cond_wait(&queue.changed, &queue.lock);
		}
		pthread_mutex_unlock(&queue.lock);
		size_t place = queue.head % QUEUE;
		queue.start_ns[place] = edgeprof_now();
		edgeprof_set_frame(id);
		capture(&queue.frames[place], id);
		pthread_mutex_lock(&queue.lock);
		queue.head++;
		edgeprof_gauge(stage.waiting, (double)(queue.head - queue.tail));
		pthread_cond_signal(&queue.changed);
		pthread_mutex_unlock(&queue.lock);
	}
	pthread_mutex_lock(&queue.lock);
	queue.ended = true;
	pthread_cond_signal(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}

static int run(const struct options *options)
{
	static struct pipeline p;
	pthread_t thread;
	int error = EXIT_FAILURE;
	p.options = options;
	p.output = fopen(options->output, "w");
	if (!p.output) {
		fprintf(stderr, "demo-pipeline: %s: %s\n", options->output, strerror(errno));
		goto error;
	}
	edgeprof_mark("before model load");
	p.network = network_create((int)options->number[LOAD]);
	edgeprof_mark_with("after model load",
		(const struct edgeprof_value[]){{"load", (double)options->number[LOAD]}}, 1);
	if (!p.network) {
		fprintf(stderr, "demo-pipeline: no memory for load %d\n",
			(int)options->number[LOAD]);
		goto error;
	}
	if (options->number[THREADS] == 1) {
		run_alone(&p);
	} else {
		int failed = pthread_create(&thread, NULL, infer_frames, &p);
		if (failed) {
			fprintf(stderr, "demo-pipeline: %s\n", strerror(failed));
			goto error;
		}
		capture_frames(options);
		pthread_join(thread, NULL);
	}
	error = EXIT_SUCCESS;
error:
	if (p.output && fclose(p.output) != 0) {
		fprintf(stderr, "demo-pipeline: %s: %s\n", options->output, strerror(errno));
		error = EXIT_FAILURE;
	}
	free(p.network);
	return error;
}

static void usage(FILE *out)
{
	fputs("Usage: demo-pipeline [OPTION]...\n"
	      "A small vision pipeline that reports its stages and frames to edgeprofd.\n\n"
	      "  --app NAME     what it is called (demo)\n"
	      "  --load N       multiplies the network's channels, 1-32 (2)\n"
	      "  --fps N        frames a second to aim at; 0: as fast as it can (30)\n"
	      "  --frames N     how many; 0: until a signal (0)\n"
	      "  --threads N    1, or 2: capture and inference apart (2)\n"
	      "  --output FILE  where detections go, a JSON object a line (/dev/null)\n"
	      "  --verbose      a line every 30 frames\n"
	      "  --help\n",
		out);
}

static bool parse_number(const char *text, int which, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long low = numbers[which].low, high = numbers[which].high;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' || value < low || value > high) {
		fprintf(stderr, "demo-pipeline: '%s' is not a number from %llu to %llu\n", text,
			low, high);
		return false;
	}
	*ret = value;
	return true;
}

int main(int argc, char **argv)
{
	struct option longs[NUMBERS + 5] = {{"app", required_argument, NULL, 'a'},
		{"output", required_argument, NULL, 'o'}, {"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'}};
	struct options options = {.app = "demo",
		.output = "/dev/null",
		.number = {[LOAD] = 2, [FPS] = 30, [THREADS] = 2}};
	for (int i = 0; i < NUMBERS; i++) {
		longs[4 + i] = (struct option){numbers[i].name, required_argument, NULL, i};
	}
	int c;
	while ((c = getopt_long(argc, argv, "vh", longs, NULL)) != -1) {
		if (c < NUMBERS) {
			if (!parse_number(optarg, c, &options.number[c])) {
				return 64;
			}
		} else if (c == 'a') {
			options.app = optarg;
		} else if (c == 'o') {
			options.output = optarg;
		} else if (c == 'v') {
			options.verbose = true;
		} else {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? EXIT_SUCCESS : 64;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return 64;
	}
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	edgeprof_init(options.app);
	stage.capture = edgeprof_stage("capture");
	stage.preprocess = edgeprof_stage("preprocess");
	stage.infer = edgeprof_stage_declare("infer", "model", "cpu", 33 * 1000 * 1000);
	stage.postprocess = edgeprof_stage("postprocess");
	stage.publish = edgeprof_stage("publish");
	stage.waiting = edgeprof_gauge_declare("waiting", "frames");
	stage.boxes = edgeprof_stage("boxes");
	edgeprof_deadline(stage.capture, 10 * 1000 * 1000);
	edgeprof_frame_deadline(100 * 1000 * 1000);
	return run(&options);
}
