/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attachment.c: drains a mapping, writes advice into it, and ends it with the process behind it.
 * The pidfd reports death; the connection only carries the hello and wake-ups, since a forked child
 * keeps it open. A pidfd becomes readable when its process exits, and hangs up when the parent has
 * waited for it; only then most kernels report how it ended. The records that the process left are
 * read at the first, its run is closed at the second, or end_wait_ns later.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/core/runs/save.h"
#include "daemon/core/status/counters.h"
#include "daemon/ingest/ingest_private.h"
#include "daemon/util/sysops.h"

enum { ENDING_CALLS = 128 }; /* drains of an ended process whose mapping others still fill */

static void sink_declare(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	struct attachment *attachment = ctx;
	apps_declare(attachment->ingest->core->apps, attachment->process, index, copy);
}

static size_t sink_records(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	struct attachment *attachment = ctx;
	return apps_records(attachment->ingest->core->apps, attachment->process, slot, copies, n,
		attachment->now_ns);
}

static void sink_taken(void *ctx, uint32_t slot)
{
	struct attachment *attachment = ctx;
	apps_slot_taken(attachment->process, slot);
}

static void note_open_stages(struct attachment *attachment)
{
	struct ring_open open[16];
	size_t count = ring_open_stages(attachment->ring, open, sizeof(open) / sizeof(open[0]));
	apps_open_clear(attachment->process);
	for (size_t i = 0; i < count; i++) {
		uint32_t tid = nspid_thread(&attachment->nspid, attachment->peer.pid, open[i].tid);
		apps_open_add(attachment->process, &open[i].stage, tid, open[i].tid);
	}
}

