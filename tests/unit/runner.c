/* SPDX-License-Identifier: Apache-2.0 */
/* runner.c: runs the unit tests that unit.h registered in this program.
 *
 * Without options it runs all modules; with --case one of them, and with --test one function of it.
 * Anything else is refused: a test that executes this program again to become another one would
 * otherwise start all tests, and so on without end, where its argv[0] gets lost on the way.
 * Tests of ../shared run only with --shared, and then alone. Exits with 77 when nothing was run but
 * something was skipped. CK_FORK=no, CK_VERBOSITY and the other variables of libcheck work as
 * usual. The functions whose names $EDGEPROF_WITHOUT lists, separated by blanks, run only with
 * --test. */
#include "tests/unit/unit.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/shared.h"

enum { SKIP = 77, USAGE = 64 };

struct request {
	const char *module, *test;
	bool shared, list;
};

static struct unit_entry *registered;

/* tests/unit/FOLDER/test_NAME.c is the module NAME. libcheck keeps pointers to it. */
static void name_module(struct unit_entry *entry)
{
	const char *base = strrchr(entry->file, '/') ? strrchr(entry->file, '/') + 1 : entry->file;
	base += strncmp(base, "test_", 5) == 0 ? 5 : 0;
	snprintf(entry->module, sizeof(entry->module), "%.*s", (int)strcspn(base, "."), base);
}

void unit_register(struct unit_entry *entry)
{
	name_module(entry);
	entry->next = registered;
	registered = entry;
}

static int by_file_and_line(const void *a, const void *b)
{
	const struct unit_entry *left = *(struct unit_entry *const *)a,
				*right = *(struct unit_entry *const *)b;
	int order = strcmp(left->file, right->file);
	return order ? order : (left->line > right->line) - (left->line < right->line);
}

/* All entries in the order of files and lines, ended by NULL. */
static struct unit_entry **sorted(void)
{
	size_t count = 0, at = 0;
	for (struct unit_entry *entry = registered; entry; entry = entry->next) {
		count++;
	}
	struct unit_entry **entries = calloc(count + 1, sizeof(struct unit_entry *));
	if (!entries) {
		abort();
	}
	for (struct unit_entry *entry = registered; entry; entry = entry->next) {
		entries[at++] = entry;
	}
	qsort(entries, count, sizeof(*entries), by_file_and_line);
	return entries;
}

/* False, with the reason on stdout, when the module cannot run here. */
static bool can_run(struct unit_entry **entries, size_t count, const char *module)
{
	for (size_t i = 0; i < count; i++) {
		if (entries[i]->kind == UNIT_CONDITION && !entries[i]->condition()) {
			printf("%s: skipped: %s\n", module, entries[i]->reason);
			return false;
		}
	}
	return true;
}

static void list_tests(struct unit_entry **entries, size_t count, const char *module)
{
	bool shared = false;
	for (size_t i = 0; i < count; i++) {
		shared |= entries[i]->kind == UNIT_SHARED;
		if (entries[i]->kind == UNIT_TEST) {
			printf("%s%s %s\n", module, shared ? " --shared" : "",
				entries[i]->test->name);
		}
	}
}

/* Whether the names in $EDGEPROF_WITHOUT have this one. */
static bool is_left_out(const char *name)
{
	const char *names = getenv("EDGEPROF_WITHOUT");
	size_t length = strlen(name);
	for (const char *p = names; p && (p = strstr(p, name)); p += length) {
		if ((p == names || p[-1] == ' ') && (p[length] == '\0' || p[length] == ' ')) {
			return true;
		}
	}
	return false;
}

/* The tests of a module that were asked for, or NULL if it has none of them. */
static Suite *make_suite(struct unit_entry **entries, size_t count, const char *module,
	const struct request *request)
{
	Suite *suite = NULL;
	TCase *tcase = NULL;
	struct unit_entry none = {0}, *fixture = &none;
	int timeout = 0;
	bool shared = false;
	for (size_t i = 0; i < count; i++) {
		timeout = entries[i]->kind == UNIT_TIMEOUT ? entries[i]->to : timeout;
	}
	for (size_t i = 0; i < count; i++) {
		const struct unit_entry *entry = entries[i];
		if (entry->kind == UNIT_FIXTURE) {
			fixture = entries[i];
			tcase = NULL;
		}
		shared |= entry->kind == UNIT_SHARED;
		if (entry->kind != UNIT_TEST || shared != request->shared ||
			(request->test ? strcmp(request->test, entry->test->name) != 0
				       : is_left_out(entry->test->name))) {
			continue;
		}
		if (!suite) {
			suite = suite_create(module);
		}
		if (!tcase) {
			tcase = tcase_create(module);
			tcase_add_checked_fixture(tcase, fixture->setup, fixture->teardown);
			if (timeout) {
				tcase_set_timeout(tcase, timeout);
			}
			suite_add_tcase(suite, tcase);
		}
		_tcase_add_test(tcase, entry->test, 0, 0, entry->from, entry->to);
	}
	return suite;
}

static int run(struct unit_entry **entries, const struct request *request)
{
	SRunner *runner = srunner_create(NULL);
	int suites = 0, skipped = 0;
	for (size_t count = 0; *entries; entries += count) {
		const char *module = entries[0]->module;
		for (count = 1;
			entries[count] && strcmp(entries[count]->file, entries[0]->file) == 0;
			count++) {
		}
		if (request->module && strcmp(request->module, module) != 0) {
			continue;
		}
		if (request->list) {
			list_tests(entries, count, module);
			continue;
		}
		if (!can_run(entries, count, module)) {
			skipped++;
			continue;
		}
		Suite *suite = make_suite(entries, count, module, request);
		if (suite) {
			srunner_add_suite(runner, suite);
			suites++;
		} else if (!request->test && getenv("EDGEPROF_WITHOUT")) {
			printf("%s: skipped: EDGEPROF_WITHOUT\n", module);
			skipped++;
		}
	}
	int failed = 0;
	if (suites) {
		srunner_run_all(runner, CK_ENV);
		failed = srunner_ntests_failed(runner);
	}
	srunner_free(runner);
	if (!suites && !skipped && !request->list) {
		fprintf(stderr, "no such test; --list shows all\n");
		return USAGE;
	}
	return failed ? EXIT_FAILURE : suites || request->list ? EXIT_SUCCESS : SKIP;
}

int main(int argc, char **argv)
{
	struct unit_entry **entries = sorted();
	for (struct unit_entry **entry = entries; *entry; entry++) {
		if ((*entry)->kind == UNIT_START) {
			(*entry)->start(argv);
		}
	}
	static const struct option options[] = {{"case", required_argument, NULL, 'c'},
		{"test", required_argument, NULL, 't'}, {"shared", no_argument, NULL, 's'},
		{"list", no_argument, NULL, 'l'}, {0}};
	struct request request = {0};
	bool usable = true;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'c':
			request.module = optarg;
			break;
		case 't':
			request.test = optarg;
			break;
		case 's':
			request.shared = true;
			break;
		case 'l':
			request.list = true;
			break;
		default:
			usable = false;
		}
	}
	if (!usable || optind < argc) {
		fprintf(stderr, "usage: %s [--list] [--case MODULE] [--test NAME] [--shared]\n",
			argv[0]);
		free(entries);
		return USAGE;
	}
	if (request.shared && !shared_is_there()) {
		free(entries);
		return SKIP;
	}
	int status = run(entries, &request);
	free(entries);
	if (status == EXIT_FAILURE) {
		fflush(NULL);
		_exit(status); /* what a failed test has not freed is no leak */
	}
	return status;
}
