/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scopes.c: uses EDGEPROF_SCOPE in all ways that a program may, as C and as C++. Each name ends in
 * the number of executions that test_scopes.py expects of it.
 */
#include <stddef.h>
#include <stdio.h>
#ifdef __cplusplus
#include <edgeprof.hpp>
#else
#include <edgeprof.h>
#endif
#include <pthread.h>

static int early(int n)
{
	EDGEPROF_SCOPE("early_4");
	if (n % 2) {
		return 1;
	}
	EDGEPROF_SCOPE("late_2");
	return 0;
}

static void jumps(void)
{
	int n = 0;
again : {
	EDGEPROF_SCOPE("jump_3");
	if (++n < 3) {
		goto again;
	}
}
	for (n = 0; n < 10; n++) {
		EDGEPROF_SCOPE("loop_7");
		if (n % 2) {
			continue;
		}
		EDGEPROF_SCOPE("inner_4");
		if (n >= 4) {
			if (n == 4) {
				continue;
			}
			break;
		}
	}
}

/* Inlined where the name is known, the place is still one for both. */
static inline __attribute__((always_inline)) void varies(const char *name)
{
	EDGEPROF_SCOPE(name);
}

static void other_texts(void)
{
	static const char *const names[] = {"table_a_1", "table_b_1", "table_c_1"};
	char buffer[32];
	int i;
	varies("varies_a_1");
	varies("varies_b_2");
	varies("varies_b_2");
	for (i = 0; i < 3; i++) {
		EDGEPROF_SCOPE(names[i]);
	}
	for (i = 0; i < 3; i++) {
		snprintf(buffer, sizeof(buffer), "buffer_%c_1", 'a' + i);
		EDGEPROF_SCOPE(buffer);
	}
}

static int asked;

static int ask(int stage)
{
	asked++;
	return stage;
}

static void numbers(void)
{
	const int stage = edgeprof_stage("number_2");
	const unsigned same = (unsigned)stage;
	{
		EDGEPROF_SCOPE(ask(stage));
	}
	{
		EDGEPROF_SCOPE(same);
	}
	{
		EDGEPROF_SCOPE(-1);
	}
	{
		EDGEPROF_SCOPE("unit_1", "model", "gpu");
	}
	{
		EDGEPROF_SCOPE("category_1", "model");
	}
}

static void *thread(void *arg)
{
	int i;
	for (i = 0; i < 100; i++) {
		EDGEPROF_SCOPE("threads_400");
	}
	return arg;
}

#ifdef __cplusplus
template <class T> static void generic(T)
{
	EDGEPROF_SCOPE("template_3");
}

struct base {
	virtual ~base()
	{
		EDGEPROF_SCOPE("destructor_1");
	}
	/* defined in a class, inline */
	static void method(bool fail)
	{
		EDGEPROF_SCOPE("method_4");
		EDGEPROF_SCOPE("second_4");
		if (fail) {
			throw 1;
		}
	}
};

static void cpp()
{
	base object;
	generic(1);
	generic(2.0);
	generic('c');
	for (int i = 0; i < 4; i++) {
		try {
			base::method(i == 2);
		} catch (int) {
		}
	}
#if __cplusplus >= 201103L
	constexpr const char *name = "constant_1";
	auto lambda = [](int n) {
		EDGEPROF_SCOPE("lambda_2");
		return n;
	};
	lambda(1);
	lambda(2);
	EDGEPROF_SCOPE(name);
#endif
}
#endif

int main(void)
{
	pthread_t threads[4];
	int i;
	edgeprof_init("scopes");
	for (i = 0; i < 4; i++) {
		early(i);
		pthread_create(&threads[i], NULL, thread, NULL);
	}
	jumps();
	other_texts();
	numbers();
#ifdef __cplusplus
	cpp();
#endif
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
	}
	return asked == 1 ? 0 : 1;
}
