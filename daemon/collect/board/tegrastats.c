/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tegrastats.c: runs NVIDIA's tegrastats as one long-lived child (child.c) whose lines become
 * metrics (tegrastats_metrics.c) when they arrive; the tick only checks whether they still do. Own
 * key: command (absolute path; default: /usr/bin/tegrastats, then the paths of old releases). A
 * late line makes the source stale, a hanging or flooding child is ended, a dead one is restarted
 * after 1 s, 2 s … 60 s. Never --stop: that would end other people's tegrastats, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/collect/board/tegrastats_metrics.h"
#include "daemon/collect/lib/child.h"
#include "daemon/collect/lib/lines.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum {
	LINE_BYTES = 16384,	   /* the longest known line has 900, 128 cores have 2000 */
	FLOOD_BYTES = 1024 * 1024, /* an interval: then it is not tegrastats */
	COMMAND_SIZE = 224,
	UNPARSED_SIZE = 48,
	STALE_INTERVALS = 2,
	HUNG_INTERVALS = 10,
};

#define HUNG_MIN_NS UINT64_C(10000000000)

/* Outlives the collector's state, which points to it: until the child has ended. */
struct tegrastats_source {
	const struct collector_context *ctx;
	struct child child;
	struct lines lines;
	char command[COMMAND_SIZE], interval[24];
	const char *argv[4];
	uint64_t interval_ns;  /* that the child was started with */
	uint64_t line_ns;      /* of the present child's last good line; its start before that */
	uint64_t committed_ns; /* 0 = never */
	uint64_t good_lines;   /* good lines of the present child */
	size_t bytes;	       /* since the last sample */
	bool pending; /* a line came too soon after the previous one; the next sample sets it */
	bool pending_loads;
	bool failed; /* it died or hung, and no good line has come since */
	uint32_t deaths_seen;
	uint32_t expected_deaths;     /* deaths to come that were requested, no failure */
	char unparsed[UNPARSED_SIZE]; /* the last line that is not tegrastats' */
	size_t latest;
	struct tegrastats stats[2]; /* the latest good line, and where the next is parsed */
};

/* Where it was before /usr/bin (L4T up to R28). */
static const char *const paths[] = {
	"/usr/bin/tegrastats",
	"/home/nvidia/tegrastats",
	"/home/ubuntu/tegrastats",
	"/root/tegrastats",
};

/* 0 when it is a program. What was not configured must belong to root and be nobody else's to
 * change: a user's home is not where a daemon finds programs. */
static int check_program(const char *path, bool configured)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EACCES;
	}
	if (!configured && (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))) {
		return -ENOENT;
	}
	return access(path, X_OK) < 0 ? -errno : 0;
}

static int find_command(const struct collector_context *ctx, char ret[COMMAND_SIZE])
{
	const char *command = source_option(ctx->options, "command");
	if (command[0] != '\0') {
		int r = command[0] == '/' ? check_program(command, true) : -EINVAL;
		snprintf(ret, COMMAND_SIZE, "%s", command);
		return r == 0 ? 0
			      : collector_fail(ctx, r == -ENOTDIR ? -ENOENT : r,
					"command %.100s: %s", command,
					r == -EINVAL ? "not an absolute path" : errno_reason(r));
	}
	if (ctx->root->fixture) {
		return collector_fail(ctx, -ENOENT, "not started automatically with --root");
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (check_program(paths[i], false) == 0) {
			snprintf(ret, COMMAND_SIZE, "%s", paths[i]);
			return 0;
		}
	}
	return collector_fail(ctx, -ENOENT, "no %s (nor an older place of it)", paths[0]);
}

static void apply_interval(struct tegrastats_source *source)
{
	source->interval_ns = source->ctx->source->interval_ns;
	snprintf(source->interval, sizeof(source->interval), "%" PRIu64,
		source->interval_ns / 1000000);
	source->argv[0] = source->command;
	source->argv[1] = "--interval";
	source->argv[2] = source->interval;
	source->argv[3] = NULL;
}

static void publish(struct tegrastats_source *source, uint64_t now_ns, uint64_t started_ns)
{
	const struct collector_context *ctx = source->ctx;
	tegrastats_metrics_set(ctx->core->metrics, ctx->source, &source->stats[source->latest],
		source->pending_loads);
	source->pending = false;
	source->committed_ns = now_ns;
	collector_arrived(ctx, now_ns, started_ns);
}

static void save_unparsed(struct tegrastats_source *source, const char *line, size_t length)
{
	size_t kept = 0;
	for (size_t i = 0; i < length && kept + 1 < sizeof(source->unparsed); i++) {
		bool printable = line[i] >= ' ' && line[i] <= '~';
		source->unparsed[kept++] = printable ? line[i] : '?';
	}
	source->unparsed[kept] = '\0';
}

static void on_line(void *ctx, const char *line, size_t length)
{
	struct tegrastats_source *source = ctx;
	uint64_t now_ns = sysops()->now_ns();
	size_t next = !source->latest;
	if (tegrastats_parse(line, length, &source->stats[next]) < 0) {
		save_unparsed(source, line, length);
		source->ctx->source->lines_unknown++;
		return;
	}
	source->ctx->source->tokens_unknown += source->stats[next].unknown;
	source->latest = next;
	source->line_ns = now_ns;
	source->pending = true;
	source->pending_loads = source->good_lines++ > 0;
	source->failed = false;
	source->unparsed[0] = '\0';
	/* History counts on the interval: the lines of a child that does not keep it are set at the
	 * ticks. */
	if (source->committed_ns == 0 || now_ns - source->committed_ns >= source->interval_ns / 2) {
		publish(source, now_ns, now_ns);
	}
}

