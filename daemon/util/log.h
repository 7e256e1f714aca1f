/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: writes log lines to stderr: one line each, control bytes made visible, with the journal's
 * <N> priority prefix when stderr is the journal. Callable from any thread; errno is kept. Not for
 * proto/ and core/.
 */
#pragma once

#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Lines above this level are dropped. Set by main and by reload. */
extern enum log_level log_max_level;

/* "error", "warning", "notice", "info", "debug" -> the level; -EINVAL for another word. */
int log_level_parse(const char *text, enum log_level *ret);

/* True when stderr is the journal of a service. */
bool log_is_journal(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
