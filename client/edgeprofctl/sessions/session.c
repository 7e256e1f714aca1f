/* SPDX-License-Identifier: Apache-2.0 */
/* session.c: starts, stops, lists, shows and deletes sessions: what an app did from one moment to
 * another, kept by the daemon in a file with the circumstances. */
#include "client/edgeprofctl/sessions/sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/sessions/fingerprint.h"
#include "client/edgeprofctl/verb.h"
#include "proto/name.h"

enum { DEFAULT_FRAMES = 300, DEFAULT_WARMUP = 10 };

void session_add_tag(cJSON *tags, const char *name, const char *value)
{
	cJSON *tag = cJSON_CreateObject();
	cJSON_AddStringToObject(tag, "name", name);
	cJSON_AddStringToObject(tag, "value", value);
	cJSON_AddItemToArray(tags, tag);
}

bool session_has_tag(const cJSON *session, const char *tag)
{
	size_t length = strcspn(tag, "=");
	for (const cJSON *row = json_first(session, "tags"); row; row = row->next) {
		const char *name = json_word(row, "name");
		if (strlen(name) == length && strncmp(name, tag, length) == 0 &&
			strcmp(json_word(row, "value"), tag + length + 1) == 0) {
			return true;
		}
	}
	return false;
}

char *session_setting(struct ctl *ctl, const char *name)
{
	cJSON *reply;
	char *value = NULL;
	if (ctl_hosts(ctl) == 0 &&
		ctl_try(ctl, "ListSessions", ctl_parameters("name", "-"), &reply) == CTL_FINE) {
		const char *path = json_text(reply, name);
		value = path ? strdup(path) : NULL;
		cJSON_Delete(reply);
	}
	return value;
}

/* By its name without folders: where a model is does not make another one of it. */
static int add_model(struct ctl *ctl, cJSON *tags)
{
	char digest[FINGERPRINT_SIZE], bytes[24];
	const char *path = ctl->options.model, *slash = strrchr(path, '/');
	uint64_t size = 0;
	int r = fingerprint_file(path, digest, &size);
	if (r < 0) {
		return ctl_fail(ctl, CTL_NO_INPUT, "cannot read model '%s': %s", path,
			r == -EINVAL ? "not a regular file" : strerror(-r));
	}
	snprintf(bytes, sizeof(bytes), "%" PRIu64, size);
	session_add_tag(tags, "model", slash ? slash + 1 : path);
	session_add_tag(tags, "model_bytes", bytes);
	session_add_tag(tags, "model_sha256", digest);
	return CTL_FINE;
}

/* The parameters of StartSession, from the words and options. */
static int make_parameters(struct ctl *ctl, cJSON **ret)
{
	const struct options *options = &ctl->options;
	for (int i = 1; i < ctl->word_count; i++) {
		if (!proto_name_valid(ctl->words[i])) {
			return ctl_fail(ctl, CTL_USAGE,
				"invalid name '%s'; use up to 48 characters of A-Z a-z 0-9 _ . -",
				ctl->words[i]);
		}
	}
	cJSON *parameters = ctl_parameters("name", ctl->words[1]);
	cJSON *tags = cJSON_AddArrayToObject(parameters, "tags");
	ctl_add_text(parameters, "app", ctl_word(ctl, 2));
	for (size_t i = 0; i < options->tags.count; i++) {
		char name[256]; /* one that is longer is none: cut, the daemon refuses it */
		const char *tag = options->tags.items[i];
		int length = (int)strcspn(tag, "=");
		snprintf(name, sizeof(name), "%.*s", length, tag);
		session_add_tag(tags, name, tag + length + 1);
	}
	if (options->input) {
		session_add_tag(tags, "input_size", options->input);
	}
	cJSON_AddNumberToObject(parameters, "warmup",
		options->warmup ? (double)strtol(options->warmup, NULL, 10) : DEFAULT_WARMUP);
	if (options->frames != 0) {
		cJSON_AddNumberToObject(parameters, "frames",
			options->frames > 0 ? (double)options->frames : DEFAULT_FRAMES);
	}
	if (options->span_ms > 0) {
		cJSON_AddNumberToObject(parameters, "seconds", options->span_ms / 1000);
	}
	int status = options->model ? add_model(ctl, tags) : CTL_FINE;
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	session_add_environment(ctl, parameters, ctl_word(ctl, 2));
	*ret = parameters;
	return CTL_FINE;
}

