/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_access.c: reports what the daemon may not read. It runs without privileges; each finding
 * says what that costs, with the command that grants the permission. */
#include "client/edgeprofctl/doctor/doctor.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* linux/capability.h: older headers lack CAP_PERFMON. */
enum { SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38 };
enum { FIX_SIZE = 768, ADMIN_GROUPS = 256 };

/* The text behind "Name:" of /proc/PID/status, or NULL. */
static const char *field(const char *status, const char *name)
{
	const char *at = strstr(status, name);
	return !at ? NULL : at + strlen(name);
}

int access_subject_read(const char *root, const char *pid, struct access_subject *ret)
{
	char path[64], status[8192];
	snprintf(path, sizeof(path), "proc/%.20s/status", pid);
	ssize_t length = machine_read(root, path, status, sizeof(status));
	if (length < 0) {
		return (int)length;
	}
	const char *uid = field(status, "\nUid:");
	const char *gid = field(status, "\nGid:");
	const char *groups = field(status, "\nGroups:");
	const char *capabilities = field(status, "\nCapEff:");
	unsigned uid_real, gid_real, group;
	int length_of;
	if (!uid || !gid || sscanf(uid, "%u %u", &uid_real, &ret->uid) != 2 ||
		sscanf(gid, "%u %u", &gid_real, &ret->groups[0]) != 2) {
		return -EBADMSG;
	}
	ret->group_count = 1;
	/* blanks do not lead to the next line */
	while (groups && ret->group_count < ACCESS_GROUPS &&
		sscanf(groups, "%*[ \t]%u%n", &group, &length_of) == 1) {
		ret->groups[ret->group_count++] = group;
		groups += length_of;
	}
	ret->capabilities = !capabilities ? 0 : strtoull(capabilities, NULL, 16);
	return 0;
}

static bool has(const struct access_subject *subject, int capability)
{
	return (subject->capabilities >> capability & 1) != 0;
}

static bool in_group(const struct access_subject *subject, gid_t group)
{
	size_t i = 0;
	while (i < subject->group_count && subject->groups[i] != group) {
		i++;
	}
	return i < subject->group_count;
}

static bool may_read(const struct access_subject *subject, const struct stat *status)
{
	if (subject->uid == 0) {
		return true;
	}
	mode_t bit = status->st_uid == subject->uid	 ? S_IRUSR
		     : in_group(subject, status->st_gid) ? S_IRGRP
							 : S_IROTH;
	return (status->st_mode & bit) != 0;
}

static const char *name_of(const struct access_subject *subject)
{
	return subject->is_daemon ? "the daemon" : "you";
}

/* With a service, a drop-in; else the capability goes to the program. */
static void fix_capability(const char *root, const struct access_subject *subject, const char *name,
	const char *dropin, const char *capability, const char *lines, char *ret, size_t size)
{
	char text[256];
	if (subject->service || !subject->is_daemon) {
		snprintf(text, sizeof(text),
			"CapabilityBoundingSet=CAP_%s\\nAmbientCapabilities=CAP_%s%s", capability,
			capability, lines);
		machine_fix_service(root, dropin, text, ret, size);
	} else {
		snprintf(ret, size,
			"sudo setcap cap_%s+ep \"$(command -v edgeprofd)\" # then start it again",
			name);
	}
}

static const char *what_paranoid_allows(long level)
{
	return level < 0    ? "everything is allowed"
	       : level == 0 ? "all but raw tracepoints is allowed"
	       : level == 1 ? "own processes may be counted, with the kernel's part"
	       : level == 2 ? "own processes may be counted, without the kernel's part"
			    : "nothing may be counted without CAP_PERFMON";
}

