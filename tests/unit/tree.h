/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of device files in a temporary folder, made line by line or copied from a fixture. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

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

/* The path below the tree; the folders above it are made. */
static inline void tree_full(const struct tree *tree, const char *path, char *full, size_t size)
{
	snprintf(full, size, "%s/%s", tree->path, path);
	for (char *p = full + strlen(tree->path) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
}

/* The file's folders are made. */
static inline void tree_write_bytes(
	const struct tree *tree, const char *path, const void *bytes, size_t length)
{
	char full[2048];
	tree_full(tree, path, full, sizeof(full));
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

/* The folders above it are made. */
static inline void tree_link(const struct tree *tree, const char *path, const char *target)
{
	char full[2048];
	tree_full(tree, path, full, sizeof(full));
	unlink(full);
	ck_assert_msg(symlink(target, full) == 0, "%s", full);
}

static inline void tree_copy_link(const struct tree *tree, const char *path, const char *from)
{
	char target[1024];
	ssize_t n = readlink(from, target, sizeof(target) - 1);
	ck_assert_int_gt(n, 0);
	target[n] = '\0';
	tree_link(tree, path, target);
}

/* Copies a folder of files and links over the tree. */
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
			/* a link stays one: those of a real sysfs lead round in circles */
			ck_assert_int_eq(lstat(full, &st), 0);
			if (S_ISLNK(st.st_mode)) {
				tree_copy_link(tree, inside, full);
				continue;
			}
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
