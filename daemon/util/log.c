/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: writes a line with one write(2), so that lines of several threads never mix. */
#include "daemon/util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/utf8.h"

enum log_level log_max_level = LOG_LEVEL_INFO;

static const char *const names[] = {[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_NOTICE] = "notice",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug"};

int log_level_parse(const char *text, enum log_level *ret)
{
	for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
		if (strcmp(names[level], text) == 0) {
			*ret = (enum log_level)level;
			return 0;
		}
	}
	return -EINVAL;
}

/* JOURNAL_STREAM is inherited by everything below a service, a terminal of a user's session as
 * well: it only counts when it names what stderr is (systemd.exec(5)). */
bool log_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char here[64];
	if (!stream || fstat(STDERR_FILENO, &st) < 0) {
		return false;
	}
	snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return strcmp(here, stream) == 0;
}

void log_write(enum log_level level, const char *format, ...)
{
	if (level > log_max_level) {
		return;
	}
	int saved = errno;
	char line[1024];
	int used;
	if (log_is_journal()) {
		used = snprintf(line, sizeof(line), "<%d>", (int)level);
	} else {
		used = snprintf(line, sizeof(line), "edgeprofd: %s: ", names[level]);
	}
	va_list ap;
	va_start(ap, format);
	int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, ap);
	va_end(ap);
	if (more < 0) {
		errno = saved;
		return;
	}
	proto_utf8_clean(line + used);
	size_t length = strlen(line);
	line[length++] = '\n';
	ssize_t ignored = write(STDERR_FILENO, line, length);
	(void)ignored;
	errno = saved;
}