static void check_counters(cJSON *checks, const char *root, const struct access_subject *subject)
{
	char text[32], fix[FIX_SIZE];
	if (machine_read(root, "proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) <= 0) {
		finding_add(checks, FINDING_HINT, "perf", NULL,
			"the kernel has no perf events: no counters of processes");
		return;
	}
	long level = strtol(text, NULL, 10);
	bool able = subject->uid == 0 || has(subject, PERFMON) || has(subject, SYS_ADMIN);
	fix_capability(root, subject, "perfmon", "perf-counters", "PERFMON",
		"\\nSystemCallFilter=perf_event_open", fix, sizeof(fix));
	finding_add(checks, able || level < 0 ? FINDING_OK : FINDING_HINT, "perf",
		able || level < 0 ? NULL : fix, "perf_event_paranoid is %ld: %s; %s %s CAP_PERFMON",
		level, what_paranoid_allows(level), name_of(subject),
		able		     ? subject->is_daemon ? "has" : "have"
		: subject->is_daemon ? "has no"
				     : "have no");
}

static void check_processes(cJSON *checks, const char *root, const struct access_subject *subject)
{
	char fix[FIX_SIZE], fine[96], text[192];
	fix_capability(
		root, subject, "sys_ptrace", "other-users", "SYS_PTRACE", "", fix, sizeof(fix));
	snprintf(fine, sizeof(fine), "%s may read smaps_rollup and io of every user's processes",
		name_of(subject));
	snprintf(text, sizeof(text),
		"%s may not read smaps_rollup and io of other users' processes: their PSS, bytes "
		"read and written are unknown",
		name_of(subject));
	finding_either(checks, subject->uid == 0 || has(subject, SYS_PTRACE), "processes", fix,
		fine, text);
}

static void fix_mailbox(const char *root, const struct access_subject *subject,
	const struct stat *status, const char *path, char *ret, size_t size)
{
	const struct group *group = getgrgid(status->st_gid);
	const char *node = strrchr(path, '/') + 1;
	if ((status->st_mode & S_IRGRP) == 0 || status->st_gid == 0 || !group) {
		snprintf(ret, size,
			"echo 'KERNEL==\"%s\", GROUP=\"video\", MODE=\"0660\"' | sudo tee "
			"/etc/udev/rules.d/90-%s.rules && sudo udevadm control --reload && sudo "
			"udevadm trigger --name-match=/%s # then ask again",
			node, node, path);
	} else if (subject->service) {
		char lines[192];
		snprintf(lines, sizeof(lines),
			"PrivateDevices=no\\nDeviceAllow=/%s r\\nSupplementaryGroups=%.64s", path,
			group->gr_name);
		/* the shipped one joins video, as Raspberry Pi OS has it */
		machine_fix_service(root,
			strcmp(group->gr_name, "video") == 0 ? "raspberry-pi" : "firmware", lines,
			ret, size);
	} else {
		snprintf(ret, size, "sudo usermod -aG %.64s $USER # then log in again",
			group->gr_name);
	}
}

/* The firmware's mailbox reports all throttle bits; the newer node only accepts gencmd texts. */
static void check_mailbox(cJSON *checks, const char *root, const struct access_subject *subject)
{
	static const char *const nodes[] = {"dev/vcio", "dev/vcio_gencmd"};
	char path[PATH_MAX], model[128], fix[FIX_SIZE];
	const char *refused = NULL;
	struct stat status, first;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		int length = snprintf(path, sizeof(path), "%s/%s", root, nodes[i]);
		if (length < 0 || (size_t)length >= sizeof(path) || stat(path, &status) < 0) {
			continue;
		}
		if (may_read(subject, &status)) {
			finding_add(checks, FINDING_OK, "firmware", NULL,
				"%s may ask the Raspberry Pi's firmware through /%s",
				name_of(subject), nodes[i]);
			return;
		}
		first = !refused ? status : first;
		refused = !refused ? nodes[i] : refused;
	}
	if (refused) {
		fix_mailbox(root, subject, &first, refused, fix, sizeof(fix));
		finding_add(checks, FINDING_HINT, "firmware", fix,
			"%s may not open /%s: throttle bits since boot, clocks and voltages are "
			"unknown",
			name_of(subject), refused);
	} else if (machine_read(root, "proc/device-tree/model", model, sizeof(model)) > 0 &&
		   strncmp(model, "Raspberry Pi", 12) == 0) {
		finding_add(checks, FINDING_HINT, "firmware", NULL,
			"this kernel has no /dev/vcio: of the firmware only under-voltage is "
			"known");
	}
}

void doctor_access(cJSON *checks, const char *root, const struct access_subject *subject)
{
	check_counters(checks, root, subject);
	check_processes(checks, root, subject);
	check_mailbox(checks, root, subject);
}

/* Whether the person is a member by the user database, though maybe not yet in this session. */
static bool is_listed(const struct group *group)
{
	const struct passwd *user = getpwuid(getuid());
	bool listed = user && user->pw_gid == group->gr_gid;
	for (char **member = group->gr_mem; user && *member; member++) {
		listed = listed || strcmp(*member, user->pw_name) == 0;
	}
	return listed;
}

static bool is_member(gid_t gid)
{
	gid_t groups[ADMIN_GROUPS];
	int count = getgroups(ADMIN_GROUPS, groups);
	bool member = getegid() == gid;
	for (int i = 0; i < count; i++) {
		member = member || groups[i] == gid;
	}
	return member;
}

void doctor_group(cJSON *checks)
{
	static const char join[] = "sudo usermod -aG edgeprof $USER # then log in again";
	static const char create[] = "sudo groupadd --system edgeprof && "
				     "sudo usermod -aG edgeprof $USER # then log in again";
	const struct group *group = getgrnam("edgeprof");
	bool root = geteuid() == 0, member = group && is_member(group->gr_gid);
	bool listed = group && is_listed(group);
	finding_either(checks, root || member, "group",
		!group	 ? create
		: listed ? "newgrp edgeprof"
			 : join,
		root ? "you are root: you may change the daemon's settings"
		     : "you are in group edgeprof: you may change the daemon's settings",
		!group	 ? "there is no group edgeprof: only root may change the daemon's settings"
		: listed ? "you joined group edgeprof after this session began"
			 : "you are not in group edgeprof: you may look, but not change the "
			   "daemon's settings");
}
