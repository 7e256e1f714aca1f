/* The files of a process beside stat and status: io, schedstat, smaps_rollup, fd. Parsing is pure;
 * reading opens and closes. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/root.h"

struct proc_io {
	uint64_t read_bytes, write_bytes, cancelled_bytes; /* at the block layer */
};

struct proc_schedstat {
	uint64_t run_ns, delay_ns; /* on a processor, waiting for one */
};

/* 0 or -EBADMSG. */
int proc_io_parse(const char *text, struct proc_io *ret);
int proc_schedstat_parse(const char *text, struct proc_schedstat *ret);

/* 0, -ENOENT (gone, or a kernel without the file), -EACCES, -EBADMSG or another -errno. */
int proc_io_read(const struct root *root, pid_t pid, struct proc_io *ret);
int proc_pss_read(const struct root *root, pid_t pid, double *ret_bytes);
/* Open descriptors; counts at most 65536. */
int proc_fds_count(const struct root *root, pid_t pid, double *ret);
