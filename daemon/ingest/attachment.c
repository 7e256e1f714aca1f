/*
 * A mapping and the process behind it, from the accepted hello to the last words. The pidfd tells
 * death; the connection only carries the hello and wake-ups (a forked child keeps it open).
 */
#include "daemon/ingest/ingest_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/core/runs/save.h"
#include "daemon/core/status/counters.h"
#include "daemon/util/sysops.h"

enum {
	DRAIN_RECORDS = 4096, /* of one attachment before others have their turn */
	DRAIN_NAMES = 4,      /* that are seen for the first time */
	VISIT_WORK = 64,      /* in records, what a drain without any costs */
	NAME_WORK = 2048,     /* and a new name */
	ENDING_CALLS = 128,
};

static void sink_declare(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	struct attachment *attachment = ctx;
	apps_declare(attachment->ingest->core->apps, attachment->process, index, copy);
}

static bool sink_record(void *ctx, uint32_t slot, const struct proto_record *copy)
{
	struct attachment *attachment = ctx;
	struct app_process *process = attachment->process;
	struct apps *apps = attachment->ingest->core->apps;
	if (__builtin_expect(copy->stage < PROTO_DECLARATIONS && !process->met[copy->stage], 0) &&
		!apps_meet(apps, process, copy->stage)) {
		return false;
	}
	apps_record(apps, process, slot, copy, attachment->now_ns);
	return true;
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

/* A peer may turn its counts back; ours only grow. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void account(struct attachment *attachment, uint64_t invalid_before)
{
	struct ring_counts counts;
	ring_counts(attachment->ring, &counts);
	struct app_accounting *accounting = &attachment->process->accounting;
	struct counters *counters = attachment->ingest->core->counters;
	counters->events_received += grown(counts.received, attachment->counts.received);
	counters->events_dropped += grown(counts.dropped, attachment->counts.dropped);
	counters->events_invalid += accounting->invalid - invalid_before;
	counters->drains++;
	accounting->sent = counts.sent;
	accounting->received = counts.received;
	accounting->dropped = counts.dropped;
	accounting->in_ring = counts.in_ring;
	attachment->process->threads = counts.threads;
	attachment->counts = counts;
}

static size_t drain(struct attachment *attachment, uint64_t now_ns, size_t budget, size_t names)
{
	const struct ring_sink sink = {sink_declare, sink_record, attachment};
	struct apps *apps = attachment->ingest->core->apps;
	uint64_t invalid = attachment->process->accounting.invalid;
	attachment->now_ns = now_ns;
	attachment->process->frame_state.pass_ns = now_ns;
	apps_allow_new(apps, names);
	size_t records = ring_drain(attachment->ring, &sink, budget, &attachment->due);
	size_t fresh = names - apps_new_left(apps);
	apps_allow_new(apps, SIZE_MAX);
	if (!attachment->due) {
		apps_drained(apps, attachment->process);
	}
	note_open_stages(attachment);
	account(attachment, invalid);
	return VISIT_WORK + records + fresh * NAME_WORK;
}

size_t attachment_drain(struct attachment *attachment, uint64_t now_ns)
{
	return drain(attachment, now_ns, DRAIN_RECORDS, DRAIN_NAMES);
}

bool attachment_settle(struct attachment *attachment)
{
	if (!attachment->ending) {
		return false;
	}
	attachment->passes += !attachment->due;
	attachment->due = true;
	bool over = attachment->passes >= 2 || ++attachment->calls >= ENDING_CALLS;
	if (over) {
		attachment_end(attachment, attachment->how);
	}
	return over;
}

/* A number that no thread has would be looked for again and again. */
void attachment_sample(struct attachment *attachment, uint64_t now_ns)
{
	const uint64_t pause_ns = 1000000000;
	if (attachment->nspid.wanted && now_ns - attachment->looked_ns >= pause_ns) {
		attachment->looked_ns = now_ns;
		nspid_scan(&attachment->nspid, attachment->peer.pid);
		note_open_stages(attachment);
	}
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
		drain(attachment, now_ns, RING_BUDGET, SIZE_MAX);
		if (!attachment->due && i > 0) {
			break;
		}
	}
}

