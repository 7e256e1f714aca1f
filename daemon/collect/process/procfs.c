/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.c: reads and parses proc(5): stat and status of a process, its command line, io,
 * schedstat, smaps_rollup and open descriptors, and meminfo. A process may end between two reads,
 * so ENOENT and ESRCH mean the same. */
#include "daemon/collect/process/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/collect/lib/kernel_text.h"
#include "daemon/util/parse.h"
#include "proto/decimal.h"

enum { FDS_MAX = 65536, FD_NAMES_MAX = 1024 /* 1 to 4 us each */ };

/* Fields of stat that we read, by their number in proc(5); field 3 follows the name. */
enum {
	FIELD_FLAGS = 9,
	FIELD_MINOR_FAULTS = 10,
	FIELD_MAJOR_FAULTS = 12,
	FIELD_USER = 14,
	FIELD_SYSTEM = 15,
	FIELD_CHILD_USER = 16,
	FIELD_CHILD_SYSTEM = 17,
	FIELD_PRIORITY = 18,
	FIELD_NICE = 19,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_VMS = 23,
	FIELD_RSS = 24,
	FIELD_CORE = 39,
	FIELD_RT_PRIORITY = 40,
	FIELD_POLICY = 41,
	FIELD_IODELAY = 42,
	FIELD_GUEST = 43,
	FIELDS
};

struct field {
	uint64_t value;
	bool negative;
};

/* Only priorities, the terminal and the exit signal may be below 0; of all else that is 0. */
static uint64_t field_u64(const struct field *field)
{
	return field->negative ? 0 : field->value;
}

static int field_int(const struct field *field)
{
	int value = field->value < INT32_MAX ? (int)field->value : INT32_MAX;
	return field->negative ? -value : value;
}

/* Fills field[4…] as far as the line goes. The number of the last field. */
static int split_fields(const char *p, struct field field[FIELDS])
{
	int number = 4;
	for (; number < FIELDS; number++) {
		p += strspn(p, " ");
		field[number].negative = *p == '-';
		p += *p == '-';
		if (!kernel_u64(&p, &field[number].value) ||
			(*p != ' ' && *p != '\n' && *p != '\0')) {
			break;
		}
	}
	return number - 1;
}

static bool parse_fields(const char *p, struct proc_stat *stat)
{
	struct field field[FIELDS] = {0};
	int last = split_fields(p, field);
	if (last < FIELD_START) {
		return false;
	}
	stat->flags = field_u64(&field[FIELD_FLAGS]);
	stat->minor_faults = field_u64(&field[FIELD_MINOR_FAULTS]);
	stat->major_faults = field_u64(&field[FIELD_MAJOR_FAULTS]);
	stat->user_ticks = field_u64(&field[FIELD_USER]);
	stat->system_ticks = field_u64(&field[FIELD_SYSTEM]);
	stat->child_ticks =
		field_u64(&field[FIELD_CHILD_USER]) + field_u64(&field[FIELD_CHILD_SYSTEM]);
	stat->priority = field_int(&field[FIELD_PRIORITY]);
	stat->nice = field_int(&field[FIELD_NICE]);
	stat->threads = field_u64(&field[FIELD_THREADS]);
	stat->start_ticks = field_u64(&field[FIELD_START]);
	stat->vms_bytes = field_u64(&field[FIELD_VMS]);
	stat->rss_pages = field_u64(&field[FIELD_RSS]);
	stat->scheduling_known = last >= FIELD_GUEST;
	if (stat->scheduling_known) {
		stat->last_core = field_int(&field[FIELD_CORE]);
		stat->rt_priority = field_int(&field[FIELD_RT_PRIORITY]);
		stat->policy = field_int(&field[FIELD_POLICY]);
		stat->iodelay_ticks = field_u64(&field[FIELD_IODELAY]);
		stat->guest_ticks = field_u64(&field[FIELD_GUEST]);
	}
	return true;
}

int proc_stat_parse(const char *text, size_t length, struct proc_stat *ret)
{
	const char *left = memchr(text, '(', length);
	const char *right = memrchr(text, ')', length);
	if (!left || !right || right < left || (size_t)(right - text) + 3 >= length ||
		right[1] != ' ' || right[3] != ' ') {
		return -EBADMSG;
	}
	struct proc_stat stat = {.state = right[2]};
	size_t name = (size_t)(right - left) - 1;
	if (name >= sizeof(stat.comm)) {
		name = sizeof(stat.comm) - 1;
	}
	memcpy(stat.comm, left + 1, name);
	if (!parse_fields(right + 3, &stat)) {
		return -EBADMSG;
	}
	*ret = stat;
	return 0;
}

