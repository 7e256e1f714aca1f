/* SPDX-License-Identifier: Apache-2.0 */
/* tls_host.c: sets up OpenSSL for a connection to a broker, and verifies the broker's name. */
#include "proto/tls_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

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

static int load_files(const struct proto_tls *tls, SSL_CTX *context)
{
	SSL_CTX_set_default_passwd_cb(context, no_password);
	int fine = tls->ca_file ? SSL_CTX_load_verify_locations(context, tls->ca_file, NULL)
				: SSL_CTX_set_default_verify_paths(context);
	if (fine == 1 && tls->cert_file) {
		fine = SSL_CTX_use_certificate_chain_file(context, tls->cert_file);
	}
	if (fine == 1 && tls->key_file) { /* it is checked against the certificate */
		fine = SSL_CTX_use_PrivateKey_file(context, tls->key_file, SSL_FILETYPE_PEM);
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

int proto_tls_host(const struct proto_tls *tls, SSL_CTX **ret)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	if (!context) {
		return -ENOMEM;
	}
	int r = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 ? 0 : -ENOMEM;
	r = r < 0 ? r : demand_host(tls->host, context);
	r = r < 0 ? r : load_files(tls, context);
	if (r < 0) {
		SSL_CTX_free(context);
		return r;
	}
	*ret = context;
	return 0;
}
