/* SPDX-License-Identifier: Apache-2.0 */
/* ctl.c: mediates between verbs and the wire. It makes calls and joins chunks; whatever goes wrong
 * becomes one line for a person and an exit status for a script. */
#include "client/edgeprofctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/client.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/link/merge.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/term/text.h"
#include "client/edgeprofctl/term/when.h"
#include "proto/text.h"
#include "proto/varlink.h"

/* Chunks of one answer; each is at most 64 KiB: 256 MiB is far more than any history holds. */
enum { CHUNKS_MAX = 4096 };

void *ctl_memory(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (!memory) {
		fputs("edgeprofctl: out of memory\n", stderr);
		exit(CTL_OUTPUT);
	}
	return memory;
}

int ctl_fail(struct ctl *ctl, int status, const char *format, ...)
{
	char text[sizeof(ctl->failure)];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	text_clean(text, ctl->style.utf8);
	memcpy(ctl->failure, text, sizeof(text));
	if (!ctl->quiet) {
		fprintf(stderr, "edgeprofctl: %s\n", text);
	}
	return status;
}

/* The connection failed: it can't be used for another call. */
static int wire_failed(struct ctl *ctl, const char *method, int error)
{
	int status = CTL_UNREACHABLE;
	if (error == -ENOMEM) {
		status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	} else if (ctl->replay) {
		return ctl_fail(ctl, CTL_NO_INPUT, "the recording is damaged");
	} else if (error == -ETIMEDOUT) {
		ctl_fail(ctl, status, "%s: no reply within %.1f s (see --timeout)", method,
			(double)ctl->options.timeout_ms / 1000);
	} else {
		bool closed = error == -ECONNRESET || error == -EPIPE;
		if (closed && ctl->remote > 0) {
			return ctl_remote_failed(ctl);
		}
		bool malformed = error == -EBADMSG || error == -EMSGSIZE;
		ctl_fail(ctl, status, "%s: %s%s", method, malformed ? "malformed reply: " : "",
			error == -EBADMSG    ? client_reason(ctl->client)
			: error == -EMSGSIZE ? "longer than 64 KiB"
			: closed	     ? "the daemon closed the connection"
					     : strerror(-error));
	}
	ctl_disconnect(ctl);
	return status;
}

/* Takes the reply apart: its parameters, or the error reported. */
static int open_reply(struct ctl *ctl, const char *method, struct reply *reply, cJSON **ret)
{
	int status = CTL_FINE;
	if (reply->error) {
		status = ctl_refused(ctl, method, reply->error, reply->parameters);
	} else {
		*ret = reply->parameters;
		reply->parameters = NULL;
		if (ctl->options.json == JSON_OFF) {
			json_clean(*ret, ctl->style.utf8);
		}
	}
	reply_finish(reply);
	return status;
}

int ctl_chunk(struct ctl *ctl, const char *method, cJSON **ret, bool *continues)
{
	struct reply reply;
	int r = ctl->replay ? ctl->responder->receive(ctl->replay, &reply)
			    : client_receive(ctl->client, ctl->options.timeout_ms, &reply);
	*ret = NULL;
	if (r < 0) {
		return wire_failed(ctl, method, r);
	}
	*continues = reply.continues;
	return open_reply(ctl, method, &reply, ret);
}

static int receive_all(struct ctl *ctl, const char *method, cJSON **ret)
{
	cJSON *joined = NULL, *part;
	bool continues = true;
	int status = CTL_FINE;
	for (int chunks = 0; status == CTL_FINE && continues; chunks++) {
		if (chunks == CHUNKS_MAX) {
			ctl_disconnect(ctl); /* the rest would be taken for the next reply */
			status = ctl_fail(ctl, CTL_UNREACHABLE,
				"%s: malformed reply: no end after 256 MiB", method);
			break;
		}
		status = ctl_chunk(ctl, method, &part, &continues);
		if (status == CTL_FINE && joined) {
			merge_reply(joined, part);
			cJSON_Delete(part);
		} else if (status == CTL_FINE) {
			joined = part;
		}
	}
	if (status != CTL_FINE) {
		cJSON_Delete(joined);
		return status;
	}
	*ret = joined;
	return CTL_FINE;
}

