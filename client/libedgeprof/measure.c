/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c: measures what stages and frames ask for besides their time: memory, CPU time,
 * switches. */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/*
 * /proc/self/statm (pages) for now, VmHWM of /proc/self/status (kB) for the peak: what getrusage
 * calls ru_maxrss is also that of the program this process was before exec.
 */

/* The start of a file as a string; its length or -ENODATA. */
static int read_start(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -ENODATA;
	}
	ssize_t n = read(fd, ret, size - 1);
	close(fd);
	if (n <= 0) {
		return -ENODATA;
	}
	ret[n] = '\0';
	return (int)n;
}

/* A decimal number; no locale, no errno. */
static bool take_number(const char **text, uint64_t *ret)
{
	size_t digits = strspn(*text, "0123456789");
	*ret = 0;
	for (size_t i = 0; i < digits; i++) {
		*ret = *ret * 10 + (uint64_t)(*(*text)++ - '0');
	}
	return digits > 0;
}

int memory_read(struct memory *ret)
{
	int saved = errno;
	char text[128];
	uint64_t size, resident;
	const char *p = text;
	int n = read_start("/proc/self/statm", text, sizeof(text));
	errno = saved;
	if (n < 0 || !take_number(&p, &size) || *p++ != ' ' || !take_number(&p, &resident)) {
		return -ENODATA;
	}
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	*ret = (struct memory){.resident_bytes = resident * page, .virtual_bytes = size * page};
	return 0;
}

uint64_t memory_peak(uint64_t resident_bytes)
{
	static const char title[] = "\nVmHWM:";
	int saved = errno;
	char text[2048];
	int n = read_start("/proc/self/status", text, sizeof(text));
	const char *p = n > 0 ? strstr(text, title) : NULL;
	uint64_t kilobytes = 0;
	struct rusage usage;
	if (p) {
		p += strlen(title);
		p += strspn(p, " \t");
	}
	if ((!p || !take_number(&p, &kilobytes)) && getrusage(RUSAGE_SELF, &usage) == 0) {
		kilobytes = (uint64_t)usage.ru_maxrss;
	}
	errno = saved;
	/* the kernel updates its high water lazily */
	return kilobytes * 1024 > resident_bytes ? kilobytes * 1024 : resident_bytes;
}

/*
 * Meters of opted-in stages: system calls at their begin and end. Where the meters stood is kept by
 * slot and depth, in memory that is touched only when there is such a stage.
 */

static uint8_t options_of[PROTO_DECLARATIONS];

static struct cost {
	uint64_t cpu_ns, process_cpu_ns, resident_bytes; /* UINT64_MAX: not measured */
} costs[THREAD_SLOTS][PROTO_OPEN_STAGES];

void edgeprof_stage_options(int stage, unsigned options)
{
	if (!is_declared((uint32_t)stage)) {
		return;
	}
	options &= EDGEPROF_CPU_TIME | EDGEPROF_PROCESS_CPU | EDGEPROF_RSS;
	__atomic_store_n(&options_of[stage], (uint8_t)options, __ATOMIC_RELAXED);
	process_set_stage((uint32_t)stage, options ? STAGE_MEASURED : STAGE_PLAIN);
}

static uint64_t cpu_clock(clockid_t clock)
{
	struct timespec ts;
	return clock_gettime(clock, &ts) == 0 ? timespec_ns(&ts) : UINT64_MAX;
}

static uint64_t resident(void)
{
	struct memory memory;
	return memory_read(&memory) == 0 ? memory.resident_bytes : UINT64_MAX;
}

void cost_begin(const struct thread *t, uint32_t depth, uint32_t stage)
{
	unsigned options = __atomic_load_n(&options_of[stage], __ATOMIC_RELAXED);
	struct cost *c = &costs[t->index][depth];
	/* the thread's own time last: it is the one that the others would be seen in */
	c->resident_bytes = options & EDGEPROF_RSS ? resident() : UINT64_MAX;
	c->process_cpu_ns =
		options & EDGEPROF_PROCESS_CPU ? cpu_clock(CLOCK_PROCESS_CPUTIME_ID) : UINT64_MAX;
	c->cpu_ns = options & EDGEPROF_CPU_TIME ? cpu_clock(CLOCK_THREAD_CPUTIME_ID) : UINT64_MAX;
}

static uint32_t saturated_us(uint64_t us)
{
	return us < PROTO_CPU_NOT_MEASURED - 1 ? (uint32_t)us : PROTO_CPU_NOT_MEASURED - 1;
}

static uint64_t since(uint64_t begin_ns, clockid_t clock)
{
	uint64_t end_ns = begin_ns != UINT64_MAX ? cpu_clock(clock) : UINT64_MAX;
	return end_ns != UINT64_MAX ? end_ns - begin_ns : UINT64_MAX;
}

