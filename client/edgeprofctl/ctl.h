/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.h: declares what a verb works with: options, style, output, and the daemon at the other end.
 * Functions that talk to the daemon return an exit status, after a message on stderr if not 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/options.h"
#include "client/edgeprofctl/term/output.h"
#include "client/edgeprofctl/term/style.h"

enum ctl_exit {
	CTL_FINE = 0,
	CTL_BAD_NEWS = 1,	/* alerts --check with a firing alert, a refused reload */
	CTL_NO_DATA = 2,	/* unknown app, nothing matches */
	CTL_USAGE = 64,		/* EX_USAGE */
	CTL_NO_INPUT = 66,	/* EX_NOINPUT: a file that can't be read */
	CTL_UNREACHABLE = 69,	/* EX_UNAVAILABLE: no daemon, no reply in time, a malformed one */
	CTL_OUTPUT = 74,	/* EX_IOERR: stdout can't be written, no memory */
	CTL_NOT_PERMITTED = 77, /* EX_NOPERM */
};

struct client;
struct replay;
struct reply;
struct address_list;

/* Replies in the daemon's place: a recording. Errors are those of client_send, client_receive. */
struct responder {
	int (*send)(struct replay *replay, const char *method, const cJSON *parameters);
	int (*receive)(struct replay *replay, struct reply *ret);
};

