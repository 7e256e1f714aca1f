/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.c: answers ListSources, SetSource and Reload: what is sampled, and requests to change it.
 */
#include <errno.h>
#include <string.h>

#include "daemon/core/metrics/sources.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

enum { SOURCE_NAME, SOURCE_ENABLED, SOURCE_INTERVAL };

enum api_result method_list_sources(struct api_call *call)
{
	const struct source *source;
	json_open(call->out, "sources", '[');
	for (size_t i = 0; (source = sources_at(call->core->sources, i)); i++) {
		row_source(call->out, NULL, source, call->now_ns);
	}
	json_close(call->out, ']');
	return API_LAST;
}

enum api_result method_set_source(struct api_call *call)
{
	const struct value *value = call->value;
	struct source *source = sources_find(call->core->sources, value[SOURCE_NAME].string);
	if (!source) {
		return reply_not_found(call->out, "source", value[SOURCE_NAME].string);
	}
	uint64_t interval_ns = (uint64_t)(value[SOURCE_INTERVAL].number * 1e6);
	bool wanted =
		value[SOURCE_ENABLED].present ? value[SOURCE_ENABLED].boolean : source->wanted;
	if (value[SOURCE_ENABLED].present || interval_ns != 0) {
		source_request(source, wanted, interval_ns);
	}
	row_source(call->out, "source", source, call->now_ns);
	return API_LAST;
}

enum api_result method_reload(struct api_call *call)
{
	const struct api_options *options = &call->api->options;
	if (!options->reload) {
		return reply_service_error(call->out, "org.varlink.service.MethodNotImplemented",
			"method", call->method);
	}
	char text[1024] = "";
	int r = options->reload(options->ctx, text, sizeof(text));
	if (r < 0) {
		reply_error(call->out, PROTO_INTERFACE_NAME ".ReloadFailed");
		json_string(call->out, "text", text[0] != '\0' ? text : strerror(-r));
	}
	return API_LAST;
}
