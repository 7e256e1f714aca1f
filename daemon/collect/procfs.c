/* Part of the process collector: the formats of proc(5). A process may end between two reads, so
 * ENOENT and ESRCH mean the same. */
#include "daemon/collect/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/text.h"

/* Fields of stat that we read, by their number in proc(5); field 3 follows the name. */
enum {
	FIELD_FLAGS = 9,
	FIELD_MINOR_FAULTS = 10,
	FIELD_MAJOR_FAULTS = 12,
	FIELD_USER = 14,
	FIELD_SYSTEM = 15,
	FIELD_THREADS = 20,
	FIELD_START = 22,
};

static bool parse_fields(const char *p, struct proc_stat *stat)
{
	for (int field = 4; field <= FIELD_START; field++) {
		uint64_t value;
		p += strspn(p, " ");
		bool negative = *p == '-';
		p += negative;
		if (!text_u64(&p, &value) || (*p != ' ' && *p != '\n' && *p != '\0')) {
			return false;
		}
		if (negative) {
			value = 0; /* priorities and tty only; nothing we keep is below 0 */
		}
		switch (field) {
		case FIELD_FLAGS:
			stat->flags = value;
			break;
		case FIELD_MINOR_FAULTS:
			stat->minor_faults = value;
			break;
		case FIELD_MAJOR_FAULTS:
			stat->major_faults = value;
			break;
		case FIELD_USER:
			stat->user_ticks = value;
			break;
		case FIELD_SYSTEM:
			stat->system_ticks = value;
			break;
		case FIELD_THREADS:
			stat->threads = value;
			break;
		case FIELD_START:
			stat->start_ticks = value;
			break;
		default:
			break;
		}
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

void proc_status_parse(const char *text, struct proc_status *ret)
{
	*ret = (struct proc_status){NAN, NAN, NAN, (uid_t)-1};
	(void)text_bytes(text, "VmRSS:", &ret->rss_bytes);
	(void)text_bytes(text, "VmSize:", &ret->vms_bytes);
	(void)text_bytes(text, "VmHWM:", &ret->peak_rss_bytes);
	uint64_t uid;
	const char *p = text_line(text, "Uid:");
	if (p && text_u64(&p, &uid) && uid < UINT32_MAX) {
		ret->uid = (uid_t)uid;
	}
}

/* The head of a file of a process: what we need is within the first 4 KiB. */
static ssize_t read_head(
	const struct root *root, pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/%s", (int)pid, name);
	int fd = root_open(root, path, O_RDONLY);
	if (fd < 0) {
		return fd;
	}
	ssize_t n = file_read(fd, buf, size);
	close(fd);
	return n == -ESRCH ? -ENOENT : n;
}

int proc_stat_read(const struct root *root, pid_t pid, struct proc_stat *ret)
{
	char text[1024];
	ssize_t n = read_head(root, pid, "stat", text, sizeof(text));
	return n < 0 ? (int)n : proc_stat_parse(text, (size_t)n, ret);
}

int proc_status_read(const struct root *root, pid_t pid, struct proc_status *ret)
{
	char text[4096];
	ssize_t n = read_head(root, pid, "status", text, sizeof(text));
	if (n < 0) {
		return (int)n;
	}
	proc_status_parse(text, ret);
	return 0;
}

ssize_t proc_argv0_read(const struct root *root, pid_t pid, char *buf, size_t size)
{
	ssize_t n = read_head(root, pid, "cmdline", buf, size);
	return n < 0 ? n : (ssize_t)strlen(buf);
}

double proc_memory_total(const struct root *root)
{
	double total = NAN;
	char text[4096];
	int fd = root_open(root, "proc/meminfo", O_RDONLY);
	if (fd < 0) {
		return NAN;
	}
	if (file_read(fd, text, sizeof(text)) > 0) {
		(void)text_bytes(text, "MemTotal:", &total);
	}
	close(fd);
	return total;
}
