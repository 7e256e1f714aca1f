/* What the files of ingest share: ingest.c (timers, open, close), connection.c (sockets),
 * attachment.c (mappings and the processes behind them). */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/ingest/hello.h"
#include "daemon/ingest/ingest.h"
#include "daemon/ingest/peer.h"
#include "daemon/ingest/ring.h"
#include "daemon/ingest/socket.h"
#include "daemon/util/accounts.h"

enum {
	HELLO_TIMEOUT_S = 5,
	WAKES_MAX = 64, /* wake-ups of one connection between two ticks of the drain timer */
};

struct connection {
	uv_poll_t poll;
	struct ingest *ingest;
	int fd;
	struct peer peer;
	struct account *account;
	uint64_t accepted_ns;
	unsigned wakes;
	bool paused;		       /* too many wake-ups: until the next tick */
	struct attachment *attachment; /* NULL before the hello */
	struct connection *next, **prev;
};

struct attachment {
	uv_poll_t death;
	int pidfd; /* -1: the connection's end is the process's */
	struct ingest *ingest;
	struct peer peer;
	struct account *account;
	void *map;
	uint32_t size;
	dev_t dev;
	ino_t ino;
	struct ring *ring;
	struct app_process *process;   /* NULL once detached */
	struct connection *connection; /* NULL when it went before the process */
	struct ring_counts counts;     /* at the last drain */
	uint64_t now_ns;	       /* of the drain that runs */
	struct nspid nspid;
	uint64_t looked_ns; /* when its threads were looked through */
	uint64_t ended_ns;  /* it ended or said so, and how is not known yet; 0 = it lives */
	bool due;	    /* wants to be drained */
	uint64_t turn;	    /* when it was last, counted in drains of all */
	bool ending;	    /* its process is gone: what it left is drained, then it ends */
	enum process_end how;
	unsigned passes, calls; /* drains since then: full ones, all */
	struct attachment *next, **prev;
};

struct ingest {
	uv_loop_t *loop;
	struct core *core;
	struct ingest_options options;
	struct ingest_socket socket;
	uv_poll_t listen;
	uv_timer_t drain, sample;
	/* around the loop's wait: when it ended last, when this one was meant to end */
	uv_prepare_t before_wait;
	uv_check_t after_wait;
	uint64_t waited_ns, due_ns;
	uint64_t stalled_ns, caught_up_ns; /* of the last stall: when it began; 0 = none */
	bool listen_paused;		   /* no descriptors left: until the next sample */
	struct connection *connections;
	size_t connection_count;
	struct attachment *attachments;
	uint64_t drained_ms;	    /* uv_now of the drain timer's last tick */
	uint64_t drain_turns;	    /* of all attachments */
	struct iteration iteration; /* of the loop: work done */
	uint64_t mapped_bytes;
	unsigned saves;	    /* turns of saving that are left until the next sample */
	uint64_t sample_ms; /* the loop's time when the sample that goes on began; 0 = none */
	unsigned handles;   /* not yet closed */
	bool closing;
	void (*done)(void *ctx);
	void *done_ctx;
};

/* A handle's close callback ran; the last one ends a closing ingest. */
void ingest_handle_closed(struct ingest *ingest);

/* Counts a refusal, tells it once. app NULL = not known. */
void ingest_refuse(
	struct ingest *ingest, const struct peer *peer, const char *app, const char *reason);

/* The earliest time at which the kernel may have received what is read now: now_ns itself, unless
 * the daemon did not come to look. */
uint64_t ingest_received_ns(struct ingest *ingest, uint64_t now_ns);

/* A user whose apps may fill most of the places: root, the daemon's own, the run directory's. */
bool ingest_trusts(const struct ingest *ingest, uid_t uid);

/* Starts the drain timer when there is something to drain, stops it when there is not. */
void ingest_drain_timer(struct ingest *ingest);

/* Drains who is due, in this turn of the loop what its share of work allows, the rest in the next
 * ones: the user who had least of the loop lately comes first. May end attachments. */
void ingest_drain_due(struct ingest *ingest);
/* Drains one that ends, a few times if this turn has not been much too long already, so that it is
 * over before the next process of its app; the rest in the next turns. */
void ingest_drain_ending(struct ingest *ingest, struct attachment *attachment);

/* Accepts what waits on the listening socket. */
void connection_accept(struct ingest *ingest);
/* Closes it; the attachment stays unless nothing else tells the end of its process. */
void attachment_close_connection(struct connection *connection);
/* Wake-ups are heard again. */
void connection_resume(struct connection *connection);

/* Judges and maps what a hello brought; takes the descriptor in any case. 0, or -errno with *reason
 * (static text). */
int attachment_create(struct connection *connection, const struct proto_hello *hello, int memfd,
	const char **reason);
/* Once a sample: threads that have shown and are not known are looked for. */
void attachment_sample(struct attachment *attachment, uint64_t now_ns);
/* Writes what the app is advised to do now into the mapping. */
void attachment_advise(const struct attachment *attachment, uint64_t now_ns);
/* The daemon lets go of it: no advice from now on. */
void attachment_withdraw_advice(const struct attachment *attachment);
/* Records and new names, within a budget; how much work it was. due: some were left behind. */
size_t attachment_drain(struct attachment *attachment, uint64_t now_ns);
/* After a drain: an ending one whose records are all read is detached, its mapping let go. False:
 * it is still there. */
bool attachment_settle(struct attachment *attachment);
/* Reads what is there now, however long it takes. At least twice: a record that is not there yet is
 * waited for one pass. Bounded: another process may hold the mapping and go on writing. */
void attachment_drain_all(struct attachment *attachment);
/* Final drain at once, then the same. */
void attachment_end(struct attachment *attachment, enum process_end how);
/* An apps_displace_observer; ctx is the ingest. */
void attachments_displace(void *ctx, const struct app *app);
/* It ended: how the kernel reports it, else as its flags say; once what it left is read. */
void attachment_gone(struct attachment *attachment);
void attachment_end_by_turns(struct attachment *attachment, enum process_end how);
/* Ends it at once: as it ended, or released when its process lives on. */
void attachment_finish(struct attachment *attachment);
/* The pidfd's callback. */
void attachment_on_death(uv_poll_t *handle, int status, int events);
/* A run that is over is not joined by the next process of the app. */
void attachments_end_over(struct ingest *ingest, const char *name, uid_t uid);
/* Nobody said in time how its process ended. */
bool attachment_overdue(const struct attachment *attachment, uint64_t now_ns);
/* The connection went while the process lives on. */
void attachment_hangup(struct attachment *attachment);