/* The options that fill the member `window`. */
#define CTL_WINDOW_OPTIONS                                                                   \
	{"span", 0, "recent|lifetime", "cover the recent window, or the run from its start", \
		option_word, offsetof(struct options, window.span)},                         \
		{"method", 0, "linear|nearest", "how to take percentiles", option_word,      \
			offsetof(struct options, window.method)},                            \
		{"throttle", 0, "all|throttled|unthrottled",                                 \
			"count only what ended while the hardware throttled, or did not",    \
			option_word, offsetof(struct options, window.throttle)},             \
		{"run", 0, "0|-1|-2|-3|-4|-5|-6|-7|-8",                                      \
			"show the current or latest run (0), or an earlier one", option_run, \
			offsetof(struct options, runs.run)},                                 \
		{"all-runs", 0, NULL, "combine all runs that are kept", option_flag,         \
			offsetof(struct options, runs.all_runs)},                            \
	{                                                                                    \
		"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag, \
			offsetof(struct options, all)                                        \
	}

struct ctl {
	struct options options;
	struct style style;
	struct output output;
	struct client *client;		   /* NULL: not connected yet */
	pid_t remote;			   /* ssh, when the client is connected through it */
	const struct responder *responder; /* with a replay, what it does */
	struct replay *replay;		   /* a recording that replies instead; NULL: none */
	char **words;			   /* the verb's arguments */
	int word_count;
	const char *subscribed; /* the method that ctl_next reads from */
	bool continues;		/* more replies follow the one that ctl_next returned */
	bool quiet;		/* top: say nothing on stderr, keep the text in `failure` */
	char failure[256];
};

/* Calls a method (io.edgeprof. is put in front when it has no dot) and waits for the complete
 * reply: with `more` it may come in chunks. Deletes parameters (NULL = none). On CTL_FINE *ret is
 * the caller's; its strings are clean unless JSON is wanted. */
int ctl_call(struct ctl *ctl, const char *method, cJSON *parameters, bool more, cJSON **ret);
/* The same with more, and without a message on stderr; *ret is NULL unless CTL_FINE. */
int ctl_try(struct ctl *ctl, const char *method, cJSON *parameters, cJSON **ret);

/* The reply goes to the output, as JSON when that is wanted, else through show; deletes it. */
int ctl_answer(struct ctl *ctl, cJSON *reply, void (*show)(struct ctl *ctl, const cJSON *reply));

/* Both. */
int ctl_show(struct ctl *ctl, const char *method, cJSON *parameters, bool more,
	void (*show)(struct ctl *ctl, const cJSON *reply));

/* The same for a reply with an array. When that is empty, CTL_NO_DATA with the message. */
__attribute__((format(printf, 6, 7))) int ctl_list(struct ctl *ctl, const char *method,
	cJSON *parameters, const char *array, void (*show)(struct ctl *ctl, const cJSON *reply),
	const char *empty, ...);

/* Begins a subscription: then ctl_next gives one reply after the other. */
int ctl_subscribe(struct ctl *ctl, const char *method, cJSON *parameters);

/* The next reply, within timeout_ms. *ret may become NULL with CTL_FINE: there was none, or stdout
 * was closed, as ctl_flush shows. */
int ctl_next(struct ctl *ctl, uint64_t timeout_ms, cJSON **ret);
/* The same, where silence is an error. */
int ctl_expect(struct ctl *ctl, uint64_t timeout_ms, cJSON **ret);

/* One reply after the other of a call that ctl_subscribe began; *continues: there are more. A call
 * that fails ends. Texts are clean as with ctl_call. */
int ctl_chunk(struct ctl *ctl, const char *method, cJSON **ret, bool *continues);

/* CTL_USAGE after a message where -H names a machine: for verbs that work with this one. */
int ctl_check_local(struct ctl *ctl);
/* Connects to the daemon of this machine: a descriptor, or an exit status as a negative number. */
int ctl_open_local(struct ctl *ctl);
/* Where the daemon may listen. */
int ctl_addresses(struct ctl *ctl, struct address_list *ret);
/* The machines that -H names; 0: this one. A verb for which more than one makes sense works with
 * each through a ctl of its own, which is quiet, has the same output and is to be disconnected. */
size_t ctl_hosts(const struct ctl *ctl);
const char *ctl_host(const struct ctl *ctl, size_t number);
void ctl_init_host(const struct ctl *ctl, size_t number, struct ctl *ret);
/* Connects unless it is connected. A connection to another machine is only begun: ctl_chunk and
 * ctl_call report what becomes of it. */
int ctl_connect(struct ctl *ctl);
void ctl_disconnect(struct ctl *ctl);
/* Disconnects from a machine whose end was closed, and reports why, by the exit status of ssh. */
int ctl_remote_failed(struct ctl *ctl);

/* True when the answer is to be printed as JSON; then it has been written to the output. */
bool ctl_json(struct ctl *ctl, const cJSON *reply);

/* Shows what was written so far, for verbs that go on. False: stop with *status, which is CTL_FINE
 * when the reader closed its pipe. */
bool ctl_flush(struct ctl *ctl, int *status);

struct table;
/* Prints the table to the output and frees it. */
void ctl_table(struct ctl *ctl, struct table *table);

/* The verb's argument of that number, or NULL. */
const char *ctl_word(const struct ctl *ctl, int number);

/* An object for parameters with one text in it, or an empty one when the text is NULL. */
cJSON *ctl_parameters(const char *name, const char *text);
/* The same of an app in the runs, and of the window, that the options select. */
cJSON *ctl_run_parameters(const struct ctl *ctl, const char *app);
cJSON *ctl_window_parameters(const struct ctl *ctl, const char *app);
/* What to say behind "no stages of " and the app, if one was named, where that found nothing. */
const char *ctl_window_nothing(const struct ctl *ctl, const char *app);
/* Adds a text unless it is NULL, a flag where it is set; parameters NULL is a new object. */
cJSON *ctl_add_text(cJSON *parameters, const char *name, const char *text);
cJSON *ctl_add_flag(cJSON *parameters, const char *name, bool flag);

/* A time that was typed, in µs since the epoch; NULL leaves *ret_us alone. */
int ctl_time(struct ctl *ctl, const char *text, int64_t *ret_us);
/* The start and the end of a span. */
int ctl_times(
	struct ctl *ctl, const char *since, const char *until, int64_t *from_us, int64_t *to_us);
/* Two of them as from_us and to_us, unless the text is NULL; deletes the parameters on failure. */
int ctl_add_times(struct ctl *ctl, cJSON *parameters, const char *since, const char *until);

/* Memory of zeros, also for a count of 0; without any left the program ends with CTL_OUTPUT. For
 * verbs that have written nothing so far, and leave nothing behind. */
void *ctl_memory(size_t count, size_t size);

/* One line on stderr ("edgeprofctl: …"), or into `failure` when quiet. Returns `status`. */
int ctl_fail(struct ctl *ctl, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reports an error that the daemon replied with; the exit status. */
int ctl_refused(struct ctl *ctl, const char *method, const char *error, cJSON *parameters);
struct text;
/* Adds a name that is similar to one that the daemon does not know, or the command that lists the
 * names. what: as in its error NotFound, or several such words. */
void ctl_hint(struct ctl *ctl, struct text *text, const char *what, const char *name);
/* ctl_fail() with a hint. */
int ctl_unknown(struct ctl *ctl, int status, const char *what, const char *name, const char *format,
	...) __attribute__((format(printf, 5, 6)));
