/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_private.h: declares what ingest.c (drains, open, close), sample.c (the sample timer),
 * connection.c (sockets), attach.c (new mappings) and attachment.c (mappings and the processes
 * behind them) share. */
#pragma once

#include <sys/queue.h>

#include "daemon/core/apps/apps.h"
#include "daemon/ingest/hello.h"
#include "daemon/ingest/ingest.h"
#include "daemon/ingest/peer.h"
#include "daemon/ingest/ring.h"
#include "daemon/util/accounts.h"

enum {
	HELLO_TIMEOUT_S = 5,
	WAKES_MAX = 64, /* wake-ups of one connection between two ticks of the drain timer */
};

struct connection {
	LIST_ENTRY(connection) link;
	uv_poll_t poll;
	struct ingest *ingest;
	int fd;
	struct peer peer;
	struct account *account;
	uint64_t accepted_ns;
	unsigned wakes;
	bool paused;		       /* too many wake-ups: until the next tick */
	struct attachment *attachment; /* NULL before the hello */
};

struct attachment {
	LIST_ENTRY(attachment) link;
	uv_poll_t death;
	int pidfd; /* -1: the end of the connection counts as the end of the process */
	struct ingest *ingest;
	struct peer peer;
	struct account *account;
	void *map;
	uint32_t size;
	dev_t dev;
	ino_t ino;
	struct ring *ring;
	struct app_process *process;   /* NULL once detached */
	struct connection *connection; /* NULL when it was closed before the process ended */
	struct ring_counts counts;     /* at the last drain */
	uint64_t now_ns;	       /* of the drain in progress */
	struct nspid nspid;
	uint64_t scanned_ns;	/* when its threads were last read */
	uint64_t ended_ns;	/* it exited or said so, its status is unknown; 0 = it lives */
	bool due;		/* to be drained */
	uint64_t last_drain;	/* number of its last drain, counted over all attachments */
	bool ending;		/* its process is gone: drained to the end, then detached */
	enum process_end how;	/* while ending */
	unsigned passes, calls; /* drains since ending: those that read all, all */
};

/* Of a sample, in their order. */
enum sample_part {
	SAMPLE_DRAIN,
	SAMPLE_AHEAD,
	SAMPLE_COMMIT,
	SAMPLE_ADVISE,
	SAMPLE_JUDGE,
	SAMPLE_CATCH_UP,
	SAMPLE_PARTS
};

struct ingest {
	uv_loop_t *loop;
	struct core *core;
	struct ingest_options options;
	uv_poll_t listen;
	uv_timer_t drain, sample;
	uv_check_t after_wait;
	uint64_t opened_ns; /* when it began to listen */
	uint64_t waited_ns; /* when the loop's last wait ended */
	bool listen_paused; /* no descriptors left: until the next sample */
	LIST_HEAD(connections, connection) connections;
	size_t connection_count;
	LIST_HEAD(attachments, attachment) attachments;
	uint64_t drained_ms;	    /* uv_now of the drain timer's last tick */
	uint64_t drains;	    /* of all attachments */
	struct iteration iteration; /* ns of draining in this one */
	struct iteration hellos;    /* read in this one */
	uint64_t mapped_bytes;
	unsigned saves; /* iterations left to save in until the next sample */
	uint64_t
		sample_ns; /* when the next sample is due; UINT64_MAX = now, or it is in progress */
	uint64_t metrics_ns;   /* when metrics are due; 0 = with the next sample */
	uint64_t judged_ns;    /* when apps were diagnosed last */
	bool metrics_due;      /* in this sample, or the last one */
	enum sample_part part; /* the next one of the sample */
	unsigned passes;       /* of its drain, so far */
	unsigned waits;	       /* of it, in a row, because other timers took long */
	unsigned handles;      /* not yet closed */
	bool closing;
};

/* A handle's close callback ran; the last one ends a closing ingest. */
void ingest_handle_closed(struct ingest *ingest);

/* Counts a refusal, and logs it the first time. app NULL = unknown. */
void ingest_refuse(
	struct ingest *ingest, const struct peer *peer, const char *app, const char *reason);

