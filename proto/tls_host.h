/*
 * A TLS context that accepts a broker's certificate only for the host that was asked for.
 * libmosquitto 2.0 looks at the subject's common name, too, when no alternative name is a DNS name:
 * a certificate for 10.0.0.2 whose common name says 10.0.0.1 passes for 10.0.0.1. RFC 9525 and
 * browsers ignore the common name, and so does this. OpenSSL is called by name in what is loaded
 * already (libmosquitto brought it): nothing is linked.
 */
#pragma once

/* library: where to look, of dlopen(3); RTLD_DEFAULT: the whole program. An SSL_CTX for
 * MOSQ_OPT_SSL_CTX with MOSQ_OPT_SSL_CTX_WITH_DEFAULTS; trust_system: the system's authorities are
 * trusted. -ENOTSUP: no OpenSSL here, -EINVAL: host is no name, -ENOMEM. */
int proto_tls_host(void *library, const char *host, int trust_system, void **ret);

/* After libmosquitto has its own reference, or NULL. */
void proto_tls_host_free(void *library, void *context);

/* The folder of the system's authorities; NULL without OpenSSL. */
const char *proto_tls_folder(void *library);
