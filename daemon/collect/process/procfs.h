/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.h: reads and parses proc(5). Parsing is pure; reading opens and closes, because
 * descriptors of processes are not kept open, unless the root keeps them: the daemon's own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/util/root.h"

enum {
	PROC_COMM_SIZE = 80,
	PROC_KERNEL_THREAD = 0x00200000, /* of flags: PF_KTHREAD of include/linux/sched.h */
};

struct proc_stat {
	char comm[PROC_COMM_SIZE]; /* any bytes; longer than 15 for kernel threads */
	char state;
	uint64_t flags;
	uint64_t minor_faults, major_faults;
	uint64_t user_ticks, system_ticks;
	uint64_t child_ticks; /* of children that it has waited for */
	uint64_t threads;
	uint64_t start_ticks;
	uint64_t vms_bytes, rss_pages; /* 0 without memory (kernel thread, zombie) */
	int priority, nice;
	/* What follows is known only when the line goes that far. */
	bool scheduling_known;
	int last_core, rt_priority, policy;
	uint64_t iodelay_ticks, guest_ticks;
};

struct proc_io {
	uint64_t read_bytes, write_bytes, cancelled_bytes; /* at the block layer */
};

struct proc_schedstat {
	uint64_t run_ns, delay_ns; /* on a processor, waiting for one */
};

struct proc_status {
	double rss_bytes, vms_bytes, peak_rss_bytes; /* NAN = no line (kernel thread, zombie) */
	uid_t uid;				     /* real; (uid_t)-1 = unknown */
	double voluntary, involuntary;		     /* switches of this thread; NAN = no line */
	char cpus[PROCESS_CPUS_SIZE];		     /* may run on; cut after a comma and "..." */
};

/* The text of stat; the name ends at the last ')', whatever is in it. 0 or -EBADMSG. */
int proc_stat_parse(const char *text, size_t length, struct proc_stat *ret);
void proc_status_parse(const char *text, struct proc_status *ret);

/* 0 or -EBADMSG. */
int proc_io_parse(const char *text, struct proc_io *ret);
int proc_schedstat_parse(const char *text, struct proc_schedstat *ret);

/* proc/<pid>/<name>, or proc/<pid>/task/<tid>/<name> of a thread (tid 0: none). */
enum { PROC_PATH_SIZE = 96 };
void proc_path(pid_t pid, pid_t tid, const char *name, char ret[PROC_PATH_SIZE]);

/* The head of that file: the length, -ENOENT when the process is gone, or another -errno. */
ssize_t proc_read(
	const struct root *root, pid_t pid, pid_t tid, const char *name, char *buf, size_t size);

/* 0, -ENOENT when the process is gone, -EBADMSG, or another -errno. */
int proc_stat_read(const struct root *root, pid_t pid, struct proc_stat *ret);
int proc_status_read(const struct root *root, pid_t pid, struct proc_status *ret);

/* The kernel shows these to those who may trace the process only. 0, -ENOENT (gone, or a kernel
 * without the file), -EACCES, -EBADMSG or another -errno. */
int proc_io_read(const struct root *root, pid_t pid, struct proc_io *ret);
int proc_pss_read(const struct root *root, pid_t pid, double *ret_bytes);
/* Open descriptors; counts at most 65536, and up to 1024 where the kernel does not (before Linux
 * 6.2): else -EFBIG. */
int proc_fds_count(const struct root *root, pid_t pid, double *ret);

/* The command line, words separated by blanks, cut to size-1; *argv0: the length of the first word.
 * The line's length (0 for kernel threads) or -errno. */
ssize_t proc_cmdline_read(
	const struct root *root, pid_t pid, char *buf, size_t size, size_t *argv0);

/* The folder proc, kept open for passes over all processes. Zeroed = not open. */
struct proc_folder {
	bool open;
	int fd;
	char buf[16 * 1024]; /* of getdents64: readdir would allocate at each pass */
};

/* Calls visit for each process, in the order of the folder. 0 or -errno of proc itself. */
typedef void proc_visit(void *ctx, const struct root *root, pid_t pid);
int proc_each(struct proc_folder *folder, const struct root *root, proc_visit *visit, void *ctx);
void proc_folder_close(struct proc_folder *folder);

/* MemTotal and MemAvailable in bytes, NAN where there is no such line. 0 or -errno. */
int proc_memory_read(const struct root *root, double *total, double *available);
/* MemTotal in bytes; NAN when it cannot be read. */
double proc_memory_total(const struct root *root);
