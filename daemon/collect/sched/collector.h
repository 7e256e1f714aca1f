/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector.h: defines a sensor source: one file below daemon/collect, one const struct
 * collector_ops, one line in the sorted list of daemon/collect/meson.build. The framework
 * (scheduler) gives it a timer, a configuration section, states, and the metrics
 * collector/<name>/…; it measures time and errors, not the collector.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/util/root.h"

enum { COLLECTOR_KEYS = 8, BACKGROUND_MAX = 2 };

/* [source NAME] of the configuration. */
struct source_options {
	char name[PROTO_NAME_SIZE];
	bool enabled;
	uint64_t interval_ns; /* 0 = the default */
	size_t keys;
	struct {
		char key[32];
		char value[224];
	} key[COLLECTOR_KEYS];
};

/* What a collector may use. Valid from open to close. */
struct entry;
struct fetch;
struct uv_loop_s;
struct fetch_pool;

struct collector_context {
	const struct root *root;      /* device files; --root */
	const struct root *real_root; /* always the machine's own: self, attached apps */
	struct core *core;
	struct source *source;		      /* its own */
	const struct source_options *options; /* NULL = all defaults */
	struct uv_loop_s *loop;	  /* for sources that events feed; NULL without a scheduler */
	const char *pdeath_exec;  /* for their children (child.h); NULL = none */
	struct entry *entry;	  /* the framework's; NULL without one */
	struct fetch_pool *pool;  /* for fetch.h; NULL without a scheduler */
	struct fetch *background; /* BACKGROUND_MAX slots; they outlive the collector's state */
	uint64_t now_ns;	  /* in sample: of the tick */
	char *reason; /* of collector_fail: SOURCE_REASON_SIZE bytes; in probe, open and sample */
};

struct collector_ops {
	const char *name;
	uint64_t interval_ns;		/* default; 0 = [sampling] interval */
	const char *const *config_keys; /* own keys in addition to enabled and interval;
					   NULL-terminated or NULL */
	bool internal;			/* its metrics have no full-rate history (self) */
	const char *folder; /* class of its devices: opened again when they are others; or NULL */
	size_t state_size;  /* the framework allocates it, zeroed, and frees it after close */

	/* First half of the opening for a collector with fetch: looks through files that may hang,
	 * on a thread of the framework, with the roots, the options and the reason in ctx and
	 * nothing else. Results as of open. NULL: open does it all. */
	int (*probe)(const struct collector_context *ctx, void *state);
	/* Probes the machine, keeps descriptors open, adds metrics. 0; -ENOENT/-ENODATA when this
	 * machine has none (with a reason); other -errno = error (tried again every 60 s). After a
	 * probe only names are made of what it found: no file is touched. */
	int (*open)(const struct collector_context *ctx, void *state);
	/* Reads and sets metrics; the framework commits them as of ctx->now_ns. 0; or -errno with a
	 * reason when nothing could be read. One unreadable value is metric_set_null, not an error.
	 * -EINPROGRESS: it took long enough for an iteration of the loop, and goes on in the next
	 * one; the same ctx->now_ns is given again. Allocates nothing in steady state; makes one
	 * read a file. */
	int (*sample)(const struct collector_context *ctx, void *state);
	/* Once after a probe or an open, even a failed one. NULL: the state holds nothing. */
	void (*close)(void *state);

	/* Fed by events of ctx->loop: what arrives is set and committed with collector_arrived(),
	 * with its own time. sample is then only a look at how it fares, once an interval: 0 =
	 * fine; -EAGAIN = nothing has arrived yet, and is not late; -ETIME = late: stale, all null;
	 * -ENOENT/-ENODATA = gone: closed and unavailable; other -errno = error, all null. What
	 * close cannot finish at once is held with collector_hold(). */
	bool event_driven;

	/* For files that may hang; NULL = none. Called before each sample, on a thread of the
	 * framework: only reads, into buffers inside state, which nobody else touches meanwhile.
	 * ctx holds the roots and nothing else. 0, or -errno: the source fails. When it is late the
	 * source is an error until it answers in time again. Of such a collector close, too, is
	 * called on such a thread, after everything else is gone: it frees, and closes descriptors.
	 */
	int (*fetch)(const struct collector_context *ctx, void *state);

	/* Why the value of an own key cannot be (static text), or NULL: asked when the
	 * configuration is read. NULL = every text is fine. */
	const char *(*refuse)(const char *key, const char *value);

	/* For what a collector reports elsewhere than in metrics; NULL = none. On the loop,
	 * whenever its metrics become null as a whole: late, failed, closed, switched off. */
	void (*forget)(const struct collector_context *ctx);
};

/* Commits what an event-driven collector has set, as of now_ns; started_ns: when work on it began
 * (its cost). Does nothing after close. */
void collector_arrived(const struct collector_context *ctx, uint64_t now_ns, uint64_t started_ns);

/* The scheduler is not closed, and ctx stays valid, until each hold is released (from the loop). */
void collector_hold(const struct collector_context *ctx);
void collector_release(const struct collector_context *ctx);

/* Writes the reason of a failure, in probe, open or sample: returns error. */
int collector_fail(const struct collector_context *ctx, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A collector's zeroed state, NULL when memory is short; closes and frees one. */
void *collector_state(const struct collector_ops *ops);
void collector_free(const struct collector_ops *ops, void *state); /* accepts NULL */

/* The value of an own key, "" when it is not set. options may be NULL. */
const char *source_option(const struct source_options *options, const char *key);

/* The sorted list (registry.c); NULL-terminated. */
extern const struct collector_ops *const collectors[];
const struct collector_ops *collector_find(const char *name);
