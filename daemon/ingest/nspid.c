/* Reads /proc/PID/status and /proc/PID/task/TID/status of the machine's own /proc, whatever --root
 * says; attachment.c asks at the attachment and when a new thread shows. */
#include "daemon/ingest/nspid.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/root.h"

pid_t nspid_parse(const char *status, unsigned *levels)
{
	const char *line = strncmp(status, "NSpid:", 6) == 0 ? status : strstr(status, "\nNSpid:");
	unsigned long number = 0;
	*levels = 0;
	if (!line) {
		return 0;
	}
	const char *p = strchr(line, ':') + 1;
	const char *end = p + strcspn(p, "\n");
	while (p < end) {
		p += strspn(p, " \t");
		char *behind;
		if (p >= end || *p < '0' || *p > '9') {
			break;
		}
		number = strtoul(p, &behind, 10);
		if (number > INT32_MAX) {
			*levels = 0;
			return 0;
		}
		p = behind;
		++*levels;
	}
	return (pid_t)number;
}

static pid_t read_status(const char *path, unsigned *levels)
{
	char text[4096];
	*levels = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return 0;
	}
	ssize_t n = file_read(fd, text, sizeof(text));
	close(fd);
	return n > 0 ? nspid_parse(text, levels) : 0;
}

void nspid_init(struct nspid *nspid, pid_t pid)
{
	char path[48];
	unsigned levels;
	*nspid = (struct nspid){.inside = 0};
	if (pid > 0) {
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		nspid->inside = read_status(path, &levels);
		nspid->nested = levels > 1;
	}
}

uint32_t nspid_thread(struct nspid *nspid, pid_t pid, uint32_t inside)
{
	if (inside == 0 || pid <= 0) {
		return 0;
	}
	if (!nspid->nested) {
		return inside;
	}
	for (size_t i = 0; i < nspid->threads; i++) {
		if (nspid->thread[i].inside == inside) {
			return nspid->thread[i].outside;
		}
	}
	nspid->wanted = true;
	return 0;
}

void nspid_look(struct nspid *nspid, pid_t pid)
{
	char path[80];
	nspid->wanted = false;
	nspid->threads = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	if (!tasks) {
		return;
	}
	const struct dirent *entry;
	for (int looked = 0; looked < NSPID_LOOK_MAX && nspid->threads < NSPID_THREADS; looked++) {
		entry = readdir(tasks);
		if (!entry) {
			break;
		}
		unsigned long tid = strtoul(entry->d_name, NULL, 10);
		unsigned levels;
		if (tid == 0 || tid > INT32_MAX) {
			continue;
		}
		snprintf(path, sizeof(path), "/proc/%d/task/%lu/status", (int)pid, tid);
		pid_t inside = read_status(path, &levels);
		if (inside > 0) {
			nspid->thread[nspid->threads++] = (struct nspid_thread){
				.inside = (uint32_t)inside, .outside = (uint32_t)tid};
		}
	}
	closedir(tasks);
}