static int send_call(struct ctl *ctl, const char *method, cJSON *parameters, bool more)
{
	char name[96];
	if (ctl->replay) {
		int r = ctl->responder->send(ctl->replay, method, parameters);
		cJSON_Delete(parameters);
		return r < 0 ? wire_failed(ctl, method, r) : CTL_FINE;
	}
	int status = ctl_connect(ctl);
	if (status == CTL_FINE) {
		snprintf(name, sizeof(name), "%s%s", !strchr(method, '.') ? "io.edgeprof." : "",
			method);
		int r = client_send(ctl->client, name, parameters, more, ctl->options.timeout_ms);
		/* A daemon that refuses us answers and closes at once: its reason is still there.
		 */
		status = r < 0 && r != -EPIPE && r != -ECONNRESET ? wire_failed(ctl, method, r) : 0;
	}
	cJSON_Delete(parameters);
	return status;
}

int ctl_call(struct ctl *ctl, const char *method, cJSON *parameters, bool more, cJSON **ret)
{
	int status = send_call(ctl, method, parameters, more);
	return status != CTL_FINE ? status : receive_all(ctl, method, ret);
}

int ctl_try(struct ctl *ctl, const char *method, cJSON *parameters, cJSON **ret)
{
	bool quiet = ctl->quiet;
	*ret = NULL;
	ctl->quiet = true;
	int status = ctl_call(ctl, method, parameters, true, ret);
	ctl->quiet = quiet;
	return status;
}

