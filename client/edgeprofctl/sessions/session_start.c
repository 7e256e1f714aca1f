/* SPDX-License-Identifier: Apache-2.0 */
/* session_start.c: makes the parameters of a new session, with the tags that describe its model. */
#include "client/edgeprofctl/sessions/sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/sessions/fingerprint.h"
#include "proto/name.h"

enum { DEFAULT_FRAMES = 300, DEFAULT_WARMUP = 10 };

static void add_tag(cJSON *tags, const char *name, size_t length, const char *value)
{
	char text[256]; /* a name that is longer is none: cut, the daemon refuses it */
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	cJSON *tag = cJSON_CreateObject();
	cJSON_AddStringToObject(tag, "name", text);
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
	add_tag(tags, "model", strlen("model"), slash ? slash + 1 : path);
	add_tag(tags, "model_bytes", strlen("model_bytes"), bytes);
	add_tag(tags, "model_sha256", strlen("model_sha256"), digest);
	return CTL_FINE;
}

int session_parameters(struct ctl *ctl, cJSON **ret)
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
		const char *tag = options->tags.items[i];
		size_t length = strcspn(tag, "=");
		add_tag(tags, tag, length, tag + length + 1);
	}
	if (options->input) {
		add_tag(tags, "input_size", strlen("input_size"), options->input);
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
	*ret = parameters;
	return CTL_FINE;
}
