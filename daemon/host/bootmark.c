/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bootmark.c: keeps one line, "BOOT_ID STATE REASON DETAIL", in the state directory: of the current
 * boot, what is known of the end of the previous one stays in it for further starts of the daemon.
 * It is written twice in the life of a daemon.
 */
#include "daemon/host/bootmark.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/host/notify.h"
#include "daemon/util/file.h"
#include "daemon/util/offload/offload.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum { LINE_SIZE = 256, PATIENCE_MS = 700 };

static const char mark[] = "boot";

/* From the files of the state directory, as they are. */
static const struct {
	const char *state, *reason, *detail;
} ends[] = {
	{"shutdown", "orderly", ""},
	{"running", "unclean",
		"edgeprofd was not asked to stop: power loss, reset, panic, or kill"},
	{"stopped", "unknown", "edgeprofd was stopped before the previous boot ended"},
};

static void set_reason(struct machine_facts *facts, const char *reason, const char *detail)
{
	snprintf(facts->boot_reason, sizeof(facts->boot_reason), "%s", reason);
	snprintf(facts->boot_reason_detail, sizeof(facts->boot_reason_detail), "%s", detail);
}

static void write_mark(int folder, const struct machine_facts *facts, const char *state)
{
	char line[LINE_SIZE];
	struct text text = TEXT_IN(line);
	text_add(&text, "%s %s %s %s\n", facts->boot_id, state, facts->boot_reason,
		facts->boot_reason_detail);
	file_replace(folder, "boot.new", mark, 0644, line, text.length);
}

/* What an earlier process wrote; the reason stays "unknown" otherwise. */
static void read_mark(int folder, struct machine_facts *facts)
{
	char line[LINE_SIZE], id[37], state[16], reason[16], detail[96] = "";
	int fd = openat(folder, mark, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t length = fd < 0 ? 0 : file_read(fd, line, sizeof(line));
	if (fd >= 0) {
		close(fd);
	}
	if (length <= 0 || sscanf(line, "%36s %15s %15s %95[^\n]", id, state, reason, detail) < 3) {
		set_reason(facts, "unknown", "nothing is recorded of the previous boot");
		return;
	}
	if (strcmp(id, facts->boot_id) == 0) {
		set_reason(facts, reason, detail);
		return;
	}
	set_reason(facts, "unknown", "the record of the previous boot is damaged");
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (strcmp(state, ends[i].state) == 0) {
			set_reason(facts, ends[i].reason, ends[i].detail);
		}
	}
}

/* drivers/soc/tegra/pmc.c; other boards have no such file. */
static void read_reset_reason(const struct root *root, struct machine_facts *facts)
{
	static const char *const files[] = {"sys/devices/platform/bus@0/c360000.pmc/reset_reason",
		"sys/devices/platform/c360000.pmc/reset_reason",
		"sys/devices/platform/7000e400.pmc/reset_reason"};
	facts->reset_reason[0] = '\0';
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char text[sizeof(facts->reset_reason)];
		if (root_read(root, files[i], text, sizeof(text)) > 0) {
			text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					  "0123456789_- ")] = '\0';
			memcpy(facts->reset_reason, text, sizeof(text));
			return;
		}
	}
}

/* What runs on a thread, for a disk that hangs: its own copy of everything. */
struct job {
	char dir[192];
	struct machine_facts facts;
	struct machine_facts *ret; /* gets the reason; NULL: the end */
};

static int work(void *data)
{
	struct job *job = data;
	int folder = folder_open(job->dir, 0);
	if (folder < 0 || faccessat(folder, ".", W_OK, 0) < 0) {
		set_reason(&job->facts, "unknown", "the state directory is missing or read-only");
	} else if (job->ret) {
		read_mark(folder, &job->facts);
		write_mark(folder, &job->facts, "running");
	} else {
		write_mark(folder, &job->facts, notify_system_stops() ? "shutdown" : "stopped");
	}
	if (folder >= 0) {
		close(folder);
	}
	return 0;
}

static void done(void *ctx, int result, void *data)
{
	(void)ctx;
	(void)result;
	struct job *job = data;
	if (job->ret) {
		set_reason(job->ret, job->facts.boot_reason, job->facts.boot_reason_detail);
	}
	free(job);
}

static void run(uv_loop_t *loop, const char *dir, const struct machine_facts *facts,
	struct machine_facts *ret)
{
	static const struct offload_ops ops = {.work = work, .done = done, .release = free};
	struct offload *offload;
	struct job *job = mem_zalloc(sizeof(*job));
	if (!job) {
		return;
	}
	*job = (struct job){.facts = *facts, .ret = ret};
	snprintf(job->dir, sizeof(job->dir), "%s", dir);
	if (offload_start(loop, &ops, job, NULL, &offload) < 0) {
		free(job);
	} else if (!offload_wait(offload, PATIENCE_MS)) {
		offload_detach(offload);
	}
}

void bootmark_begin(
	uv_loop_t *loop, const char *dir, const struct root *root, struct machine_facts *facts)
{
	read_reset_reason(root, facts);
	set_reason(facts, "unknown",
		dir[0] != '\0' ? "the state directory has not answered"
			       : "no state directory, or it does not respond");
	if (dir[0] != '\0') {
		run(loop, dir, facts, facts);
	}
}

void bootmark_end(uv_loop_t *loop, const char *dir, const struct machine_facts *facts)
{
	if (dir[0] != '\0') {
		run(loop, dir, facts, NULL);
	}
}
