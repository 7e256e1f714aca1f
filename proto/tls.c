/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c: reads the list of brokers, applies the setting `tls` to a broker, sets up OpenSSL for it,
 * and has the broker's name verified. */
#include "proto/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

int proto_tls_mode_parse(const char *text, enum proto_tls_mode *ret)
{
	static const char *const names[] = {
		[PROTO_TLS_AUTO] = "auto", [PROTO_TLS_YES] = "yes", [PROTO_TLS_NO] = "no"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum proto_tls_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool proto_broker_encrypted(const struct proto_broker *broker)
{
	switch (broker->tls) {
	case PROTO_TLS_YES:
		return true;
	case PROTO_TLS_NO:
		return false;
	case PROTO_TLS_AUTO:
		break;
	}
	return broker->port == PROTO_MQTTS_PORT || broker->ca_file[0] != '\0' ||
	       broker->cert_file[0] != '\0';
}

int proto_broker_port(const struct proto_broker *broker)
{
	int usual = proto_broker_encrypted(broker) ? PROTO_MQTTS_PORT : PROTO_MQTT_PORT;
	return broker->port > 0 ? broker->port : usual;
}

static int port_parse(const char *text)
{
	const size_t digits = strspn(text, "0123456789");
	const long port = digits > 0 && digits < 6 && text[digits] == '\0' ? atol(text) : 0;
	return port <= 65535 ? (int)port : 0;
}

/* NULL, or what is wrong. entry is overwritten. */
static const char *address_parse(char *entry, struct proto_address *ret)
{
	char *colon = strrchr(entry, ':'), *host = entry;
	if (entry[0] == '[') {
		char *end = strchr(entry, ']');
		if (!end || (end[1] != '\0' && end[1] != ':')) {
			return "expected [ADDRESS] or [ADDRESS]:PORT";
		}
		host++;
		colon = end[1] == ':' ? end + 1 : NULL;
		*end = '\0';
	} else if (colon && strchr(entry, ':') != colon) {
		colon = NULL; /* an IPv6 address */
	}
	ret->port = 0;
	if (colon) {
		ret->port = port_parse(colon + 1);
		*colon = '\0';
		if (ret->port == 0) {
			return "the port is not 1 to 65535";
		}
	}
	const size_t length = strlen(host);
	if (length == 0 || length >= sizeof(ret->host) || strpbrk(host, " \t/[]")) {
		return "expected a host name or an address";
	}
	memcpy(ret->host, host, length + 1);
	return NULL;
}

int proto_brokers_parse(
	const char *text, struct proto_address ret[PROTO_BROKERS_MAX], char *error, size_t size)
{
	static const char space[] = " \t";
	int count = 0;
	for (const char *next = text; next; count++) {
		const char *entry = next + strspn(next, space);
		size_t length = strcspn(entry, ",");
		next = entry[length] == ',' ? entry + length + 1 : NULL;
		while (length > 0 && strchr(space, entry[length - 1])) {
			length--;
		}
		char copy[PROTO_HOST_SIZE + sizeof("[]:65535")];
		snprintf(copy, sizeof(copy), "%.*s", (int)length, entry);
		const char *wrong = count == PROTO_BROKERS_MAX ? "more than 8 brokers"
				    : length >= sizeof(copy)   ? "too long"
							       : address_parse(copy, &ret[count]);
		if (wrong) {
			snprintf(error, size, "'%.*s': %s", (int)length, entry, wrong);
			return -EINVAL;
		}
	}
	return count;
}

static bool is_loopback(const char *host)
{
	struct in_addr address;
	struct in6_addr address6;
	if (inet_pton(AF_INET, host, &address) == 1) {
		return ntohl(address.s_addr) >> 24 == 127;
	}
	if (inet_pton(AF_INET6, host, &address6) == 1) {
		return IN6_IS_ADDR_LOOPBACK(&address6);
	}
	return strcasecmp(host, "localhost") == 0;
}

bool proto_broker_exposes(const struct proto_broker *broker)
{
	return broker->tls != PROTO_TLS_NO && !proto_broker_encrypted(broker) &&
	       !is_loopback(broker->host);
}

static bool is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* A key with a passphrase can't be used; OpenSSL would ask for it at the terminal. */
static int no_password(char *to, int size, int writing, void *ctx)
{
	(void)to;
	(void)size;
	(void)writing;
	(void)ctx;
	return 0;
}

/* OpenSSL would wait for who writes to a FIFO. */
static bool is_usable(const char *path)
{
	struct stat st;
	return path[0] == '\0' || (stat(path, &st) == 0 && S_ISREG(st.st_mode));
}

static int load_files(const struct proto_broker *broker, SSL_CTX *context)
{
	if (!is_usable(broker->ca_file) || !is_usable(broker->cert_file) ||
		!is_usable(broker->key_file)) {
		return -ENOENT;
	}
	SSL_CTX_set_default_passwd_cb(context, no_password);
	int fine = broker->ca_file[0] != '\0'
			   ? SSL_CTX_load_verify_locations(context, broker->ca_file, NULL)
			   : SSL_CTX_set_default_verify_paths(context);
	if (fine == 1 && broker->cert_file[0] != '\0') {
		fine = SSL_CTX_use_certificate_chain_file(context, broker->cert_file);
	}
	if (fine == 1 && broker->key_file[0] != '\0') { /* checked against the certificate */
		fine = SSL_CTX_use_PrivateKey_file(context, broker->key_file, SSL_FILETYPE_PEM);
	}
	return fine == 1 ? 0 : -ENOENT;
}

static int demand_host(const char *host, SSL_CTX *context)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	int fine = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(param, host)
				    : X509_VERIFY_PARAM_set1_host(param, host, 0);
	return fine == 1 ? 0 : -EINVAL;
}

int proto_broker_context(const struct proto_broker *broker, SSL_CTX **ret)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	if (!context) {
		return -ENOMEM;
	}
	int r = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 ? 0 : -ENOMEM;
	r = r < 0 ? r : demand_host(broker->host, context);
	r = r < 0 ? r : load_files(broker, context);
	if (r < 0) {
		SSL_CTX_free(context);
		return r;
	}
	*ret = context;
	return 0;
}