bool cost_end(const struct thread *t, uint32_t depth, uint32_t *cpu_us, struct proto_record *cost)
{
	const struct cost *c = &costs[t->index][depth];
	uint64_t cpu_ns = since(c->cpu_ns, CLOCK_THREAD_CPUTIME_ID);
	*cpu_us =
		cpu_ns != UINT64_MAX ? saturated_us((cpu_ns + 500) / 1000) : PROTO_CPU_NOT_MEASURED;
	cost->value = since(c->process_cpu_ns, CLOCK_PROCESS_CPUTIME_ID);
	uint64_t end = c->resident_bytes != UINT64_MAX ? resident() : UINT64_MAX;
	int64_t growth = end != UINT64_MAX ? (int64_t)(end - c->resident_bytes) : INT64_MIN;
	cost->frame = (uint64_t)growth;
	return cost->value != UINT64_MAX || growth != INT64_MIN;
}

/*
 * Frame context: one getrusage and one pread of /proc/thread-self/schedstat (run time, time on the
 * run queue, slices; ns) at a frame's end. Differences to the thread's frame before; on up to 120
 * frames a second, where the two calls are at most 0.1 % of a frame, off above, where they would be
 * seen.
 */

enum {
	ON_NS = 8200000,     /* smoothed time between ends: 120 a second with some slack */
	OFF_NS = 7500000,    /* 133 a second: 120 with jitter stays on */
	LONG_NS = 100000000, /* a pause counts as this: soon outweighed by a burst */
};

struct meters {
	struct rusage usage;
	uint64_t wait_ns; /* UINT64_MAX: not known */
};

static struct context {
	uint64_t last_ns;     /* end of the frame before; 0: none */
	uint64_t interval_ns; /* between ends, smoothed; 0: not known */
	bool on, based;
	struct descriptor schedstat; /* 0 (which is never ours): not opened yet */
	struct meters base;	     /* at the end of the frame before, if based */
} contexts[THREAD_SLOTS];

/* Takes the end into account; are these frames few enough? */
static bool wanted(struct context *c, uint64_t now_ns)
{
	uint64_t interval_ns = now_ns - c->last_ns;
	if (c->last_ns != 0) {
		interval_ns = interval_ns < LONG_NS ? interval_ns : LONG_NS;
		c->interval_ns = c->interval_ns
					 ? c->interval_ns - c->interval_ns / 8 + interval_ns / 8
					 : interval_ns;
	}
	c->last_ns = now_ns;
	if (c->interval_ns >= ON_NS) {
		c->on = true;
	} else if (c->interval_ns < OFF_NS) {
		c->on = false;
	}
	return c->on;
}

/* The second of three numbers; anything else is not the file that we opened. */
static uint64_t parse_wait(const char *text)
{
	uint64_t field[3];
	for (int i = 0; i < 3; i++) {
		if (!take_number(&text, &field[i]) || *text++ != (i < 2 ? ' ' : '\n')) {
			return UINT64_MAX;
		}
	}
	return field[1];
}

static uint64_t read_wait(struct context *c)
{
	if (c->schedstat.fd == 0) {
		c->schedstat.fd = -1;
		descriptor_set(
			&c->schedstat, open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
	}
	if (c->schedstat.fd < 0) {
		return UINT64_MAX;
	}
	char text[96];
	ssize_t n = pread(c->schedstat.fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	uint64_t wait_ns = parse_wait(text);
	if (wait_ns == UINT64_MAX) { /* the app has closed it or taken its number */
		descriptor_close(&c->schedstat);
	}
	return wait_ns;
}

static uint16_t saturated(long after, long before)
{
	long count = after - before;
	return count <= 0 ? 0 : count < UINT16_MAX ? (uint16_t)count : UINT16_MAX;
}

static uint32_t wait_us(const struct meters *after, const struct meters *before)
{
	if (after->wait_ns == UINT64_MAX || before->wait_ns == UINT64_MAX ||
		after->wait_ns < before->wait_ns) {
		return PROTO_CPU_NOT_MEASURED;
	}
	return saturated_us((after->wait_ns - before->wait_ns) / 1000);
}

void context_frame(struct thread *t, uint64_t now_ns, uint64_t frame)
{
	struct context *c = &contexts[t->index];
	if (!process.context || !attach_connected() || !wanted(c, now_ns)) {
		c->based = false;
		return;
	}
	int saved = errno;
	struct meters now;
	bool measured = getrusage(RUSAGE_THREAD, &now.usage) == 0;
	now.wait_ns = read_wait(c);
	errno = saved;
	if (c->based && measured) {
		const struct rusage *a = &now.usage, *b = &c->base.usage;
		record_write(t, now_ns,
			(struct proto_record){
				.kind = PROTO_KIND_CONTEXT,
				.cpu_us = wait_us(&now, &c->base),
				.start_ns = now_ns,
				.value = proto_context(saturated(a->ru_nvcsw, b->ru_nvcsw),
					saturated(a->ru_nivcsw, b->ru_nivcsw),
					saturated(a->ru_minflt, b->ru_minflt),
					saturated(a->ru_majflt, b->ru_majflt)),
				.frame = frame,
			});
	}
	c->base = now;
	c->based = measured;
}

void context_end(uint32_t slot)
{
	struct context *c = &contexts[slot];
	if (c->schedstat.fd > 0) {
		descriptor_close(&c->schedstat);
	}
	*c = (struct context){0};
}
