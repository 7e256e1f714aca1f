/* SPDX-License-Identifier: Apache-2.0 */
/* service.c: answers the methods of org.varlink.service. */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"
#include "proto/varlink.h"

static const char service_name[] = "org.varlink.service";

/* The text of the Varlink specification's service interface. */
static const char service_interface[] =
	"# The Varlink Service Interface is provided by every varlink service. It\n"
	"# describes the service and the interfaces it implements.\n"
	"interface org.varlink.service\n"
	"\n"
	"# Get a list of all the interfaces a service provides and information\n"
	"# about the implementation.\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"\n"
	"# Get the description of an interface that is implemented by this service.\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"# The requested interface was not found.\n"
	"error InterfaceNotFound (interface: string)\n"
	"\n"
	"# The requested method was not found\n"
	"error MethodNotFound (method: string)\n"
	"\n"
	"# The interface defines the requested method, but the service does not\n"
	"# implement it.\n"
	"error MethodNotImplemented (method: string)\n"
	"\n"
	"# One of the passed parameters is invalid.\n"
	"error InvalidParameter (parameter: string)\n"
	"\n"
	"# Client is denied access\n"
	"error PermissionDenied ()\n"
	"\n"
	"# Method is expected to be called with 'more' set to true, but wasn't\n"
	"error ExpectedMore ()\n";

enum api_result method_get_info(struct api_call *call)
{
	json_string(call->out, "vendor", "edgeprof");
	json_string(call->out, "product", "edgeprofd");
	json_string(call->out, "version", call->core->facts->version);
	json_string(call->out, "url", "urn:io.edgeprof");
	json_open(call->out, "interfaces", '[');
	json_string(call->out, NULL, service_name);
	json_string(call->out, NULL, PROTO_INTERFACE_NAME);
	json_close(call->out, ']');
	return API_LAST;
}

static enum api_result own_description(struct json *out)
{
	char *text = mem_zalloc(proto_interface_size);
	if (!text) {
		return reply_limit(out, "memory", 0);
	}
	proto_interface(text);
	json_string(out, "description", text);
	free(text);
	return API_LAST;
}

enum api_result method_get_interface_description(struct api_call *call)
{
	const char *name = call->value[0].string;
	if (strcmp(name, PROTO_INTERFACE_NAME) == 0) {
		return own_description(call->out);
	}
	if (strcmp(name, service_name) != 0) {
		return reply_service_error(
			call->out, "org.varlink.service.InterfaceNotFound", "interface", name);
	}
	json_string(call->out, "description", service_interface);
	return API_LAST;
}