/* True for users whose apps may fill most of a limit: root, the daemon's own user, the owner of the
 * run directory. */
bool ingest_trusts(const struct ingest *ingest, uid_t uid);

/* Starts the drain timer when there is something to drain, stops it when there is not. */
void ingest_drain_timer(struct ingest *ingest);

/* Drains the due attachments as far as this iteration's share of work allows, the rest in the next
 * iterations: first those of the user who was served least lately. May end attachments. False when
 * some are left. */
bool ingest_drain_due(struct ingest *ingest);
/* The same for all attachments of an app that are not held; NULL: of all apps. */
bool ingest_drain_app(struct ingest *ingest, const struct app *app);

/* Drains one that is ending, twice if this iteration has not taken too long already, so that it is
 * over before the next process of its app attaches; else in the next iterations. */
void ingest_drain_ending(struct ingest *ingest, struct attachment *attachment);

/* Waits for the next sample; begins it in the next iteration. */
void ingest_await_sample(struct ingest *ingest, uint64_t now_ns);
void ingest_sample_now(struct ingest *ingest);
/* Looks at n runs that began before a restart, and ends those whose processes ended without
 * attaching again. */
void ingest_end_saved(struct ingest *ingest, size_t n, uint64_t now_ns);

/* Accepts connections, again after there were no descriptors left. */
int ingest_listen(struct ingest *ingest);
/* Reads the wake-ups of all connections again. */
void ingest_resume_connections(struct ingest *ingest);

/* For a timer of libuv: at least 1. */
static inline uint64_t ingest_ms(uint64_t ns)
{
	return ns < 1000000 ? 1 : ns / 1000000;
}

/* Accepts what waits on the listening socket. */
void connection_accept(struct ingest *ingest);
/* Idempotent. The attachment stays unless only the connection shows the end of its process. */
void ingest_disconnect(struct connection *connection);
/* Reads wake-ups again. */
void connection_resume(struct connection *connection);

/* Checks and maps what a hello brought; closes the descriptor in any case. 0, or -errno with
 * *reason (static text); NULL: nothing is wrong, the client is to try again. */
int attachment_create(struct connection *connection, const struct proto_hello *hello, int memfd,
	const char **reason);
/* Once a sample: reads the ids of threads that are not known yet. */
void attachment_sample(struct attachment *attachment, uint64_t now_ns);
/* Writes the present advice for the app into the mapping. */
void attachment_advise(const struct attachment *attachment, uint64_t now_ns);
/* It is not read just now, unless it fills up or ends: after a restart others that share its frames
 * are awaited, so that they are read together. */
bool attachment_is_held(const struct attachment *attachment, uint64_t now_ns);
/* Reads at most budget records and names new names. due: some were left. */
void attachment_drain(struct attachment *attachment, uint64_t now_ns, size_t budget, size_t names);
/* After a drain: ends one that is ending once its records are all read. False: it is still there.
 */
bool attachment_end_drained(struct attachment *attachment);
/* Reads all that is there now, in two passes at least: a record that is not complete yet gets one
 * more. Bounded: another process may hold the mapping and go on writing. */
void attachment_drain_all(struct attachment *attachment);

/* The process ended: how the kernel reports it, else as the mapping's flags say. Its records are
 * read over the next iterations before it is detached. */
void attachment_exited(struct attachment *attachment);
void attachment_begin_end(struct attachment *attachment, enum process_end how);
/* Drains and detaches at once: as it ended, or as released when its process lives on. */
void attachment_finish(struct attachment *attachment);
/* True when nothing has reported in time how its process ended. */
bool attachment_overdue(const struct attachment *attachment, uint64_t now_ns);
/* Its connection was closed while the process may live on. */
void attachment_on_hangup(struct attachment *attachment);
/* The pidfd's callback. */
void attachment_on_death(uv_poll_t *handle, int status, int events);

/* An apps_displace_observer; ctx is the ingest. */
void attachments_displace(void *ctx, const struct app *app);
/* Finishes the exited processes of an app, so that the next process begins a run of its own. */
void attachments_finish_exited(struct ingest *ingest, const char *name, uid_t uid);
