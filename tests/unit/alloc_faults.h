/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_faults.h: replaces calloc by one that counts its calls and can fail the n-th of them.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

/* Calls since alloc_faults_start. */
static size_t alloc_calls;
/* The call that fails, counted from 1; 0 = none. */
static size_t alloc_fail_at;

static inline void *alloc_faults_calloc(size_t count, size_t size)
{
	alloc_calls++;
	return alloc_calls == alloc_fail_at ? NULL : calloc(count, size);
}

static inline void alloc_faults_start(size_t fail_at)
{
	static struct sysops table;
	sysops_replace(NULL);
	table = *sysops();
	table.calloc = alloc_faults_calloc;
	alloc_calls = 0;
	alloc_fail_at = fail_at;
	sysops_replace(&table);
}

static inline void alloc_faults_stop(void)
{
	sysops_replace(NULL);
	alloc_fail_at = 0;
}
