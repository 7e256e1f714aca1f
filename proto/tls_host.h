/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_host.h: makes the TLS context of a connection to a broker: trusted authorities, the host to
 * verify, our own certificate. libmosquitto 2.0 also checks the subject's common name when no
 * alternative name is a DNS name: a certificate for 10.0.0.2 whose common name says 10.0.0.1 passes
 * for 10.0.0.1. RFC 9525 and browsers ignore the common name, and so does this. libmosquitto's own
 * defaults cannot be kept in addition: with a context that is not its own, its callback refuses
 * every certificate (tried: 2.0.11).
 */
#pragma once

#include <openssl/ssl.h>

/* NULL: not used. */
struct proto_tls {
	const char *host;    /* a name or an address that the certificate must hold */
	const char *ca_file; /* NULL: the system's authorities */
	const char *cert_file, *key_file;
};

/* A context for MOSQ_OPT_SSL_CTX without MOSQ_OPT_SSL_CTX_WITH_DEFAULTS: at least TLS 1.2, the peer
 * is verified. The caller frees it with SSL_CTX_free. -EINVAL: host is not a valid name, -ENOENT: a
 * file cannot be used, -ENOMEM. */
int proto_tls_host(const struct proto_tls *tls, SSL_CTX **ret);
