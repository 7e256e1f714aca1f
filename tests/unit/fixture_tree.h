/*
 * A tree of device files in a temporary folder, made line by line or copied from a fixture, and one
 * collector over it without a scheduler: what the tests of collect/ and util/root stand on.
 */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/collect/collector.h"

struct tree {
	char path[256];
};

static inline void tree_make(struct tree *tree)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(tree->path, sizeof(tree->path), "%s/edgeprof-tree-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(tree->path));
}

static inline int tree_remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void tree_remove(struct tree *tree)
{
	nftw(tree->path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The file's folders are made. */
static inline void tree_write_bytes(
	const struct tree *tree, const char *path, const void *bytes, size_t length)
{
	char full[2048];
	snprintf(full, sizeof(full), "%s/%s", tree->path, path);
	for (char *p = full + strlen(tree->path) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_msg(fd >= 0, "%s", full);
	ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
	close(fd);
}

static inline void tree_write(const struct tree *tree, const char *path, const char *text)
{
	tree_write_bytes(tree, path, text, strlen(text));
}

static inline void tree_unlink(const struct tree *tree, const char *path)
{
	char full[1024];
	snprintf(full, sizeof(full), "%s/%s", tree->path, path);
	ck_assert_int_eq(unlink(full), 0);
}

/* Copies a folder of files over the tree. */
static inline void tree_overlay(const struct tree *tree, const char *from)
{
	/* nftw has no argument: a small stack of folders instead. */
	static char stack[512][512];
	size_t depth = 0;
	stack[depth++][0] = '\0';
	while (depth > 0) {
		char folder[512], full[1536];
		memcpy(folder, stack[--depth], sizeof(folder));
		snprintf(full, sizeof(full), "%s/%s", from, folder);
		DIR *dir = opendir(full);
		ck_assert_msg(dir != NULL, "%s", full);
		const struct dirent *entry;
		while ((entry = readdir(dir))) {
			char inside[1024];
			struct stat st;
			if (entry->d_name[0] == '.') {
				continue;
			}
			snprintf(inside, sizeof(inside), "%s%s%s", folder, folder[0] ? "/" : "",
				entry->d_name);
			snprintf(full, sizeof(full), "%s/%s", from, inside);
			ck_assert_int_eq(stat(full, &st), 0);
			if (S_ISDIR(st.st_mode)) {
				ck_assert_uint_lt(depth, 512);
				ck_assert_uint_lt(strlen(inside), sizeof(stack[0]));
				memcpy(stack[depth++], inside, strlen(inside) + 1);
				continue;
			}
			static char bytes[256 * 1024];
			int fd = open(full, O_RDONLY);
			ck_assert_int_ge(fd, 0);
			ssize_t n = read(fd, bytes, sizeof(bytes));
			ck_assert_int_ge(n, 0);
			close(fd);
			tree_write_bytes(tree, inside, bytes, (size_t)n);
		}
		closedir(dir);
	}
}

/* One collector over a tree. */
struct bench {
	struct core core;
	struct counters counters;
	struct processes processes;
	struct root root, real;
	struct source *source;
	struct source_options options;
	struct collector_context ctx;
	const struct collector_ops *ops;
	void *state;
	char reason[SOURCE_REASON_SIZE];
	uint64_t now_ns;
};

static inline void bench_make(struct bench *bench, const char *root, const char *collector)
{
	memset(bench, 0, sizeof(*bench));
	bench->now_ns = UINT64_C(1000000000000);
	ck_assert_int_eq(root_init(&bench->root, root), 0);
	ck_assert_int_eq(root_init(&bench->real, NULL), 0);
	ck_assert_int_eq(sources_create(&bench->core.sources), 0);
	ck_assert_int_eq(metrics_create(&bench->core.metrics), 0);
	ck_assert_int_eq(timeline_create(64, &bench->core.timeline), 0);
	bench->core.processes = &bench->processes;
	bench->core.counters = &bench->counters;
	if (collector) {
		bench->ops = collector_find(collector);
		ck_assert_ptr_nonnull(bench->ops);
		ck_assert_int_eq(
			sources_add(bench->core.sources, collector, 1000000000, &bench->source), 0);
	}
	bench->options.enabled = true;
	bench->ctx = (struct collector_context){.root = &bench->root,
		.real_root = &bench->real,
		.core = &bench->core,
		.source = bench->source,
		.options = &bench->options};
}

static inline int bench_open(struct bench *bench)
{
	bench->reason[0] = '\0';
	return bench->ops->open(&bench->ctx, &bench->state, bench->reason);
}

/* Samples one second later and commits. */
static inline int bench_sample(struct bench *bench)
{
	bench->now_ns += 1000000000;
	bench->reason[0] = '\0';
	int r = bench->ops->sample(&bench->ctx, bench->state, bench->now_ns, bench->reason);
	metrics_commit(bench->core.metrics, bench->source, bench->now_ns);
	return r;
}

static inline void bench_close(struct bench *bench)
{
	if (bench->state) {
		bench->ops->close(bench->state);
		bench->state = NULL;
	}
}

static inline void bench_finish(struct bench *bench)
{
	bench_close(bench);
	timeline_destroy(bench->core.timeline);
	metrics_destroy(bench->core.metrics);
	sources_destroy(bench->core.sources);
	root_finish(&bench->root);
	root_finish(&bench->real);
}

static inline const struct metric *bench_metric(struct bench *bench, const char *name)
{
	const struct metric *metric = metrics_find(bench->core.metrics, name);
	ck_assert_msg(metric != NULL, "no metric %s", name);
	return metric;
}

/* The value, or NAN when it is null. */
static inline double bench_value(struct bench *bench, const char *name)
{
	return bench_metric(bench, name)->value;
}

static inline void bench_expect(struct bench *bench, const char *name, double value)
{
	double is = bench_value(bench, name);
	ck_assert_msg(
		fabs(is - value) < 1e-6 * (1 + fabs(value)), "%s is %g, not %g", name, is, value);
}

static inline void bench_expect_null(struct bench *bench, const char *name, const char *reason)
{
	const struct metric *metric = bench_metric(bench, name);
	ck_assert_msg(isnan(metric->value), "%s is %g, not null", name, metric->value);
	ck_assert_msg(strcmp(metric->reason, reason) == 0, "%s: \"%s\", not \"%s\"", name,
		metric->reason, reason);
}
