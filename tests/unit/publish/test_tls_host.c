/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS context is complete or there is none; and when a connection is encrypted at all. */
#include "proto/tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static int make(const char *host, const char *ca_file)
{
	const struct proto_broker broker = {
		.host = host, .ca_file = ca_file, .cert_file = "", .key_file = ""};
	SSL_CTX *context = NULL;
	int r = proto_broker_context(&broker, &context);
	ck_assert_int_eq(context != NULL, r == 0);
	SSL_CTX_free(context);
	return r;
}

START_TEST(a_name_and_an_address_are_hosts)
{
	ck_assert_int_eq(make("broker.example", ""), 0);
	ck_assert_int_eq(make("10.0.0.1", ""), 0);
	ck_assert_int_eq(make("fe80::1", ""), 0);
}
END_TEST

START_TEST(a_file_that_is_none_is_enoent)
{
	ck_assert_int_eq(make("broker.example", "/dev/null"), -ENOENT);
	ck_assert_int_eq(make("broker.example", "/nowhere/ca.pem"), -ENOENT);
}
END_TEST

START_TEST(the_common_name_and_parts_of_a_label_are_never_compared)
{
	const struct proto_broker broker = {
		.host = "broker.example", .ca_file = "", .cert_file = "", .key_file = ""};
	SSL_CTX *context = NULL;
	ck_assert_int_eq(proto_broker_context(&broker, &context), 0);
	ck_assert_uint_eq(X509_VERIFY_PARAM_get_hostflags(SSL_CTX_get0_param(context)),
		X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	ck_assert_int_eq(SSL_CTX_get_verify_mode(context), SSL_VERIFY_PEER);
	ck_assert_int_eq(SSL_CTX_get_min_proto_version(context), TLS1_2_VERSION);
	SSL_CTX_free(context);
}
END_TEST

static const struct {
	struct proto_broker broker;
	bool encrypted;
	int port;
	bool exposes;
} connections[] = {
	{{PROTO_TLS_AUTO, "10.0.0.2", 0, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "10.0.0.2", 1883, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "10.0.0.2", 8883, "", "", ""}, true, 8883, false},
	{{PROTO_TLS_AUTO, "10.0.0.2", 0, "ca.pem", "", ""}, true, 8883, false},
	{{PROTO_TLS_AUTO, "10.0.0.2", 0, "", "cert.pem", ""}, true, 8883, false},
	{{PROTO_TLS_AUTO, "10.0.0.2", 1884, "ca.pem", "", ""}, true, 1884, false},
	{{PROTO_TLS_YES, "10.0.0.2", 0, "", "", ""}, true, 8883, false},
	{{PROTO_TLS_YES, "10.0.0.2", 1883, "", "", ""}, true, 1883, false},
	{{PROTO_TLS_NO, "10.0.0.2", 0, "ca.pem", "", ""}, false, 1883, false},
	{{PROTO_TLS_NO, "10.0.0.2", 8883, "", "", ""}, false, 8883, false},
	{{PROTO_TLS_AUTO, "127.0.0.1", 0, "", "", ""}, false, 1883, false},
	{{PROTO_TLS_AUTO, "127.9.8.7", 0, "", "", ""}, false, 1883, false},
	{{PROTO_TLS_AUTO, "::1", 0, "", "", ""}, false, 1883, false},
	{{PROTO_TLS_AUTO, "LocalHost", 0, "", "", ""}, false, 1883, false},
	{{PROTO_TLS_AUTO, "128.0.0.1", 0, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "::2", 0, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "localhost.example", 0, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "127.0.0.1.example", 0, "", "", ""}, false, 1883, true},
	{{PROTO_TLS_AUTO, "broker", 0, "", "", ""}, false, 1883, true},
};

START_LOOP_TEST(a_credential_leaves_the_machine_encrypted_or_by_order, 0, COUNT(connections))
{
	const struct proto_broker *broker = &connections[_i].broker;
	ck_assert_int_eq(proto_broker_encrypted(broker), connections[_i].encrypted);
	ck_assert_int_eq(proto_broker_port(broker), connections[_i].port);
	ck_assert_int_eq(proto_broker_exposes(broker), connections[_i].exposes);
}
END_TEST