/* A peer may set its counts back; the daemon's own only grow. */
static uint64_t delta(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void account(struct attachment *attachment, uint64_t invalid_before)
{
	struct ring_counts counts;
	ring_counts(attachment->ring, &counts);
	struct app_accounting *accounting = &attachment->process->accounting;
	struct counters *counters = attachment->ingest->core->counters;
	counters->events_received += delta(counts.received, attachment->counts.received);
	counters->events_dropped += delta(counts.dropped, attachment->counts.dropped);
	counters->events_invalid += accounting->invalid - invalid_before;
	counters->drains++;
	accounting->sent = counts.sent;
	accounting->received = counts.received;
	accounting->dropped = counts.dropped;
	accounting->in_ring = counts.in_ring;
	attachment->process->threads = counts.threads;
	attachment->counts = counts;
}

void attachment_drain(struct attachment *attachment, uint64_t now_ns, size_t budget, size_t names)
{
	const struct ring_sink sink = {sink_declare, sink_records, sink_taken, attachment};
	struct apps *apps = attachment->ingest->core->apps;
	uint64_t invalid = attachment->process->accounting.invalid;
	attachment->now_ns = now_ns;
	attachment->process->frame_state.pass_ns = now_ns;
	apps_allow_new(apps, names);
	ring_drain(attachment->ring, &sink, budget, &attachment->due);
	apps_fold_stages(apps);
	apps_allow_new(apps, SIZE_MAX);
	apps_save_marks(apps);
	if (!attachment->due) {
		apps_drained(apps, attachment->process);
	}
	note_open_stages(attachment);
	account(attachment, invalid);
}

bool attachment_is_held(const struct attachment *attachment, uint64_t now_ns)
{
	const uint64_t held_ns = 1500000000; /* a library looks for a daemon each second */
	return now_ns < attachment->ingest->opened_ns + held_ns &&
	       app_awaits_processes(attachment->process->app);
}

/* At most once a second: a thread id that no thread has would be searched for every time. */
void attachment_sample(struct attachment *attachment, uint64_t now_ns)
{
	const uint64_t pause_ns = 1000000000;
	if (attachment->nspid.wanted && now_ns - attachment->scanned_ns >= pause_ns) {
		attachment->scanned_ns = now_ns;
		nspid_scan(&attachment->nspid, attachment->peer.pid);
		note_open_stages(attachment);
	}
}

/* Stores the advice word of the mapping and its time, each once; neither is ever read back. */
static void write_advice(const struct attachment *attachment, uint64_t word, uint64_t now_ns)
{
	struct proto_map_header *header = attachment->map;
	__atomic_store_n(&header->advice, word, __ATOMIC_RELAXED);
	__atomic_store_n(&header->advice_ns, now_ns, __ATOMIC_RELEASE);
}

void attachment_advise(const struct attachment *attachment, uint64_t now_ns)
{
	write_advice(attachment, advice_word(&attachment->process->app->advice), now_ns);
}

static void attachment_free(struct attachment *attachment)
{
	if (attachment->pidfd >= 0) {
		close(attachment->pidfd);
	}
	free(attachment);
}

static void on_closed(uv_handle_t *handle)
{
	struct attachment *attachment = handle->data;
	struct ingest *ingest = attachment->ingest;
	attachment_free(attachment);
	ingest_handle_closed(ingest);
}

void attachment_drain_all(struct attachment *attachment)
{
	uint64_t now_ns = sysops()->now_ns();
	for (int i = 0; i < 4; i++) {
		attachment_drain(attachment, now_ns, RING_BUDGET, SIZE_MAX);
		if (!attachment->due && i > 0) {
			break;
		}
	}
}

static void end(struct attachment *attachment, enum process_end how)
{
	struct ingest *ingest = attachment->ingest;
	uint64_t now_ns = sysops()->now_ns();
	if (!attachment->ending && how != PROCESS_RELEASED) {
		attachment_drain_all(attachment);
	}
	struct app_process *process = attachment->process;
	if (attachment->peer.pid > 0) {
		processes_unwatch(ingest->core->processes, WATCH_APP, process->app->name,
			attachment->peer.pid);
	}
	attachment->process = NULL;
	apps_detach(ingest->core->apps, process, how, now_ns);
	LIST_REMOVE(attachment, link);
	attachment->account->mapping_bytes -= attachment->size;
	ingest->mapped_bytes -= attachment->size;
	limit_use(&ingest->core->counters->limits[LIMIT_MAPPINGS], ingest->mapped_bytes);
	write_advice(attachment, 0, 0);
	ring_destroy(attachment->ring);
	munmap(attachment->map, attachment->size);
	struct connection *connection = attachment->connection;
	if (connection) {
		connection->attachment = NULL;
		attachment->connection = NULL;
		ingest_disconnect(connection);
	}
	ingest_drain_timer(ingest);
	if (attachment->pidfd >= 0) {
		uv_close((uv_handle_t *)&attachment->death, on_closed);
	} else {
		attachment_free(attachment);
	}
}

bool attachment_end_drained(struct attachment *attachment)
{
	if (!attachment->ending) {
		return false;
	}
	attachment->passes += !attachment->due;
	attachment->due = true;
	bool over = attachment->passes >= 2 || ++attachment->calls >= ENDING_CALLS;
	if (over) {
		end(attachment, attachment->how);
	}
	return over;
}

static bool is_request(int signal_number)
{
	return signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP;
}

/* The end that a wait status stands for. Who catches a signal and then ends exits with 128 and its
 * number: shells, Java. */
static enum process_end end_of_status(int status, char *cause, size_t size)
{
	if (WIFEXITED(status)) {
		if (WEXITSTATUS(status) == 0) {
			return PROCESS_ENDED;
		}
		snprintf(cause, size, "exited with status %d", WEXITSTATUS(status));
		return is_request(WEXITSTATUS(status) - 128) ? PROCESS_ENDED : PROCESS_DIED;
	}
	int number = WTERMSIG(status);
	bool requested = is_request(number);
	const char *name = sigabbrev_np(number);
	if (number == SIGKILL) {
		return PROCESS_KILLED;
	}
	if (name) {
		snprintf(cause, size, "%s SIG%s", requested ? "ended by" : "died of", name);
	} else {
		snprintf(cause, size, "died of signal %d", number);
	}
	return requested ? PROCESS_ENDED : PROCESS_DIED;
}

void attachment_begin_end(struct attachment *attachment, enum process_end how)
{
	if (attachment->pidfd >= 0) {
		uv_poll_stop(&attachment->death);
	}
	attachment->how = how;
	attachment->ending = true;
	ingest_drain_ending(attachment->ingest, attachment);
}

/* The end as the kernel reports it, else as the mapping's flags say. */
static enum process_end end_of(struct attachment *attachment)
{
	struct app_process *process = attachment->process;
	int status;
	if (attachment->pidfd >= 0 &&
		peer_exit(attachment->pidfd, &attachment->peer, &status) == 0) {
		return end_of_status(status, process->cause, sizeof(process->cause));
	}
	if (ring_flags(attachment->ring) & PROTO_MAP_BYE) {
		return PROCESS_ENDED;
	}
	snprintf(process->cause, sizeof(process->cause), "unknown end");
	return PROCESS_DIED;
}

void attachment_exited(struct attachment *attachment)
{
	if (!attachment->ending) {
		attachment_begin_end(attachment, end_of(attachment));
	}
}

void attachment_finish(struct attachment *attachment)
{
	enum process_end how = attachment->ending	  ? attachment->how
			       : attachment->ended_ns > 0 ? end_of(attachment)
							  : PROCESS_RELEASED;
	attachment->ending = false; /* what is left is read now, not in later iterations */
	end(attachment, how);
}

void attachments_displace(void *ctx, const struct app *app)
{
	struct ingest *ingest = ctx;
	struct attachment *next;
	for (struct attachment *a = LIST_FIRST(&ingest->attachments); a; a = next) {
		next = LIST_NEXT(a, link);
		if (a->process->app == app) {
			end(a, PROCESS_ENDED);
		}
	}
}

bool attachment_overdue(const struct attachment *attachment, uint64_t now_ns)
{
	return attachment->ended_ns > 0 &&
	       now_ns - attachment->ended_ns >= attachment->ingest->options.end_wait_ns;
}

/* No more records will come. Those that are left are read now; its exit status may come later. */
static void wait_for_end(struct attachment *attachment)
{
	if (attachment->ended_ns == 0) {
		attachment->ended_ns = sysops()->now_ns();
		attachment->due = true;
		ingest_drain_due(attachment->ingest);
	}
}

void attachment_on_hangup(struct attachment *attachment)
{
	if (attachment->ending) {
		return;
	}
	if (attachment->pidfd < 0) {
		attachment_exited(attachment);
	} else if (ring_flags(attachment->ring) & PROTO_MAP_BYE) {
		wait_for_end(attachment);
	}
}

/* The process ended (readable), or its parent has waited for it (a hang-up is reported with any
 * events). */
void attachment_on_death(uv_poll_t *handle, int status, int events)
{
	struct attachment *attachment = handle->data;
	int exit_status;
	(void)status;
	if ((events & UV_READABLE) &&
		peer_exit(attachment->pidfd, &attachment->peer, &exit_status) == -EAGAIN) {
		wait_for_end(attachment);
		uv_poll_start(handle, UV_PRIORITIZED, attachment_on_death);
		return;
	}
	attachment_exited(attachment);
}

void attachments_finish_exited(struct ingest *ingest, const char *name, uid_t uid)
{
	struct attachment *next;
	for (struct attachment *a = LIST_FIRST(&ingest->attachments); a; a = next) {
		next = LIST_NEXT(a, link);
		if ((a->ended_ns > 0 || a->ending) && a->process->app->uid == uid &&
			strcmp(a->process->app->name, name) == 0) {
			attachment_finish(a);
		}
	}
}