static int start(struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	bool follows = (options->frames != 0 || options->span_ms > 0) && !options->detach;
	cJSON *parameters = NULL, *reply;
	struct screen *signals = NULL;
	int status = make_parameters(ctl, &parameters);
	if (status != CTL_FINE) {
		return status;
	}
	/* before there is a session: a signal right after its start ends it as well */
	if (follows && screen_open(&signals) < 0) {
		cJSON_Delete(parameters);
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	status = ctl_call(ctl, "StartSession", parameters, false, &reply);
	if (status == CTL_FINE) {
		status = follows ? session_follow(ctl, reply, signals)
				 : ctl_answer(ctl, reply, session_show_start);
	}
	screen_close(signals);
	return status;
}

static int stop(struct ctl *ctl)
{
	cJSON *parameters = ctl_parameters("name", ctl->words[1]);
	ctl_add_text(parameters, "error", ctl->options.error);
	return ctl_show(ctl, "StopSession", parameters, false, session_show_end);
}

static bool wanted(const cJSON *session, const char *glob)
{
	return proto_query_match(glob, json_word(session, "name"));
}

static int list(struct ctl *ctl)
{
	const char *first = ctl_word(ctl, 0);
	const char *glob = first && strcmp(first, "list") == 0 ? ctl_word(ctl, 1) : first;
	const struct option_list *tags = &ctl->options.tags;
	cJSON *reply;
	int status = ctl_call(ctl, "ListSessions", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	bool any = json_count(reply, "sessions") > 0;
	int left = glob ? listing_narrow(reply, "sessions", wanted, glob)
			: json_count(reply, "sessions");
	for (size_t i = 0; i < tags->count; i++) {
		left = listing_narrow(reply, "sessions", session_has_tag, tags->items[i]);
	}
	bool hidden = !any && json_number(reply, "bytes") > 0;
	ctl_answer(ctl, reply, session_show_list);
	return left > 0 ? CTL_FINE
	       : hidden
		       ? ctl_fail(ctl, CTL_NO_DATA,
				 "no sessions of yours; those of other users are shown to root and "
				 "the admin group only")
	       : glob || tags->count > 0
		       ? ctl_fail(ctl, CTL_NO_DATA, "no session matches")
		       : ctl_fail(ctl, CTL_NO_DATA,
				 "no sessions yet; 'edgeprofctl session start NAME' makes one");
}

int session_get(struct ctl *ctl, const char *name, cJSON **ret)
{
	enum json_mode json = ctl->options.json;
	cJSON *reply, *row = NULL;
	ctl->options.json = JSON_SHORT; /* the text as it is */
	int status = ctl_call(ctl, "ListSessions", ctl_parameters("name", name), true, &reply);
	ctl->options.json = json;
	if (status != CTL_FINE) {
		return status;
	}
	cJSON *rows = cJSON_GetObjectItemCaseSensitive(reply, "sessions");
	cJSON_ArrayForEach(row, rows)
	{
		if (strcmp(json_word(row, "name"), name) == 0) {
			*ret = cJSON_DetachItemViaPointer(rows, row);
			break;
		}
	}
	cJSON_Delete(reply);
	return row ? CTL_FINE
		   : ctl_unknown(
			     ctl, CTL_NO_DATA, "session", name, "there is no session '%s'", name);
}

bool session_is_active(const cJSON *session)
{
	const char *state = json_word(session, "state");
	return strcmp(state, "warmup") == 0 || strcmp(state, "running") == 0;
}

static int show(struct ctl *ctl)
{
	char fingerprint[FINGERPRINT_SIZE];
	cJSON *session, *reply = cJSON_CreateObject();
	int status = session_get(ctl, ctl->words[1], &session);
	if (status == CTL_FINE && fingerprint_session(session, fingerprint) < 0) {
		cJSON_Delete(session);
		status = ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	if (status != CTL_FINE) {
		cJSON_Delete(reply);
		return status;
	}
	if (ctl->options.json == JSON_OFF) {
		json_clean(session, ctl->style.utf8);
	}
	cJSON_AddItemToObject(reply, "session", session);
	cJSON_AddStringToObject(reply, "fingerprint", fingerprint);
	session_add_stages(ctl, ctl->words[1], reply);
	return ctl_answer(ctl, reply, session_show_one);
}

static int delete (struct ctl *ctl)
{
	int worst = CTL_FINE;
	for (int i = 1; i < ctl->word_count; i++) {
		cJSON *reply;
		int status = ctl_call(
			ctl, "DeleteSession", ctl_parameters("name", ctl->words[i]), false, &reply);
		worst = status != CTL_FINE ? status : worst;
		if (status == CTL_UNREACHABLE) {
			break;
		}
		if (status == CTL_FINE && !ctl_json(ctl, reply)) {
			fprintf(ctl->output.stream, "Session '%s' deleted.\n", ctl->words[i]);
		}
		if (status == CTL_FINE) {
			cJSON_Delete(reply);
		}
	}
	return worst;
}

/* A word that is none of the commands is the glob of a list. */
static int run(struct ctl *ctl)
{
	static const struct {
		const char *name;
		int min, max;
		int (*run)(struct ctl *ctl);
	} commands[] = {{"start", 2, 3, start}, {"stop", 2, 2, stop}, {"list", 1, 2, list},
		{"show", 2, 2, show}, {"delete", 2, INT32_MAX, delete}};
	const char *word = ctl_word(ctl, 0);
	bool known = false;
	for (size_t i = 0; word && i < sizeof(commands) / sizeof(commands[0]); i++) {
		bool is = strcmp(word, commands[i].name) == 0;
		if (is && ctl->word_count >= commands[i].min &&
			ctl->word_count <= commands[i].max) {
			return commands[i].run(ctl);
		}
		known = known || is;
	}
	return !known && ctl->word_count <= 1
		       ? list(ctl)
		       : ctl_fail(ctl, CTL_USAGE,
				 "usage: edgeprofctl session start NAME [APP] | stop NAME | "
				 "[list] [GLOB] | show NAME | delete NAME...");
}

/* A whole number from 0 on, kept as it was typed: 0 is not the same as none. */
static int parse_warmup(const struct option_spec *spec, const char *text, void *value)
{
	size_t length = strspn(text, "0123456789");
	return length == 0 || length > 6 || text[length] != '\0' ? -EINVAL
								 : option_text(spec, text, value);
}

static int parse_size(const struct option_spec *spec, const char *text, void *value)
{
	static const char digits[] = "0123456789";
	size_t width = strspn(text, digits),
	       height = text[width] == 'x' ? strspn(text + width + 1, digits) : 0;
	return width == 0 || height == 0 || text[width + 1 + height] != '\0'
		       ? -EINVAL
		       : option_text(spec, text, value);
}

static const struct option_spec options[] = {
	{"tag", 0, "NAME=VALUE", "start: what distinguishes this one; list: only those with it",
		option_pair, offsetof(struct options, tags)},
	{"warmup", 0, "N", "start: do not count the first N frames; default: 10", parse_warmup,
		offsetof(struct options, warmup)},
	{"frames", 0, "[N]", "start: end after N frames; default: 300", option_count,
		offsetof(struct options, frames)},
	{"duration", 0, "SPAN", "start: end after this time", option_ms,
		offsetof(struct options, span_ms)},
	{"detach", 0, NULL, "start: do not wait for the end", option_flag,
		offsetof(struct options, detach)},
	{"model", 0, "FILE", "start: tag it with the name, size and SHA-256 of a model",
		option_nonempty, offsetof(struct options, model)},
	{"input", 0, "SIZE", "start: tag it with the size of the input, such as 640x480",
		parse_size, offsetof(struct options, input)},
	{"error", 0, "TEXT", "stop: mark the session as failed", option_nonempty,
		offsetof(struct options, error)},
	{.name = NULL},
};

const struct verb verb_session = {"session",
	"start NAME [APP] | stop SESSION | [list] [SESSION] | show SESSION | delete SESSION...",
	"Record an app for later comparison: start, stop, list, show, delete.",
	"session start fp16 cam --frames 300 --tag precision=fp16", options, run};
