/* Constants are those of openssl/x509_vfy.h and x509v3.h, fixed by its ABI. */
#include "proto/tls_host.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

enum { NO_PARTIAL_WILDCARDS = 0x4, NEVER_CHECK_SUBJECT = 0x20 };

struct openssl {
	const void *(*client_method)(void);
	void *(*new_context)(const void *method);
	void (*free_context)(void *context);
	void *(*param)(void *context);
	int (*system_paths)(void *context);
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
		{"SSL_CTX_get0_param", &ret->param},
		{"SSL_CTX_set_default_verify_paths", &ret->system_paths},
		{"X509_VERIFY_PARAM_set_hostflags", &ret->set_flags},
		{"X509_VERIFY_PARAM_set1_host", &ret->set_host},
		{"X509_VERIFY_PARAM_set1_ip_asc", &ret->set_address},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		/* As POSIX shows it: C has no cast from an object pointer to a function. */
		void *symbol = dlsym(library, wanted[i].name);
		if (!symbol) {
			return -ENOTSUP;
		}
		*(void **)wanted[i].to = symbol;
	}
	return 0;
}

static int is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

int proto_tls_host(void *library, const char *host, int trust_system, void **ret)
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
	void *param = openssl.param(context);
	openssl.set_flags(param, NO_PARTIAL_WILDCARDS | NEVER_CHECK_SUBJECT);
	int set = is_address(host) ? openssl.set_address(param, host)
				   : openssl.set_host(param, host, 0);
	if (set != 1 || (trust_system && openssl.system_paths(context) != 1)) {
		openssl.free_context(context);
		return -EINVAL;
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

const char *proto_tls_folder(void *library)
{
	const char *(*folder)(void) = NULL;
	*(void **)&folder = dlsym(library, "X509_get_default_cert_dir");
	return folder ? folder() : NULL;
}
