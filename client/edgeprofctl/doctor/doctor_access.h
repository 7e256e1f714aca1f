/* What the daemon may read, judged by what it is: its user, groups and capabilities. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

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
