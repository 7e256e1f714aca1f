/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c: collects doctor's findings, reads small files below a root, and proposes commands to
 * paste. Findings are JSON from the start: text and -j show the same. */
#include "client/edgeprofctl/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"

const char *finding_name(enum finding state)
{
	switch (state) {
	case FINDING_OK:
		return "ok";
	case FINDING_HINT:
		return "hint";
	case FINDING_PROBLEM:
		return "problem";
	}
	return "";
}

void finding_add(cJSON *checks, enum finding state, const char *name, const char *fix,
	const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "name", name);
	cJSON_AddStringToObject(row, "state", finding_name(state));
	cJSON_AddStringToObject(row, "text", text);
	if (fix) {
		cJSON_AddStringToObject(row, "fix", fix);
	}
	if (!cJSON_AddItemToArray(checks, row)) {
		cJSON_Delete(row);
	}
}

int findings_count(const cJSON *checks, enum finding state)
{
	int count = 0;
	for (const cJSON *row = !checks ? NULL : checks->child; row; row = row->next) {
		count += strcmp(json_word(row, "state"), finding_name(state)) == 0;
	}
	return count;
}

static int path_below(const char *root, const char *path, char ret[PATH_MAX])
{
	int length = snprintf(ret, PATH_MAX, "%s/%s", root, path);
	return length < 0 || length >= PATH_MAX ? -ENAMETOOLONG : 0;
}

ssize_t machine_read(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	size_t length = 0;
	ret[0] = '\0';
	int r = path_below(root, path, full);
	if (r < 0) {
		return r;
	}
	/* a FIFO would block the open, a driver the read: neither may hang the doctor */
	int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return -errno;
	}
	while (length + 1 < size) {
		ssize_t got = read(fd, ret + length, size - 1 - length);
		if (got < 0) {
			r = -errno;
			close(fd);
			ret[0] = '\0';
			return r;
		}
		if (got == 0) {
			break;
		}
		length += (size_t)got;
	}
	close(fd);
	length -= length > 0 && ret[length - 1] == '\n';
	ret[length] = '\0';
	return (ssize_t)length;
}

bool machine_has(const char *root, const char *path)
{
	char full[PATH_MAX];
	return path_below(root, path, full) == 0 && access(full, F_OK) == 0;
}

bool machine_word(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = text; (at = strstr(at, word)); at += length) {
		bool begins = at == text || strchr(" \t\n", at[-1]);
		if (begins && (at[length] == '\0' || strchr(" \t\n", at[length]))) {
			return true;
		}
	}
	return false;
}

void machine_fix_boot(const char *root, const char *parameter, char *ret, size_t size)
{
	/* Raspberry Pi OS and Ubuntu for it, older ones, Jetson and other U-Boots, PCs */
	static const struct {
		const char *file, *edit, *then;
	} loaders[] = {
		{"boot/firmware/cmdline.txt", "1 s|$| %s|", ""},
		{"boot/cmdline.txt", "1 s|$| %s|", ""},
		{"boot/extlinux/extlinux.conf", "/^ *APPEND/ s|$| %s|", ""},
		{"etc/default/grub", "s|^GRUB_CMDLINE_LINUX=\"|&%s |", " && sudo update-grub"},
	};
	for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		if (machine_has(root, loaders[i].file)) {
			const char *gap = strstr(loaders[i].edit, "%s");
			snprintf(ret, size, "sudo sed -i '%.*s%s%s' /%s%s && sudo reboot",
				(int)(gap - loaders[i].edit), loaders[i].edit, parameter, gap + 2,
				loaders[i].file, loaders[i].then);
			return;
		}
	}
	snprintf(ret, size, "start the kernel with the parameter %s", parameter);
}

static const char dropins[] = EDGEPROF_DROPINS;
const char *const machine_dropins = dropins + (EDGEPROF_DROPINS[0] == '/');

void machine_fix_service(
	const char *root, const char *name, const char *lines, char *ret, size_t size)
{
	static const char directory[] = "/etc/systemd/system/edgeprofd.service.d";
	static const char restart[] =
		"sudo systemctl daemon-reload && sudo systemctl restart edgeprofd";
	char shipped[PATH_MAX];
	snprintf(shipped, sizeof(shipped), "%s/%s.conf", machine_dropins, name);
	if (machine_has(root, shipped)) {
		snprintf(ret, size, "sudo install -D -m 644 -t %s /%s && %s", directory, shipped,
			restart);
	} else {
		snprintf(ret, size,
			"sudo mkdir -p %s && printf '[Service]\\n%s\\n' | sudo tee %s/%s.conf && "
			"%s",
			directory, lines, directory, name, restart);
	}
}
