/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h: declares what the parts of doctor share. A finding is a row of the report:
 * {"name","state","text"}, and "fix", the command that fixes it, if there is one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

enum finding {
	FINDING_OK,
	FINDING_HINT,	 /* less than there could be; nothing is broken */
	FINDING_PROBLEM, /* broken */
};

/* Appends a row. fix NULL: there is nothing to do. */
void finding_add(cJSON *checks, enum finding state, const char *name, const char *fix,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same, "ok" or a hint. Returns `fine`. */
bool finding_either(cJSON *checks, bool fine, const char *name, const char *fix,
	const char *fine_text, const char *text);

/* How many rows are in that state. */
int findings_count(const cJSON *checks, enum finding state);

/* Reads at most size - 1 bytes of root/path and ends them with NUL, without the last newline. The
 * length, or the negative errno of open or read; -ENAMETOOLONG. */
ssize_t machine_read(const char *root, const char *path, char *ret, size_t size);

/* True when the text has the word, delimited by blanks or newlines. */
bool machine_word(const char *text, const char *word);

/* The command that adds a parameter to the kernel's command line, by the boot loader that is
 * there; without one that is known, the advice in words. */
void machine_fix_boot(const char *root, const char *parameter, char *ret, size_t size);

/* Where the drop-ins of systemd/dropins/ are installed; no slash in front. */
extern const char *const machine_dropins;

/* The command that gives edgeprofd.service the drop-in NAME.conf and restarts it: the shipped file
 * when it is installed, else one with these lines (\n escaped for printf). */
void machine_fix_service(
	const char *root, const char *name, const char *lines, char *ret, size_t size);

/* What the daemon may read, judged by what it is: its user, groups and capabilities. */
enum { ACCESS_GROUPS = 64 };

struct access_subject {
	bool is_daemon; /* else the person who asks */
	bool service;	/* it is edgeprofd.service: a drop-in changes what it may */
	uid_t uid;
	gid_t groups[ACCESS_GROUPS]; /* with the primary one */
	size_t group_count;
	uint64_t capabilities; /* effective */
};

/* Reads root/proc/PID/status ("self" is a PID too). -ENOENT, -ESRCH gone, -EBADMSG. Leaves
 * is_daemon and service alone. */
int access_subject_read(const char *root, const char *pid, struct access_subject *ret);

/* Appends findings: counters, other users' processes, and the Raspberry Pi's firmware. */
void doctor_access(cJSON *checks, const char *root, const struct access_subject *subject);

/* Appends the finding on whether the person may change the daemon's settings. */
void doctor_group(cJSON *checks);

/* Appends findings: version, sources, sensors, cost, history, MQTT, limits, refused apps. Replies
 * are {"GetStatus": {…}}; any may be absent or of an odd shape. */
void doctor_daemon(cJSON *checks, const cJSON *replies);

/* The rows of ListSources with "us_per_s" and "share_percent" of one CPU, which are null when the
 * source does not run. */
cJSON *doctor_sources(const cJSON *reply);

/* Appends findings about the machine below root ("" = this one), whose kernel is `release`. */
void doctor_kernel(cJSON *checks, const char *root, const char *release);

/* Appends the finding about the clock: what the kernel says, and the daemon when it is known. */
void doctor_clock(cJSON *checks, bool kernel_synced, bool daemon_known, bool daemon_synced);

/* Other tools that go well with a profiler, searched in PATH and never run:
 * [{"name","path" or null,"use"}]: regular files that may be executed, the first along `path` (the
 * text of $PATH). NULL: no memory. */
cJSON *doctor_tools(const char *path);
