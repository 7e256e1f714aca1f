/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h: reads the tree of device files: the machine's own (/) or a fixture tree (--root DIR).
 * Paths have no leading slash ("sys/class/thermal"). Under a fixture root every symbolic link is
 * resolved inside the root, and a plain file where a folder is expected that holds a relative path
 * is followed like a link (a checkout without symbolic links turns them into such files).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct root {
	int fd;			/* the folder, O_PATH */
	bool fixture;		/* links are resolved inside */
	struct root_kept *kept; /* NULL = root_borrow() keeps nothing open */
};

/* Descriptors of files that are read again and again; zeroed = none. */
struct root_kept {
	size_t count, next;
	unsigned uses;
	struct {
		int fd;
		unsigned used; /* number of its last use */
		char path[48];
	} file[24];
};
void root_kept_finish(struct root_kept *kept); /* idempotent */

/* Opens the tree. path NULL or "/" is the machine's own. 0 or -errno. Finish with root_finish. */
int root_init(struct root *root, const char *path);
void root_finish(struct root *root);

/* open(2) below the root, O_CLOEXEC|O_NONBLOCK|O_NOCTTY added. A descriptor or -errno. */
int root_open(const struct root *root, const char *path, int flags);

/* The same for one use, after which root_return() takes it back; in between nothing else is
 * borrowed. Where the root keeps descriptors it is one of those, at any offset; the least recently
 * used one is closed for another. */
int root_borrow(const struct root *root, const char *path, int flags);
/* result: of the use; after -errno the descriptor is closed. */
void root_return(const struct root *root, int fd, ssize_t result);

/* Where path leads inside the root once links are followed (no leading slash), for grouping and
 * for the names of parents. 0, -ENOENT, -ELOOP, -ENAMETOOLONG. */
int root_resolve(const struct root *root, const char *path, char *ret, size_t size);

/* Reads at most size-1 bytes of the file into buf, NUL-terminates. The length, or -errno
 * (-EFBIG when the file holds more). Opens and closes: for set-up, not for every sample. */
ssize_t root_read(const struct root *root, const char *path, char *buf, size_t size);

/* The same from a kept descriptor with one pread at offset 0: one read(), never a retry on EAGAIN.
 */
ssize_t file_read(int fd, char *buf, size_t size);

/* file_read of one integer (white space around it allowed). 0, -EBADMSG for other text, -ENODATA
 * for an empty file, or the read's -errno. */
int file_read_i64(int fd, long long *ret);

/* The names in a folder, sorted by version order (zone2 before zone10), at most max of them.
 * The count, or -errno. Each name is cut to 63 bytes; longer ones are skipped. */
struct root_name {
	char text[64];
};
int root_list(const struct root *root, const char *path, struct root_name *names, size_t max);