static void parse_count(const char *p, double *ret)
{
	uint64_t value;
	if (kernel_u64(&p, &value)) {
		*ret = (double)value;
	}
}

static void parse_cpus(const char *p, char cpus[PROCESS_CPUS_SIZE])
{
	static const char more[] = ",...";
	p += strspn(p, " \t");
	size_t length = strspn(p, "0123456789,-");
	bool cut = length >= PROCESS_CPUS_SIZE;
	length = cut ? PROCESS_CPUS_SIZE - sizeof(more) : length;
	memcpy(cpus, p, length);
	cpus[length] = '\0';
	char *comma = cut ? strrchr(cpus, ',') : NULL;
	if (cut) {
		memcpy(comma ? comma : cpus, more, sizeof(more));
	}
}

/* What follows key in the line, or NULL. */
static const char *behind(const char *line, const char *key)
{
	size_t length = strlen(key);
	return strncmp(line, key, length) == 0 ? line + length : NULL;
}

/* One of some fifty lines. The first letter distinguishes most of them. */
static void parse_status_line(const char *line, struct proc_status *ret)
{
	const char *p;
	uint64_t uid;
	if (*line == 'V' && (p = behind(line, "VmRSS:"))) {
		(void)kernel_kib(p, &ret->rss_bytes);
	} else if (*line == 'V' && (p = behind(line, "VmSize:"))) {
		(void)kernel_kib(p, &ret->vms_bytes);
	} else if (*line == 'V' && (p = behind(line, "VmHWM:"))) {
		(void)kernel_kib(p, &ret->peak_rss_bytes);
	} else if (*line == 'U' && (p = behind(line, "Uid:"))) {
		ret->uid = kernel_u64(&p, &uid) && uid < UINT32_MAX ? (uid_t)uid : (uid_t)-1;
	} else if (*line == 'C' && (p = behind(line, "Cpus_allowed_list:"))) {
		parse_cpus(p, ret->cpus);
	} else if (*line == 'v' && (p = behind(line, "voluntary_ctxt_switches:"))) {
		parse_count(p, &ret->voluntary);
	} else if (*line == 'n' && (p = behind(line, "nonvoluntary_ctxt_switches:"))) {
		parse_count(p, &ret->involuntary);
	}
}

void proc_status_parse(const char *text, struct proc_status *ret)
{
	*ret = (struct proc_status){.rss_bytes = NAN,
		.vms_bytes = NAN,
		.peak_rss_bytes = NAN,
		.uid = (uid_t)-1,
		.voluntary = NAN,
		.involuntary = NAN};
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		parse_status_line(line, ret);
	}
}

/* Of each thread each second: without printf. */
void proc_path(pid_t pid, pid_t tid, const char *name, char ret[PROC_PATH_SIZE])
{
	char *at = mempcpy(ret, "proc/", 5);
	at += decimal_unsigned((uint64_t)pid, at);
	if (tid != 0) {
		at = mempcpy(at, "/task/", 6);
		at += decimal_unsigned((uint64_t)tid, at);
	}
	*at++ = '/';
	memcpy(at, name, strlen(name) + 1);
}

ssize_t proc_read(
	const struct root *root, pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[PROC_PATH_SIZE];
	proc_path(pid, tid, name, path);
	int fd = root_borrow(root, path, O_RDONLY);
	if (fd < 0) {
		return fd;
	}
	ssize_t n = file_read(fd, buf, size);
	root_return(root, fd, n);
	return n == -ESRCH ? -ENOENT : n;
}

int proc_stat_read(const struct root *root, pid_t pid, struct proc_stat *ret)
{
	char text[1024];
	ssize_t n = proc_read(root, pid, 0, "stat", text, sizeof(text));
	return n < 0 ? (int)n : proc_stat_parse(text, (size_t)n, ret);
}

int proc_status_read(const struct root *root, pid_t pid, struct proc_status *ret)
{
	char text[4096];
	ssize_t n = proc_read(root, pid, 0, "status", text, sizeof(text));
	if (n < 0) {
		return (int)n;
	}
	proc_status_parse(text, ret);
	return 0;
}

ssize_t proc_cmdline_read(const struct root *root, pid_t pid, char *buf, size_t size, size_t *argv0)
{
	ssize_t n = proc_read(root, pid, 0, "cmdline", buf, size);
	if (n < 0) {
		return n;
	}
	*argv0 = strlen(buf);
	while (n > 0 && buf[n - 1] == '\0') {
		n--;
	}
	for (ssize_t i = 0; i < n; i++) {
		buf[i] = buf[i] == '\0' ? ' ' : buf[i];
	}
	return n;
}

