/*
 * /proc/self/statm (pages) for now, VmHWM of /proc/self/status (kB) for the peak: what getrusage
 * calls ru_maxrss is also that of the program this process was before exec.
 */
#include "client/libedgeprof/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The start of a file as a string; its length or -ENODATA. */
static int read_start(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -ENODATA;
	}
	ssize_t n = read(fd, ret, size - 1);
	close(fd);
	if (n <= 0) {
		return -ENODATA;
	}
	ret[n] = '\0';
	return (int)n;
}

/* A decimal number and what separates it from the next; no locale, no errno. */
static bool take_number(const char **text, uint64_t *ret)
{
	const char *p = *text;
	p += strspn(p, " \t");
	const char *start = p;
	uint64_t value = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
	}
	*text = p;
	*ret = value;
	return p != start;
}

int memory_read(struct memory *ret)
{
	int saved = errno;
	char text[128];
	uint64_t size, resident;
	const char *p = text;
	int n = read_start("/proc/self/statm", text, sizeof(text));
	errno = saved;
	if (n < 0 || !take_number(&p, &size) || !take_number(&p, &resident)) {
		return -ENODATA;
	}
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	*ret = (struct memory){.resident_bytes = resident * page, .virtual_bytes = size * page};
	return 0;
}

uint64_t memory_peak(void)
{
	int saved = errno;
	char text[2048];
	int n = read_start("/proc/self/status", text, sizeof(text));
	const char *p = n > 0 ? strstr(text, "\nVmHWM:") : NULL;
	uint64_t kilobytes;
	struct rusage usage;
	errno = saved;
	if (p && (p += strlen("\nVmHWM:"), take_number(&p, &kilobytes))) {
		return kilobytes * 1024;
	}
	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