int ctl_answer(struct ctl *ctl, cJSON *reply, void (*show)(struct ctl *ctl, const cJSON *reply))
{
	if (!ctl_json(ctl, reply)) {
		show(ctl, reply);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}

int ctl_show(struct ctl *ctl, const char *method, cJSON *parameters, bool more,
	void (*show)(struct ctl *ctl, const cJSON *reply))
{
	cJSON *reply;
	int status = ctl_call(ctl, method, parameters, more, &reply);
	return status != CTL_FINE ? status : ctl_answer(ctl, reply, show);
}

int ctl_list(struct ctl *ctl, const char *method, cJSON *parameters, const char *array,
	void (*show)(struct ctl *ctl, const cJSON *reply), const char *empty, ...)
{
	cJSON *reply;
	int status = ctl_call(ctl, method, parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	char text[sizeof(ctl->failure)];
	va_list ap;
	va_start(ap, empty);
	vsnprintf(text, sizeof(text), empty, ap);
	va_end(ap);
	bool none = json_count(reply, array) == 0;
	ctl_answer(ctl, reply, show);
	return none ? ctl_fail(ctl, CTL_NO_DATA, "%s", text) : CTL_FINE;
}

int ctl_subscribe(struct ctl *ctl, const char *method, cJSON *parameters)
{
	ctl->subscribed = method;
	return send_call(ctl, method, parameters, true);
}

/* What client_receive() returned. */
static int take_next(struct ctl *ctl, int r, struct reply *reply, cJSON **ret)
{
	*ret = NULL;
	if (r == -ETIMEDOUT) {
		return CTL_FINE;
	}
	ctl->continues = r == 0 && reply->continues;
	return r < 0 ? wire_failed(ctl, ctl->subscribed, r)
		     : open_reply(ctl, ctl->subscribed, reply, ret);
}

int ctl_next(struct ctl *ctl, uint64_t timeout_ms, cJSON **ret)
{
	struct reply reply;
	const double until_ms = when_mono_ms() + (double)timeout_ms;
	double left_ms = (double)timeout_ms;
	int r;
	while ((r = client_receive(ctl->client, 0, &reply)) == -ETIMEDOUT && left_ms > 0 &&
		!output_wait(client_fd(ctl->client), left_ms)) {
		left_ms = until_ms - when_mono_ms();
	}
	return take_next(ctl, r, &reply, ret);
}

int ctl_expect(struct ctl *ctl, uint64_t timeout_ms, cJSON **ret)
{
	struct reply reply;
	int r = client_receive(ctl->client, timeout_ms, &reply);
	int status = take_next(ctl, r, &reply, ret);
	return status == CTL_FINE && !*ret ? ctl_fail(ctl, CTL_UNREACHABLE,
						     "%s: no reply within %.1f s (see --timeout)",
						     ctl->subscribed, (double)timeout_ms / 1000)
					   : status;
}

bool ctl_json(struct ctl *ctl, const cJSON *reply)
{
	if (ctl->options.json == JSON_OFF) {
		return false;
	}
	json_write(ctl->output.stream, reply, ctl->options.json == JSON_PRETTY);
	return true;
}

bool ctl_flush(struct ctl *ctl, int *status)
{
	int r = output_flush(&ctl->output);
	if (r == 0 && output_wait(-1, 0)) {
		r = -EPIPE; /* nothing was left to write, which would have shown it */
	}
	if (r < 0) {
		ctl->quiet = false; /* this is said by nobody else */
		*status = r == -EPIPE ? CTL_FINE
				      : ctl_fail(ctl, CTL_OUTPUT, "cannot write output: %s",
						strerror(-r));
	}
	return r == 0;
}

void ctl_table(struct ctl *ctl, struct table *table)
{
	table_print(table, &ctl->style, ctl->output.stream, 0);
	table_finish(table);
}

const char *ctl_word(const struct ctl *ctl, int number)
{
	return number < ctl->word_count ? ctl->words[number] : NULL;
}

cJSON *ctl_add_text(cJSON *parameters, const char *name, const char *text)
{
	parameters = parameters ? parameters : cJSON_CreateObject();
	if (text) {
		cJSON_AddStringToObject(parameters, name, text);
	}
	return parameters;
}

cJSON *ctl_add_flag(cJSON *parameters, const char *name, bool flag)
{
	parameters = parameters ? parameters : cJSON_CreateObject();
	if (flag) {
		cJSON_AddTrueToObject(parameters, name);
	}
	return parameters;
}

cJSON *ctl_parameters(const char *name, const char *text)
{
	return ctl_add_text(NULL, name, text);
}

cJSON *ctl_run_parameters(const struct ctl *ctl, const char *app)
{
	const struct run_options *runs = &ctl->options.runs;
	cJSON *parameters = ctl_parameters("app", app);
	if (runs->run) {
		cJSON_AddNumberToObject(parameters, "run", (double)strtol(runs->run, NULL, 10));
	}
	return ctl_add_flag(parameters, "all_runs", runs->all_runs);
}

cJSON *ctl_window_parameters(const struct ctl *ctl, const char *app)
{
	const struct window_options *window = &ctl->options.window;
	cJSON *parameters = ctl_run_parameters(ctl, app);
	ctl_add_text(parameters, "span", window->span);
	ctl_add_text(parameters, "percentile_method", window->method);
	ctl_add_text(parameters, "throttle", window->throttle);
	return ctl_add_flag(parameters, "all", ctl->options.all);
}

const char *ctl_window_nothing(const struct ctl *ctl, const char *app)
{
	return app		  ? " yet; 'edgeprofctl apps' lists the apps"
	       : ctl->options.all ? "any app yet; see edgeprof(3)"
				  : "any running app; --all includes those that ended";
}

/* from_us: the start of the span that it ends, or INT64_MIN. */
static int time_after(struct ctl *ctl, const char *text, int64_t from_us, int64_t *ret_us)
{
	if (text && when_parse_end(text, when_now_us(), from_us, ret_us) < 0) {
		return ctl_fail(ctl, CTL_USAGE,
			"invalid time '%s'; use 5min (ago), 14:30, yesterday, 2026-01-31 14:30, "
			"@1700000000 or now",
			text);
	}
	return CTL_FINE;
}

int ctl_time(struct ctl *ctl, const char *text, int64_t *ret_us)
{
	return time_after(ctl, text, INT64_MIN, ret_us);
}

int ctl_times(
	struct ctl *ctl, const char *since, const char *until, int64_t *from_us, int64_t *to_us)
{
	int status = ctl_time(ctl, since, from_us);
	return status != CTL_FINE ? status
				  : time_after(ctl, until, since ? *from_us : INT64_MIN, to_us);
}

int ctl_add_times(struct ctl *ctl, cJSON *parameters, const char *since, const char *until)
{
	int64_t from_us = 0, to_us = 0;
	int status = ctl_times(ctl, since, until, &from_us, &to_us);
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	if (since) {
		cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(from_us));
	}
	if (until) {
		cJSON_AddItemToObject(parameters, "to_us", proto_json_integer(to_us));
	}
	return CTL_FINE;
}
