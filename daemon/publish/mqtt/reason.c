/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason.c: explains in words why a connection failed or ended. libmosquitto 2.0 has no text for
 * some of its codes, and reports TLS only in its log, as OpenSSL's error line: that a certificate
 * was refused, not what is wrong with it. OpenSSL itself knows.
 */
#include "daemon/publish/mqtt/reason.h"

#include <errno.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"

#define MQTT_TLS_CLOSED                                                             \
	"TLS: the broker closed the connection (a port without TLS, or it wants a " \
	"client certificate?)"

/* What OpenSSL's verification found; NULL when nothing. */
static const char *certificate_fault(const SSL *ssl)
{
	long result = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
	return result != X509_V_OK ? X509_verify_cert_error_string(result) : NULL;
}

/* "OpenSSL Error[0]: error:0A000126:SSL routines::unexpected eof while reading": the end. */
static const char *last_part(const char *line)
{
	const char *colon = strrchr(line, ':');
	return colon && colon[1] != '\0' ? colon + 1 : line;
}

void mqtt_tls_reason(void *ssl, const char *line, const char *host, char *ret, size_t size)
{
	if (!strstr(line, "OpenSSL Error")) {
		return;
	}
	const char *fault =
		strstr(line, "certificate verify failed") ? certificate_fault(ssl) : NULL;
	if (fault && strstr(fault, "mismatch")) { /* of the host name, of the address */
		snprintf(
			ret, size, "TLS: the broker's certificate is not for the host %.64s", host);
	} else if (fault) {
		snprintf(ret, size, "TLS: the broker's certificate is refused: %s", fault);
	} else if (strstr(line, "unexpected eof") || strstr(line, strerror(ECONNRESET))) {
		/* the reset overtook the alert that said why; OpenSSL 3.5 logs it */
		snprintf(ret, size, "%s", MQTT_TLS_CLOSED);
	} else if (strstr(line, "wrong version number")) {
		snprintf(ret, size, "TLS: the answer is not TLS (a port without TLS?)");
	} else if (strstr(line, " alert ")) {
		snprintf(ret, size, "TLS: the broker refused: %s", last_part(line));
	} else {
		snprintf(ret, size, "TLS: %s", last_part(line));
	}
}

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
			return closed(fault);
		}
		if (fault->error == ECONNRESET && fault->encrypted && !fault->connected) {
			return MQTT_TLS_CLOSED; /* the same before OpenSSL 3.5 */
		}
		return fault->error == 0 || fault->error == EPIPE ? closed(fault)
								  : errno_reason(fault->error);
	case MOSQ_ERR_TLS: /* nor here */
		return closed(fault);
	case MOSQ_ERR_EAI:
		return "the host name can't be resolved";
	case MOSQ_ERR_KEEPALIVE:
		return "the broker did not answer";
	case MOSQ_ERR_CONN_LOST:
		return closed(fault);
	case MOSQ_ERR_MALFORMED_PACKET:
		return "the broker sent a malformed packet";
	default:
		return mosquitto_strerror(fault->code);
	}
}

void mqtt_reason(const struct mqtt_fault *fault, char *ret, size_t size)
{
	const char *text = fault->tls_reason[0] == '\0'			     ? text_of(fault)
			   : strcmp(fault->tls_reason, MQTT_TLS_CLOSED) == 0 ? closed(fault)
									     : fault->tls_reason;
	if (strcmp(text, mosquitto_strerror(-1000)) == 0) {
		snprintf(ret, size, "error %d of libmosquitto", fault->code);
	} else {
		snprintf(ret, size, "%s", text);
	}
}