int proc_memory_read(const struct root *root, double *total, double *available)
{
	char text[4096];
	ssize_t n = root_read(root, "proc/meminfo", text, sizeof(text));
	if (n < 0) {
		return (int)n;
	}
	*total = *available = NAN;
	(void)kernel_bytes(text, "MemTotal:", total);
	(void)kernel_bytes(text, "MemAvailable:", available);
	return 0;
}

double proc_memory_total(const struct root *root)
{
	double total, available;
	return proc_memory_read(root, &total, &available) == 0 ? total : (double)NAN;
}

static int parse_line(const char *text, const char *key, uint64_t *ret)
{
	const char *p = kernel_line(text, key);
	return p && kernel_u64(&p, ret) && *p == '\n' ? 0 : -EBADMSG;
}

int proc_io_parse(const char *text, struct proc_io *ret)
{
	struct proc_io io;
	if (parse_line(text, "read_bytes:", &io.read_bytes) < 0 ||
		parse_line(text, "write_bytes:", &io.write_bytes) < 0 ||
		parse_line(text, "cancelled_write_bytes:", &io.cancelled_bytes) < 0) {
		return -EBADMSG;
	}
	*ret = io;
	return 0;
}

int proc_schedstat_parse(const char *text, struct proc_schedstat *ret)
{
	struct proc_schedstat stat;
	if (!kernel_u64(&text, &stat.run_ns) || *text != ' ' ||
		!kernel_u64(&text, &stat.delay_ns) || *text != ' ') {
		return -EBADMSG;
	}
	*ret = stat;
	return 0;
}

int proc_io_read(const struct root *root, pid_t pid, struct proc_io *ret)
{
	char text[512];
	ssize_t n = proc_read(root, pid, 0, "io", text, sizeof(text));
	return n < 0 ? (int)n : proc_io_parse(text, ret);
}

int proc_pss_read(const struct root *root, pid_t pid, double *ret_bytes)
{
	char text[2048];
	ssize_t n = proc_read(root, pid, 0, "smaps_rollup", text, sizeof(text));
	return n < 0 ? (int)n : kernel_bytes(text, "Pss:", ret_bytes);
}

/* Before Linux 6.2 the folder's size is 0 and the names have to be counted. */
static int count_names(int fd)
{
	char buf[4096];
	int count = 0;
	if (lseek(fd, 0, SEEK_SET) < 0) {
		return -errno;
	}
	while (count <= FD_NAMES_MAX) {
		ssize_t n = getdents64(fd, buf, sizeof(buf));
		if (n <= 0) {
			return n < 0 ? -errno : count;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(buf + at);
			count += entry->d_name[0] != '.';
			at += entry->d_reclen;
		}
	}
	return -EFBIG;
}

int proc_fds_count(const struct root *root, pid_t pid, double *ret)
{
	char path[PROC_PATH_SIZE];
	struct stat st;
	proc_path(pid, 0, "fd", path);
	int fd = root_borrow(root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		return fd == -ESRCH ? -ENOENT : fd;
	}
	bool known = !root->fixture && fstat(fd, &st) == 0 && st.st_size > 0;
	int count = known ? (int)(st.st_size < FDS_MAX ? st.st_size : FDS_MAX) : count_names(fd);
	root_return(root, fd, count);
	if (count < 0) {
		return count == -ESRCH ? -ENOENT : count;
	}
	*ret = count;
	return 0;
}

/* d_type is not used: a fixture's file system may not provide it, and an entry that is not a
 * process has no stat. */
static pid_t pid_of(const char *name)
{
	uint64_t value;
	return parse_u64(name, &value) == 0 && value > 0 && value <= INT32_MAX ? (pid_t)value : 0;
}

int proc_each(struct proc_folder *folder, const struct root *root, proc_visit *visit, void *ctx)
{
	if (!folder->open) {
		folder->fd = root_open(root, "proc", O_RDONLY | O_DIRECTORY);
		if (folder->fd < 0) {
			return folder->fd;
		}
		folder->open = true;
	}
	if (lseek(folder->fd, 0, SEEK_SET) < 0) {
		return -errno;
	}
	for (;;) {
		ssize_t n = getdents64(folder->fd, folder->buf, sizeof(folder->buf));
		if (n <= 0) {
			return n < 0 ? -errno : 0;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(folder->buf + at);
			pid_t pid = pid_of(entry->d_name);
			if (pid > 0) {
				visit(ctx, root, pid);
			}
			at += entry->d_reclen;
		}
	}
}

void proc_folder_close(struct proc_folder *folder)
{
	if (folder->open) {
		close(folder->fd);
		folder->open = false;
	}
}
