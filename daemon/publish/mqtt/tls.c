/* libmosquitto 2.0 reports TLS only in its log, as OpenSSL's error line: that a certificate was
 * refused, not what is wrong with it. OpenSSL itself knows. */
#include "daemon/publish/mqtt/tls.h"

#include <errno.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/publish/mqtt/link.h"
#include "daemon/publish/mqtt/secret.h"
#include "proto/tls_host.h"

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

int mqtt_authenticate(
	struct mosquitto *mosq, const struct mqtt_link *link, char *reason, size_t size)
{
	if (link->username[0] == '\0') {
		return 0;
	}
	char password[512] = "";
	if (link->password_file[0] != '\0') {
		int r = secret_read(link->password_file, password, sizeof(password));
		if (r < 0) {
			snprintf(reason, size, "password file: %s",
				r == -EPERM ? "others may read it" : errno_reason(r));
			return MOSQ_ERR_AUTH;
		}
	}
	int code = mosquitto_username_pw_set(mosq, link->username, password[0] ? password : NULL);
	explicit_bzero(password, sizeof(password));
	return code;
}

static const char *context_fault(int r)
{
	switch (r) {
	case -ENOENT:
		return "ca_file, cert_file or key_file can't be read";
	case -EINVAL:
		return "TLS: no certificate can hold this host name";
	default:
		return "TLS: no memory";
	}
}

int mqtt_encrypt(struct mosquitto *mosq, const struct mqtt_link *link, char *reason, size_t size)
{
	const struct proto_tls tls = {.host = link->host,
		.ca_file = or_null(link->ca_file),
		.cert_file = or_null(link->cert_file),
		.key_file = or_null(link->key_file)};
	SSL_CTX *context;
	if (!link->encrypted) {
		return 0;
	}
	int r = proto_tls_host(&tls, &context);
	if (r < 0) {
		snprintf(reason, size, "%s", context_fault(r));
		return MOSQ_ERR_TLS;
	}
	int code = mosquitto_void_option(mosq, MOSQ_OPT_SSL_CTX, context);
	SSL_CTX_free(context); /* it has its own reference */
	code = code ? code : mosquitto_int_option(mosq, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
	if (code == MOSQ_ERR_NOT_SUPPORTED) {
		snprintf(reason, size, "TLS: this libmosquitto was built without it");
	}
	return code;
}

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
	} else if (strstr(line, "unexpected eof")) {
		snprintf(ret, size, "%s", MQTT_TLS_CLOSED);
	} else if (strstr(line, "wrong version number")) {
		snprintf(ret, size, "TLS: the answer is not TLS (a port without TLS?)");
	} else if (strstr(line, " alert ")) {
		snprintf(ret, size, "TLS: the broker refused: %s", last_part(line));
	} else {
		snprintf(ret, size, "TLS: %s", last_part(line));
	}
}
