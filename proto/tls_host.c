/* Constants are those of openssl/ssl.h, x509_vfy.h and x509v3.h, fixed by its ABI. */
#include "proto/tls_host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	NO_PARTIAL_WILDCARDS = 0x4,
	NEVER_CHECK_SUBJECT = 0x20,
	VERIFY_PEER = 1,
	FILETYPE_PEM = 1,
	SET_MIN_PROTO_VERSION = 123,
	TLS_1_2 = 0x0303,
};

struct openssl {
	const void *(*client_method)(void);
	void *(*new_context)(const void *method);
	void (*free_context)(void *context);
	long (*control)(void *context, int command, long number, void *pointer);
	void (*set_verify)(void *context, int mode, int (*callback)(int, void *));
	void (*set_password)(void *context, int (*callback)(char *, int, int, void *));
	int (*system_authorities)(void *context);
	int (*authorities)(void *context, const char *file, const char *folder);
	int (*certificate)(void *context, const char *file);
	int (*key)(void *context, const char *file, int type);
	void *(*param)(void *context);
	void (*set_flags)(void *param, unsigned flags);
	int (*set_host)(void *param, const char *name, size_t length);
	int (*set_address)(void *param, const char *address);
};

static int find_all(void *library, struct openssl *ret)
{
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"TLS_client_method", &ret->client_method},
		{"SSL_CTX_new", &ret->new_context},
		{"SSL_CTX_free", &ret->free_context},
		{"SSL_CTX_ctrl", &ret->control},
		{"SSL_CTX_set_verify", &ret->set_verify},
		{"SSL_CTX_set_default_passwd_cb", &ret->set_password},
		{"SSL_CTX_set_default_verify_paths", &ret->system_authorities},
		{"SSL_CTX_load_verify_locations", &ret->authorities},
		{"SSL_CTX_use_certificate_chain_file", &ret->certificate},
		{"SSL_CTX_use_PrivateKey_file", &ret->key},
		{"SSL_CTX_get0_param", &ret->param},
		{"X509_VERIFY_PARAM_set_hostflags", &ret->set_flags},
		{"X509_VERIFY_PARAM_set1_host", &ret->set_host},
		{"X509_VERIFY_PARAM_set1_ip_asc", &ret->set_address},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = dlsym(library, wanted[i].name);
		if (!symbol) {
			return -ENOTSUP;
		}
		/* As POSIX shows it: C has no cast from an object pointer to a function. */
		*(void **)wanted[i].to = symbol;
	}
	return 0;
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

static int load_files(const struct openssl *openssl, const struct proto_tls *tls, void *context)
{
	openssl->set_password(context, no_password);
	int fine = tls->ca_file ? openssl->authorities(context, tls->ca_file, NULL)
				: openssl->system_authorities(context);
	if (fine == 1 && tls->cert_file) {
		fine = openssl->certificate(context, tls->cert_file);
	}
	if (fine == 1 && tls->key_file) { /* it is checked against the certificate */
		fine = openssl->key(context, tls->key_file, FILETYPE_PEM);
	}
	return fine == 1 ? 0 : -ENOENT;
}

static int demand_host(const struct openssl *openssl, const char *host, void *context)
{
	void *param = openssl->param(context);
	openssl->set_verify(context, VERIFY_PEER, NULL);
	openssl->set_flags(param, NO_PARTIAL_WILDCARDS | NEVER_CHECK_SUBJECT);
	int fine = is_address(host) ? openssl->set_address(param, host)
				    : openssl->set_host(param, host, 0);
	return fine == 1 ? 0 : -EINVAL;
}

int proto_tls_host(void *library, const struct proto_tls *tls, void **ret)
{
	struct openssl openssl;
	int r = find_all(library, &openssl);
	if (r < 0) {
		return r;
	}
	void *context = openssl.new_context(openssl.client_method());
	if (!context) {
		return -ENOMEM;
	}
	openssl.control(context, SET_MIN_PROTO_VERSION, TLS_1_2, NULL);
	r = demand_host(&openssl, tls->host, context);
	if (r == 0) {
		r = load_files(&openssl, tls, context);
	}
	if (r < 0) {
		openssl.free_context(context);
		return r;
	}
	*ret = context;
	return 0;
}

void proto_tls_host_free(void *library, void *context)
{
	void (*free_context)(void *) = NULL;
	*(void **)&free_context = context ? dlsym(library, "SSL_CTX_free") : NULL;
	if (free_context) {
		free_context(context);
	}
}
