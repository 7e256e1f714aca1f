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

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/link/json.h"

static const char *const state_names[] = {"ok", "hint", "problem"};

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
	cJSON_AddStringToObject(row, "state", state_names[state]);
	cJSON_AddStringToObject(row, "text", text);
	ctl_add_text(row, "fix", fix);
	cJSON_AddItemToArray(checks, row);
}

bool finding_either(cJSON *checks, bool fine, const char *name, const char *fix,
	const char *fine_text, const char *text)
{
	finding_add(checks, fine ? FINDING_OK : FINDING_HINT, name, fine ? NULL : fix, "%s",
		fine ? fine_text : text);
	return fine;
}

int findings_count(const cJSON *checks, enum finding state)
{
	int count = 0;
	for (const cJSON *row = !checks ? NULL : checks->child; row; row = row->next) {
		count += strcmp(json_word(row, "state"), state_names[state]) == 0;
	}
	return count;
}

ssize_t machine_read(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	int length = snprintf(full, sizeof(full), "%s/%s", root, path);
	ret[0] = '\0';
	if (length >= PATH_MAX) {
		return -ENAMETOOLONG;
	}
	/* a FIFO would block the open, a driver the read: neither may hang the doctor */
	int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return -errno;
	}
	ssize_t got;
	size_t end = 0;
	while ((got = read(fd, ret + end, size - 1 - end)) > 0) {
		end += (size_t)got;
	}
	int error = errno;
	close(fd);
	end -= end > 0 && ret[end - 1] == '\n';
	ret[got < 0 ? 0 : end] = '\0';
	return got < 0 ? -error : (ssize_t)end;
}

static bool machine_has(const char *root, const char *path)
{
	char full[PATH_MAX];
	int length = snprintf(full, sizeof(full), "%s/%s", root, path);
	return length < PATH_MAX && access(full, F_OK) == 0;
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