static void count_deaths(struct tegrastats_source *source)
{
	for (; source->deaths_seen != source->child.deaths; source->deaths_seen++) {
		if (source->expected_deaths > 0) {
			source->expected_deaths--;
		} else {
			source->ctx->source->errors++;
			source->failed = true;
		}
	}
}

static void on_output(void *ctx, const char *bytes, size_t length)
{
	struct tegrastats_source *source = ctx;
	if (length == 0) {
		count_deaths(source);
		lines_reset(&source->lines);
		source->good_lines = 0;
		source->line_ns = sysops()->now_ns();
		return;
	}
	source->bytes += length;
	if (source->bytes > FLOOD_BYTES) {
		child_restart(&source->child, "wrote more than 1 MiB in an interval", false);
		return;
	}
	uint64_t cut = source->lines.cut;
	lines_feed(&source->lines, bytes, length, on_line, source);
	source->ctx->source->lines_cut += source->lines.cut - cut;
}

static void on_closed(void *ctx)
{
	struct tegrastats_source *source = ctx;
	const struct collector_context *context = source->ctx;
	lines_finish(&source->lines);
	free(source);
	collector_release(context);
}

static void tegrastats_close(void *state)
{
	struct tegrastats_source **source = state;
	if (*source) {
		child_close(&(*source)->child);
	}
}

static int tegrastats_open(const struct collector_context *ctx, void *state)
{
	if (!ctx->loop || !ctx->entry) {
		return collector_fail(ctx, -ENODATA, "needs the daemon's event loop");
	}
	struct tegrastats_source *source = mem_zalloc(sizeof(*source));
	if (!source) {
		return -ENOMEM;
	}
	int r = find_command(ctx, source->command);
	r = r < 0 ? r : lines_init(&source->lines, LINE_BYTES);
	if (r < 0) {
		free(source);
		return r;
	}
	ctx->source->yields = true;
	ctx->source->reads_lines = true;
	source->ctx = ctx;
	source->line_ns = sysops()->now_ns();
	apply_interval(source);
	const struct child_options options = {
		.argv = source->argv,
		.pdeath_exec = ctx->pdeath_exec,
		.backoff_min_ms = 1000,
		.backoff_max_ms = 60000,
		.kill_ms = 1000,
		.output = on_output,
		.closed = on_closed,
		.ctx = source,
	};
	collector_hold(ctx);
	child_open(&source->child, ctx->loop, &options);
	*(struct tegrastats_source **)state = source;
	return 0;
}

/* A new interval needs a new child; the end of the old one does not count as a failure. */
static void follow_interval(struct tegrastats_source *source, uint64_t now_ns)
{
	if (source->interval_ns == source->ctx->source->interval_ns) {
		return;
	}
	apply_interval(source);
	source->line_ns = now_ns;
	source->expected_deaths += source->child.phase == CHILD_RUNNING;
	child_restart(&source->child, "its interval was changed", true);
}

static void end_hung(struct tegrastats_source *source, uint64_t quiet_ns)
{
	uint64_t limit_ns = HUNG_INTERVALS * source->interval_ns;
	if (source->child.phase != CHILD_RUNNING ||
		quiet_ns <= (limit_ns > HUNG_MIN_NS ? limit_ns : HUNG_MIN_NS)) {
		return;
	}
	char why[CHILD_WHY_SIZE];
	snprintf(why, sizeof(why), "hung: no line for %s", text_span(quiet_ns / 1000000000).text);
	child_restart(&source->child, why, false);
	source->failed = true;
}

static int explain(
	const struct tegrastats_source *source, int error, const char *what, const char *then)
{
	bool unparsed = source->unparsed[0] != '\0';
	return collector_fail(source->ctx, error, "%.60s%s%s%s", what, then,
		unparsed ? "; it said: " : "", source->unparsed);
}

static int tegrastats_sample(const struct collector_context *ctx, void *state)
{
	struct tegrastats_source *source = *(struct tegrastats_source **)state;
	uint64_t now_ns = ctx->now_ns;
	source->bytes = 0;
	if (source->pending) {
		publish(source, now_ns, sysops()->now_ns());
	}
	follow_interval(source, now_ns);
	uint64_t quiet_ns = now_ns > source->line_ns ? now_ns - source->line_ns : 0;
	end_hung(source, quiet_ns);
	count_deaths(source);
	if (source->failed && access(source->command, F_OK) < 0) {
		return collector_fail(ctx, -ENOENT, "%.100s has gone", source->command);
	}
	if (source->failed) {
		return explain(source, -EIO, source->child.why, "; it is started again");
	}
	if (quiet_ns > STALE_INTERVALS * source->interval_ns) {
		char what[48];
		snprintf(what, sizeof(what), "no line for %.1f s", (double)quiet_ns / 1e9);
		return explain(source, -ETIME, what, "");
	}
	return source->committed_ns > 0 ? 0
					: collector_fail(ctx, -EAGAIN, "waits for the first line");
}

static const char *const keys[] = {"command", NULL};

const struct collector_ops collector_tegrastats = {
	.name = "tegrastats",
	.state_size = sizeof(struct tegrastats_source *),
	.interval_ns = 1000000000, /* its own: a new interval is a new child */
	.config_keys = keys,
	.open = tegrastats_open,
	.sample = tegrastats_sample,
	.close = tegrastats_close,
	.event_driven = true,
};
