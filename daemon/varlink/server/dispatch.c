/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.c: carries out one call: its envelope, its parameters against the method's row, its
 * answer. A oneway call is carried out when it changes something and is never answered.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/peer.h"
#include "daemon/varlink/server/private.h"

#define SERVICE "org.varlink.service."
#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

bool call_permitted(const struct api_call *call)
{
	const struct api *api = call->api;
	uid_t uid = call->connection->uid;
	return uid == 0 || uid == geteuid() ||
	       (api->has_admin_gid && peer_in_group(call->connection->fd, api->admin_gid));
}

static enum api_result call_not_permitted(const struct api_call *call)
{
	reply_error(call->out, PROTO_INTERFACE_NAME ".NotPermitted");
	json_string(call->out, "method", strrchr(call->method, '.') + 1);
	json_string(call->out, "group", call->api->admin_name);
	return API_LAST;
}

bool pair_at(const struct value *value, size_t index, const char **name, const char **text)
{
	const struct cJSON *item =
		value->present ? cJSON_GetArrayItem(value->pairs, (int)index) : NULL;
	*name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
	*text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "value"));
	return item != NULL;
}

static bool is_pair(const struct cJSON *item)
{
	return cJSON_IsObject(item) && cJSON_GetArraySize(item) == 2 &&
	       cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "name")) &&
	       cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "value"));
}

/* False when it is of another type, or out of range. */
static bool value_read(const struct cJSON *item, const struct param *param, struct value *ret)
{
	switch (param->type) {
	case PARAM_STRING:
		ret->string = cJSON_GetStringValue(item);
		return ret->string != NULL;
	case PARAM_BOOL:
		ret->boolean = cJSON_IsTrue(item);
		return cJSON_IsBool(item);
	case PARAM_INT:
	case PARAM_FLOAT:
		if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
			return false;
		}
		ret->number = item->valuedouble;
		if (param->min < param->max &&
			((float)ret->number < param->min || ret->number > (double)param->max)) {
			return false;
		}
		if (param->type == PARAM_FLOAT) {
			return true;
		}
		if (ret->number != trunc(ret->number) || fabs(ret->number) > EXACT_INTEGER) {
			return false;
		}
		ret->integer = (int64_t)ret->number;
		return true;
	case PARAM_PAIRS:
		ret->pairs = item;
		for (const struct cJSON *at = item->child; at; at = at->next) {
			if (!is_pair(at)) {
				return false;
			}
		}
		return cJSON_IsArray(item);
	}
	return false;
}

/* The name of the parameter that is unknown, missing or invalid; NULL = all are well. */
static const char *params_read(
	const struct cJSON *object, const struct param *params, size_t count, struct value *values)
{
	memset(values, 0, count * sizeof(*values));
	if (object && !cJSON_IsNull(object) && !cJSON_IsObject(object)) {
		return "parameters";
	}
	for (const struct cJSON *item = object ? object->child : NULL; item; item = item->next) {
		size_t i = 0;
		while (i < count && strcmp(params[i].name, item->string) != 0) {
			i++;
		}
		if (i == count) {
			return item->string;
		}
		if (!cJSON_IsNull(item)) {
			if (!value_read(item, &params[i], &values[i])) {
				return params[i].name;
			}
			values[i].present = true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (params[i].required && !values[i].present) {
			return params[i].name;
		}
	}
	return NULL;
}

static const struct api_method *method_find(const struct api_methods *methods, const char *name)
{
	for (size_t i = 0; i < methods->count; i++) {
		if (strcmp(methods->row[i].name, name) == 0) {
			return &methods->row[i];
		}
	}
	return NULL;
}

/* No such method: is it the interface that is unknown? */
static enum api_result method_unknown(struct json *out, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t length = dot ? (size_t)(dot - name) : strlen(name);
	bool known = (length == strlen(PROTO_INTERFACE_NAME) &&
			     strncmp(name, PROTO_INTERFACE_NAME, length) == 0) ||
		     (length + 1 == strlen(SERVICE) && strncmp(name, SERVICE, length) == 0);
	if (known) {
		return reply_service_error(out, SERVICE "MethodNotFound", "method", name);
	}
	reply_error(out, SERVICE "InterfaceNotFound");
	json_string_cut(out, "interface", name, length < 256 ? length : 256);
	return API_LAST;
}

static enum api_result call_run(
	struct api_call *call, const struct api_method *method, const struct cJSON *parameters)
{
	size_t count = 0;
	while (count < PARAMS_MAX && method->params[count].name) {
		count++;
	}
	const char *bad = params_read(parameters, method->params, count, call->value);
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	if ((method->flags & METHOD_NEEDS_MORE) != 0 && !call->more) {
		reply_error(call->out, SERVICE "ExpectedMore");
		return API_LAST;
	}
	if ((method->flags & METHOD_ADMIN) != 0 && !call_permitted(call)) {
		return call_not_permitted(call);
	}
	const struct api_options *options = &call->api->options;
	if ((method->flags & METHOD_FRESH) != 0 && options->refresh) {
		options->refresh(options->ctx, call->now_ns);
	}
	return method->function(call);
}

/* An optional bool of the envelope. False when it is something else. */
static bool envelope_bool(const struct cJSON *message, const char *name, bool *ret)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(message, name);
	*ret = cJSON_IsTrue(item);
	return !item || cJSON_IsBool(item) || cJSON_IsNull(item);
}

static int call_message(
	struct api_connection *connection, const struct cJSON *message, const char **reason)
{
	struct api *api = connection->api;
	const char *name =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "method"));
	bool more, oneway, upgrade;
	if (!name) {
		*reason = "a message without a method";
		return -EBADMSG;
	}
	if (!envelope_bool(message, "more", &more) || !envelope_bool(message, "oneway", &oneway) ||
		!envelope_bool(message, "upgrade", &upgrade)) {
		*reason = "a flag that is not a boolean";
		return -EBADMSG;
	}
	api->core->counters->api_calls++;
	struct api_call call = {
		.api = api,
		.connection = connection,
		.core = api->core,
		.method = name,
		.more = more && !oneway,
		.now_ns = sysops()->now_ns(),
		.out = &api->out,
	};
	reply_begin(call.out);
	const struct api_method *method = method_find(api->options.methods, name);
	const struct cJSON *parameters = cJSON_GetObjectItemCaseSensitive(message, "parameters");
	if (oneway) {
		if (method && (method->flags & METHOD_CHANGES) != 0) {
			call_run(&call, method, parameters);
		}
		return 0;
	}
	enum api_result result;
	if (!method) {
		result = method_unknown(call.out, name);
	} else if (upgrade) {
		result = reply_service_error(
			call.out, SERVICE "MethodNotImplemented", "method", name);
	} else {
		result = call_run(&call, method, parameters);
	}
	if (result == API_LAST || result == API_CHUNK) {
		queue_reply(connection, result == API_CHUNK);
	} /* else the stream answers when it runs */
	return 0;
}

int dispatch_frame(
	struct api_connection *connection, const char *text, size_t length, const char **reason)
{
	struct cJSON *message;
	int r = proto_json_parse(text, length, &message, reason);
	if (r < 0) {
		return r;
	}
	r = call_message(connection, message, reason);
	cJSON_Delete(message);
	return r;
}
