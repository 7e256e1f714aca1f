/*
 * What a verb works with: options, style, output, and the daemon at the other end. Functions that
 * talk to the daemon return an exit status and have said what is wrong on stderr when it is not 0.
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
	CTL_UNREACHABLE = 69,	/* EX_UNAVAILABLE: no daemon, no answer in time, nonsense */
	CTL_OUTPUT = 74,	/* EX_IOERR: stdout can't be written, no memory */
	CTL_NOT_PERMITTED = 77, /* EX_NOPERM */
};

struct client;
struct replay;

struct ctl {
	struct options options;
	struct style style;
	struct output output;
	struct client *client; /* NULL: not connected yet */
	struct replay *replay; /* a recording that answers in its place; NULL: none */
	char **words;	       /* the verb's arguments */
	int word_count;
	const char *subscribed; /* the method that ctl_next reads from */
	bool quiet;		/* watch: say nothing on stderr, keep the text in `failure` */
	char failure[256];
};

/* Calls a method (io.edgeprof. is put in front when it has no dot) and waits for the whole answer:
 * with `more` it may come in chunks. Deletes parameters (NULL = none). On CTL_FINE *ret is the
 * caller's; its strings are clean unless JSON is wanted. */
int ctl_call(struct ctl *ctl, const char *method, cJSON *parameters, bool more, cJSON **ret);

/* Begins a subscription: then ctl_next gives one reply after the other. */
int ctl_subscribe(struct ctl *ctl, const char *method, cJSON *parameters);

/* The next reply, within timeout_ms. *ret may become NULL with CTL_FINE: nothing within the time.
 */
int ctl_next(struct ctl *ctl, uint64_t timeout_ms, cJSON **ret);

/* One reply after the other of a call that ctl_subscribe began; *continues: there are more. A call
 * that fails ends. Texts are clean as with ctl_call. */
int ctl_chunk(struct ctl *ctl, const char *method, cJSON **ret, bool *continues);

/* Connects when there is no connection yet. */
int ctl_connect(struct ctl *ctl);
void ctl_disconnect(struct ctl *ctl);

/* True when the answer is to be printed as JSON; then it has been written to the output. */
bool ctl_json(struct ctl *ctl, const cJSON *reply);

/* Shows what was written so far, for verbs that go on. False: stop with *status, which is CTL_FINE
 * when the reader closed its pipe. */
bool ctl_flush(struct ctl *ctl, int *status);

/* An object for parameters with one text in it, or an empty one when the text is NULL. */
cJSON *ctl_parameters(const char *name, const char *text);
/* The same of an app in the run that --run or --all-runs name. */
cJSON *ctl_run_parameters(const struct ctl *ctl, const char *app);

/* Adds the parameter all when --all was given. */
cJSON *ctl_all(const struct ctl *ctl, cJSON *parameters);

/* One line on stderr ("edgeprofctl: …"), or into `failure` when quiet. Returns `status`. */
int ctl_fail(struct ctl *ctl, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
