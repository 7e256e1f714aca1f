/* Part of the process collector: proc/<pid>/{io,smaps_rollup,fd}, which the kernel shows to whom
 * may trace the process only, and the format of schedstat. */
#include "daemon/collect/process/proc_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/process/procfs.h"

enum { FDS_MAX = 65536 };

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
	ssize_t n = proc_read(root, pid, "io", text, sizeof(text));
	return n < 0 ? (int)n : proc_io_parse(text, ret);
}

int proc_pss_read(const struct root *root, pid_t pid, double *ret_bytes)
{
	char text[2048];
	ssize_t n = proc_read(root, pid, "smaps_rollup", text, sizeof(text));
	return n < 0 ? (int)n : kernel_bytes(text, "Pss:", ret_bytes);
}

/* Before Linux 6.2 the folder's size is 0 and the names have to be counted. */
static int count_names(int fd)
{
	char buf[4096];
	int count = 0;
	while (count < FDS_MAX) {
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
	return count;
}

int proc_fds_count(const struct root *root, pid_t pid, double *ret)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	int fd = root_open(root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		return fd == -ESRCH ? -ENOENT : fd;
	}
	bool told = !root->fixture && fstat(fd, &st) == 0 && st.st_size > 0;
	int count = told ? (int)(st.st_size < FDS_MAX ? st.st_size : FDS_MAX) : count_names(fd);
	close(fd);
	if (count < 0) {
		return count == -ESRCH ? -ENOENT : count;
	}
	*ret = count;
	return 0;
}
