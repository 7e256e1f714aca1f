/*
 * Frame context: one getrusage and one pread of /proc/thread-self/schedstat (run time, time on the
 * run queue, slices; ns) at a frame's end. Differences to the thread's frame before; on up to 120
 * frames a second, where the two calls are at most 0.1 % of a frame, off above, where they would be
 * seen.
 */
#include "client/libedgeprof/context.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/libedgeprof/attach.h"
#include "client/libedgeprof/descriptor.h"
#include "client/libedgeprof/record.h"

enum {
	ON_NS = 8200000,     /* smoothed time between ends: 120 a second with some slack */
	OFF_NS = 7500000,    /* 133 a second: 120 with jitter stays on */
	LONG_NS = 100000000, /* a pause counts as this: soon outweighed by a burst */
};

enum schedstat_state { SCHEDSTAT_FRESH = 0, SCHEDSTAT_OPEN, SCHEDSTAT_ABSENT };

struct meters {
	struct rusage usage;
	uint64_t wait_ns; /* UINT64_MAX: not known */
};

static struct context {
	uint64_t last_ns;     /* end of the frame before; 0: none */
	uint64_t interval_ns; /* between ends, smoothed; 0: not known */
	bool on, based;
	enum schedstat_state state;
	struct descriptor schedstat;
	struct meters base; /* at the end of the frame before, if based */
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

static void schedstat_open(struct context *c)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	c->state = descriptor_set(&c->schedstat, fd) == 0 ? SCHEDSTAT_OPEN : SCHEDSTAT_ABSENT;
}

/* The second of three numbers; anything else is not the file that we opened. */
static uint64_t parse_wait(const char *text)
{
	uint64_t field[3] = {0, 0, 0};
	for (int i = 0; i < 3; i++, text++) {
		size_t digits = strspn(text, "0123456789");
		for (size_t d = 0; d < digits; d++) {
			field[i] = field[i] * 10 + (uint64_t)(text[d] - '0');
		}
		text += digits;
		if (digits == 0 || *text != (i < 2 ? ' ' : '\n')) {
			return UINT64_MAX;
		}
	}
	return field[1];
}

static uint64_t read_wait(struct context *c)
{
	if (c->state == SCHEDSTAT_FRESH) {
		schedstat_open(c);
	}
	if (c->state != SCHEDSTAT_OPEN) {
		return UINT64_MAX;
	}
	char text[96];
	ssize_t n = pread(c->schedstat.fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	uint64_t wait_ns = parse_wait(text);
	if (wait_ns == UINT64_MAX) { /* the app has closed it or taken its number */
		descriptor_close(&c->schedstat);
		c->state = SCHEDSTAT_ABSENT;
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
	uint64_t us = (after->wait_ns - before->wait_ns) / 1000;
	return us < PROTO_CPU_NOT_MEASURED - 1 ? (uint32_t)us : PROTO_CPU_NOT_MEASURED - 1;
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
	if (c->state == SCHEDSTAT_OPEN) {
		descriptor_close(&c->schedstat);
	}
	*c = (struct context){0};
}

void context_forget(void)
{
	for (uint32_t i = 0; i < THREAD_SLOTS; i++) {
		context_end(i);
	}
}
