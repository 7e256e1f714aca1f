/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a configuration in it, and what was read from there. */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "tests/unit/unit.h"

static struct config config;
static struct config_errors errors;
static char dir[64];

static inline void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-config.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static inline void remove_file(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
	rmdir(path);
}

static inline void teardown(void)
{
	static const char *const names[] = {
		"conf.d/10-a.conf", "conf.d/20-b.conf", "conf.d/ignored.txt", "conf.d", "conf"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		remove_file(names[i]);
	}
	rmdir(dir);
}

static inline const char *write_file(const char *name, const char *text)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static inline int load(const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s", write_file("conf", text));
	return config_load(path, &config, &errors);
}