void attachment_end(struct attachment *attachment, enum process_end how)
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
	*attachment->prev = attachment->next;
	if (attachment->next) {
		attachment->next->prev = attachment->prev;
	}
	attachment->account->mapping_bytes -= attachment->size;
	ingest->mapped_bytes -= attachment->size;
	limit_use(&ingest->core->counters->limits[LIMIT_MAPPINGS], ingest->mapped_bytes);
	attachment_withdraw_advice(attachment);
	ring_destroy(attachment->ring);
	munmap(attachment->map, attachment->size);
	struct connection *connection = attachment->connection;
	if (connection) {
		connection->attachment = NULL;
		attachment->connection = NULL;
		attachment_close_connection(connection);
	}
	ingest_drain_timer(ingest);
	if (attachment->pidfd >= 0) {
		uv_close((uv_handle_t *)&attachment->death, on_closed);
	} else {
		attachment_free(attachment);
	}
}

static bool hung_up(const struct attachment *attachment)
{
	char byte;
	return !attachment->connection ||
	       recv(attachment->connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The same memfd again: the library lost its connection, nothing else changed. */
static struct attachment *find_same(
	const struct ingest *ingest, const struct peer *peer, const struct stat *st)
{
	struct attachment *a = ingest->attachments;
	while (a && !(a->peer.pid == peer->pid && a->peer.uid == peer->uid &&
			    a->dev == st->st_dev && a->ino == st->st_ino)) {
		a = a->next;
	}
	return a;
}

/* A mapping that this process left behind (it called exec, or shut the library down). Two copies of
 * the library in one process keep both of theirs: their connections are open. */
static void end_left_behind(struct ingest *ingest, const struct peer *peer, uint64_t start_ticks)
{
	struct attachment *next;
	for (struct attachment *a = ingest->attachments; a; a = next) {
		next = a->next;
		if (peer->pid > 0 && a->peer.pid == peer->pid && !a->ending &&
			a->process->start_ticks == start_ticks && hung_up(a)) {
			attachment_end_by_turns(a, PROCESS_ENDED);
		}
	}
}

static bool mapping_fits(const struct ingest *ingest, const struct account *account, uint32_t size)
{
	return accounts_fits(ingest->options.max_mapping_bytes, account->mapping_bytes,
		ingest->mapped_bytes, size, ingest_trusts(ingest, account->uid));
}

/* A further process of an app that runs takes no place. */
static bool app_fits(const struct ingest *ingest, uid_t uid, const char *name)
{
	struct apps *apps = ingest->core->apps;
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(name, strlen(name), clean);
	const struct app *app = apps_find(apps, clean);
	if (app && app->processes > 0) {
		return true;
	}
	return accounts_fits(APPS_MAX, apps_of_uid(apps, uid), apps_running(apps), 1,
		ingest_trusts(ingest, uid));
}

static const char *refusal(int error)
{
	switch (error) {
	case -EPERM:
		return "the name is reserved for another user ([app NAME] user)";
	case -EACCES:
		return "another user's app has this name";
	case -ENOSPC:
		return "too many apps or processes of this app";
	case -EBADMSG:
		return "the mapping has no valid header";
	case -EPROTONOSUPPORT:
		return "the mapping has another version";
	default:
		return errno_reason(error);
	}
}

/* Maps the memfd and finds the place of the last reader in it. */
static int map_ring(struct attachment *attachment, int memfd)
{
	void *map = mmap(NULL, attachment->size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (map == MAP_FAILED) {
		return -errno;
	}
	int r = ring_create(map, attachment->size, &attachment->ring);
	if (r < 0) {
		munmap(map, attachment->size);
		return r;
	}
	attachment->map = map;
	return 0;
}

static void watch_death(struct attachment *attachment, int connection_fd)
{
	struct ingest *ingest = attachment->ingest;
	int pidfd = peer_open(connection_fd, attachment->peer.pid);
	if (pidfd < 0) {
		return;
	}
	if (uv_poll_init(ingest->loop, &attachment->death, pidfd) < 0) {
		close(pidfd);
		return;
	}
	ingest->handles++;
	attachment->death.data = attachment;
	attachment->pidfd = pidfd;
	uv_poll_start(&attachment->death, UV_READABLE, attachment_on_death);
}

static void link_up(struct attachment *attachment, struct connection *connection)
{
	struct ingest *ingest = attachment->ingest;
	attachment->connection = connection;
	connection->attachment = attachment;
	attachment->next = ingest->attachments;
	attachment->prev = &ingest->attachments;
	if (attachment->next) {
		attachment->next->prev = &attachment->next;
	}
	ingest->attachments = attachment;
	attachment->account->mapping_bytes += attachment->size;
	ingest->mapped_bytes += attachment->size;
	limit_use(&ingest->core->counters->limits[LIMIT_MAPPINGS], ingest->mapped_bytes);
	ingest->core->counters->attaches++;
	rejected_attaches_forget(&ingest->core->counters->rejected_attaches,
		attachment->process->app->name, attachment->peer.uid);
	if (attachment->peer.pid > 0) {
		struct watch watch = {.kind = WATCH_APP,
			.pid = attachment->peer.pid,
			.start_ticks = attachment->process->start_ticks};
		snprintf(watch.name, sizeof(watch.name), "%s", attachment->process->app->name);
		processes_watch(ingest->core->processes, &watch); /* it counts what it refuses */
	}
}

static int attach(struct connection *connection, const struct proto_hello *hello, int memfd,
	const struct stat *st, uint64_t now_ns, const char **reason)
{
	struct ingest *ingest = connection->ingest;
	const struct peer *peer = &connection->peer;
	uint64_t start_ticks = peer->pid > 0 ? peer_start_ticks(peer->pid) : 0;
	char name[PROTO_NAME_SIZE];
	proto_name_clean(hello->app, strlen(hello->app), name);
	end_left_behind(ingest, peer, start_ticks);
	attachments_end_over(ingest, name, peer->uid);
	if (!mapping_fits(ingest, connection->account, hello->mapping_size)) {
		*reason = "no room for its mapping";
		return -ENOSPC;
	}
	if (!app_fits(ingest, peer->uid, hello->app)) {
		*reason = "too many apps of this user";
		return -ENOSPC;
	}
	struct attachment *attachment = mem_zalloc(sizeof(*attachment));
	if (!attachment) {
		*reason = refusal(-ENOMEM);
		return -ENOMEM;
	}
	*attachment = (struct attachment){.pidfd = -1,
		.ingest = ingest,
		.peer = *peer,
		.account = connection->account,
		.size = hello->mapping_size,
		.dev = st->st_dev,
		.ino = st->st_ino};
	int r = map_ring(attachment, memfd);
	if (r == 0) {
		r = apps_attach(ingest->core->apps, hello->app, peer->uid, peer->pid, start_ticks,
			hello->mapping_size, now_ns, &attachment->process);
	}
	if (r < 0) { /* of a memfd that may not be written there is no map */
		*reason = r == -EPERM && !attachment->map ? errno_reason(r) : refusal(r);
		goto error;
	}
	watch_death(attachment, connection->fd);
	nspid_init(&attachment->nspid, peer->pid);
	attachment->process->ns_pid = attachment->nspid.inside;
	ring_counts(attachment->ring, &attachment->counts);
	attachment->process->accounting.invalid = attachment->counts.skipped;
	apps_note_received(ingest->core->apps, attachment->process, attachment->counts.received);
	link_up(attachment, connection);
	attachment_advise(attachment, now_ns);
	ingest_drain_timer(ingest);
	attachment->due = true;
	ingest_drain_due(ingest);
	return 0;
error:
	ring_destroy(attachment->ring);
	if (attachment->map) {
		munmap(attachment->map, attachment->size);
	}
	free(attachment);
	return r;
}

int attachment_create(struct connection *connection, const struct proto_hello *hello, int memfd,
	const char **reason)
{
	uint64_t now_ns = sysops()->now_ns();
	struct stat st;
	int r = hello_check(hello, ingest_received_ns(connection->ingest, now_ns), now_ns, reason);
	if (r == 0) {
		r = hello_check_memfd(memfd, hello->mapping_size, &st, reason);
	}
	if (r == 0) {
		struct attachment *same = find_same(connection->ingest, &connection->peer, &st);
		if (same) {
			struct connection *old = same->connection;
			if (same->ending && same->pidfd >= 0) { /* it is back */
				same->ending = false;
				uv_poll_start(&same->death, UV_READABLE, attachment_on_death);
			}
			same->connection = connection;
			same->ended_ns = 0;
			connection->attachment = same;
			if (old) {
				old->attachment = NULL;
				attachment_close_connection(old);
			}
		} else {
			r = attach(connection, hello, memfd, &st, now_ns, reason);
		}
	}
	close(memfd); /* its close waits for nobody */
	return r;
}
