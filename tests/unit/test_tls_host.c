/* A TLS context is complete or there is none: without OpenSSL nobody is trusted. */
#include "proto/tls_host.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static void *library;

static void setup(void)
{
	library = dlopen("libmosquitto.so.1", RTLD_NOW);
	ck_assert_ptr_nonnull(library);
}

static void teardown(void)
{
	dlclose(library);
}

static int make(const char *host, const char *ca_file)
{
	const struct proto_tls tls = {.host = host, .ca_file = ca_file};
	void *context = NULL;
	int r = proto_tls_host(library, &tls, &context);
	ck_assert_int_eq(context != NULL, r == 0);
	proto_tls_host_free(library, context);
	return r;
}

START_TEST(a_name_and_an_address_are_hosts)
{
	ck_assert_int_eq(make("broker.example", NULL), 0);
	ck_assert_int_eq(make("10.0.0.1", NULL), 0);
	ck_assert_int_eq(make("fe80::1", NULL), 0);
}
END_TEST

START_TEST(a_file_that_is_none_is_enoent)
{
	ck_assert_int_eq(make("broker.example", "/dev/null"), -ENOENT);
	ck_assert_int_eq(make("broker.example", "/nowhere/ca.pem"), -ENOENT);
}
END_TEST

START_TEST(a_library_without_openssl_is_enotsup)
{
	const struct proto_tls tls = {.host = "broker.example"};
	void *context = NULL, *other = dlopen("libm.so.6", RTLD_NOW);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(proto_tls_host(other, &tls, &context), -ENOTSUP);
	ck_assert_ptr_null(context);
	proto_tls_host_free(other, NULL);
	dlclose(other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tls_host");
	TCase *tests = tcase_create("tls_host");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_name_and_an_address_are_hosts);
	tcase_add_test(tests, a_file_that_is_none_is_enoent);
	tcase_add_test(tests, a_library_without_openssl_is_enotsup);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
