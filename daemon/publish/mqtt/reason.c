/* libmosquitto has no text for some of its own codes. */
#include "daemon/publish/mqtt/reason.h"

#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/publish/mqtt/tls.h"

static const char *closed(const struct mqtt_fault *fault)
{
	if (fault->connected) {
		return "the broker closed the connection";
	}
	return fault->encrypted ? MQTT_TLS_CLOSED
				: "the broker closed the connection without an answer (does the "
				  "port expect TLS?)";
}

static const char *text_of(const struct mqtt_fault *fault)
{
	switch (fault->code) {
	case MOSQ_ERR_ERRNO:
		if (fault->error == EPROTO) { /* OpenSSL had nothing to say */
			return MQTT_TLS_CLOSED;
		}
		return fault->error == 0 || fault->error == EPIPE ? closed(fault)
								  : errno_reason(fault->error);
	case MOSQ_ERR_EAI:
		return "the host name can't be resolved";
	case MOSQ_ERR_KEEPALIVE:
		return "the broker did not answer";
	case MOSQ_ERR_CONN_LOST:
		return closed(fault);
	default:
		return mosquitto_strerror(fault->code);
	}
}

void mqtt_reason(const struct mqtt_fault *fault, char *ret, size_t size)
{
	const char *text = fault->tls_reason[0] != '\0' ? fault->tls_reason : text_of(fault);
	if (strcmp(text, mosquitto_strerror(-1000)) == 0) {
		snprintf(ret, size, "error %d of libmosquitto", fault->code);
	} else {
		snprintf(ret, size, "%s", text);
	}
}
