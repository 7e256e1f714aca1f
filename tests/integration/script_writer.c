/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instrumented program that says exactly what a script says, for test_numbers.py: the library's
 * clock is that of the script, so that every call of it has a time known to the nanosecond.
 * usage: script-writer APP, one command a line on stdin. Times are CLOCK_MONOTONIC in ns.
 *
 *     THREAD CALL AT …    the call, in this thread (0-7), when the clock shows AT; AT 0 = now
 *         begin STAGE     end     failed     idbegin STAGE ID     idend STAGE ID
 *         complete STAGE DURATION FRAME      that ended at AT; FRAME '-' = none
 *         frame_begin ID  frame_end          frame ID START       tick     set_frame ID
 *         deadline STAGE NS                  frame_deadline NS    attribute STAGE NAME VALUE
 *         declare STAGE CATEGORY UNIT NS     '-' = none
 *     sync                answers "SENT RECEIVED DROPPED"
 *     fork                answers the pid of a child that runs a stage every 50 ms, for good
 *     abort | segfault | deadlock | _exit | exit [STATUS]
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "edgeprof.h"

enum { THREADS = 8, WORDS = 8, DEPTH = 16 };

/* One command at a time: given by the main thread, taken by the worker. */
struct worker {
	pthread_t thread;
	bool started, given;
	char *word[WORDS];
	edgeprof_token open[DEPTH];
	unsigned count;
};

static struct worker workers[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread uint64_t script_ns;

/* In front of libc's, for the library as well. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock == CLOCK_MONOTONIC && script_ns > 0) {
		ts->tv_sec = (time_t)(script_ns / 1000000000);
		ts->tv_nsec = (long)(script_ns % 1000000000);
		return 0;
	}
#ifdef SYS_clock_gettime64 /* of 32-bit machines; their time_t has 64 bits, see meson.build */
	return (int)syscall(SYS_clock_gettime64, clock, ts);
#else
	return (int)syscall(SYS_clock_gettime, clock, ts);
#endif
}

static uint64_t number(const char *word)
{
	return word && strcmp(word, "-") != 0 ? strtoull(word, NULL, 10) : EDGEPROF_NO_FRAME;
}

static const char *label(const char *word)
{
	return word && strcmp(word, "-") != 0 ? word : NULL;
}

static void end(struct worker *worker, bool failed)
{
	if (worker->count > 0) {
		edgeprof_token token = worker->open[--worker->count];
		if (failed) {
			edgeprof_end_failed(token);
		} else {
			edgeprof_end(token);
		}
	}
}

/* word: THREAD CALL AT, then its arguments. False: there is no such call. */
static bool call(struct worker *worker)
{
	char **word = worker->word, **argument = &word[3];
	const char *name = word[1];
	script_ns = number(word[2]);
	int stage = argument[0] ? edgeprof_stage(argument[0]) : -1;
	if (!strcmp(name, "begin") && worker->count < DEPTH) {
		worker->open[worker->count++] = edgeprof_begin(stage);
	} else if (!strcmp(name, "end") || !strcmp(name, "failed")) {
		end(worker, name[0] == 'f');
	} else if (!strcmp(name, "complete")) {
		uint64_t duration_ns = number(argument[1]);
		edgeprof_complete(
			stage, edgeprof_now() - duration_ns, duration_ns, number(argument[2]));
	} else if (!strcmp(name, "idbegin")) {
		edgeprof_begin_id(stage, number(argument[1]));
	} else if (!strcmp(name, "idend")) {
		edgeprof_end_id(stage, number(argument[1]));
	} else if (!strcmp(name, "deadline")) {
		edgeprof_deadline(stage, number(argument[1]));
	} else if (!strcmp(name, "attribute")) {
		edgeprof_attribute(stage, edgeprof_stage(argument[1]), strtod(argument[2], NULL));
	} else {
		return false;
	}
	return true;
}

/* Those whose first argument is no stage. */
static bool call_of_frames(char **word)
{
	char **argument = &word[3];
	const char *name = word[1];
	script_ns = number(word[2]);
	if (!strcmp(name, "frame_begin")) {
		edgeprof_frame_begin(number(argument[0]));
	} else if (!strcmp(name, "frame_end")) {
		edgeprof_frame_end();
	} else if (!strcmp(name, "frame")) {
		edgeprof_frame(number(argument[0]), number(argument[1]));
	} else if (!strcmp(name, "tick")) {
		edgeprof_tick();
	} else if (!strcmp(name, "set_frame")) {
		edgeprof_set_frame(number(argument[0]));
	} else if (!strcmp(name, "frame_deadline")) {
		edgeprof_frame_deadline(number(argument[0]));
	} else if (!strcmp(name, "declare")) {
		edgeprof_stage_declare(
			argument[0], label(argument[1]), label(argument[2]), number(argument[3]));
	} else {
		return false;
	}
	return true;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!worker->given) {
			pthread_cond_wait(&changed, &lock);
		}
		if (!call_of_frames(worker->word) && !call(worker)) {
			fprintf(stderr, "script-writer: no such call: %s\n", worker->word[1]);
			_exit(65);
		}
		worker->given = false;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

static void give(struct worker *worker, char **word)
{
	if (!worker->started) {
		worker->started = pthread_create(&worker->thread, NULL, work, worker) == 0;
	}
	pthread_mutex_lock(&lock);
	memcpy(worker->word, word, sizeof(worker->word));
	worker->given = true;
	pthread_cond_broadcast(&changed);
	while (worker->given && worker->started) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

static void fork_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (;;) {
			edgeprof_end(edgeprof_begin(edgeprof_stage("child")));
			usleep(50000);
		}
	}
	printf("%d\n", (int)pid);
	fflush(stdout);
}

static void end_badly(const char *how, const char *status)
{
	if (!strcmp(how, "abort")) {
		abort();
	} else if (!strcmp(how, "segfault")) {
		raise(SIGSEGV);
	} else if (!strcmp(how, "_exit")) {
		_exit(3);
	} else if (!strcmp(how, "exit")) {
		exit(status ? (int)strtol(status, NULL, 10) : 3);
	} else if (!strcmp(how, "deadlock")) {
		pthread_mutex_lock(&lock);
		pthread_mutex_lock(&lock);
	}
}

int main(int argc, char **argv)
{
	char line[512];
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
		if (count >= 3) {
			give(&workers[strtoul(word[0], NULL, 10) % THREADS], word);
		} else if (count > 0 && strcmp(word[0], "sync") == 0) {
			struct edgeprof_counts counts;
			edgeprof_counts(&counts);
			printf("%llu %llu %llu\n", (unsigned long long)counts.sent,
				(unsigned long long)counts.received,
				(unsigned long long)counts.dropped);
			fflush(stdout);
		} else if (count > 0 && strcmp(word[0], "fork") == 0) {
			fork_child();
		} else if (count > 0) {
			end_badly(word[0], word[1]);
		}
	}
	return 0;
}
