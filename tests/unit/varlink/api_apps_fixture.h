/* SPDX-License-Identifier: Apache-2.0 */
/* The server of api_fixture.h, open for the length of a test, and apps on it. */
#pragma once

#include "tests/unit/varlink/api_fixture.h"

#include "proto/mapping.h"

static inline void start(void)
{
	fixture_open();
	fixture_serve();
}

static inline void end(void)
{
	fixture_close();
}

static inline struct app_process *attach(const char *name, uid_t uid)
{
	struct app_process *process = NULL;
	ck_assert_int_eq(
		apps_attach(f.core.apps, name, uid, 4711, 99, 65536, f.now_ns, &process), 0);
	return process;
}

static inline void declare(struct app_process *process, uint32_t index, const char *name,
	const char *category, uint64_t deadline_ns)
{
	struct proto_declaration declaration = {.deadline_ns = deadline_ns};
	snprintf(declaration.name, sizeof(declaration.name), "%s", name);
	snprintf(declaration.category, sizeof(declaration.category), "%s", category);
	apps_declare(f.core.apps, process, index, &declaration);
}

static inline void event(struct app_process *process, uint16_t stage, uint64_t duration_ns)
{
	struct proto_record record = {.stage = stage,
		.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = f.now_ns - duration_ns,
		.value = duration_ns,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 0, &record, f.now_ns);
}

static inline void tick(struct app_process *process, uint64_t t_ns)
{
	struct proto_record record = {.kind = PROTO_KIND_FRAME,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = t_ns,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 0, &record, f.now_ns);
}

/* covers G0.4: names, Σ stage means without `total`, max_fps */
