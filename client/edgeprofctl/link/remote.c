/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c: starts ssh on one end of a socket pair; the other end is a connection like that to a
 * local daemon. What ssh has to say goes to stderr. */
#include "client/edgeprofctl/link/remote.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/edgeprofctl/term/when.h"

enum { WORDS_MAX = 32, POLL_US = 5000, TERM_MS = 1000 };

/* Neither the name nor the host in it may look like an option. */
static bool is_name(const char *name)
{
	const char *at = strrchr(name, '@'), *host = at ? at + 1 : name;
	for (const char *c = name; *c != '\0'; c++) {
		if (!isgraph((unsigned char)*c) || !isascii(*c)) {
			return false;
		}
	}
	return name[0] != '-' && name[0] != '@' && host[0] != '-' && host[0] != '\0';
}

int remote_add(struct remote_list *list, const char *text)
{
	do {
		size_t length = strcspn(text, ",");
		char name[REMOTE_SIZE];
		snprintf(name, sizeof(name), "%.*s", (int)length, text);
		if (length >= sizeof(name) || !is_name(name)) {
			return -EINVAL;
		}
		if (list->count == REMOTE_MAX) {
			return -ENOSPC;
		}
		memcpy(list->names[list->count++], name, length + 1);
		text += length;
	} while (*text++ == ',');
	return 0;
}

static int spawn(char *const words[], int fd, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t usual;
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	int error = posix_spawnp(ret, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

int remote_open(const char *name, uint64_t timeout_ms, bool batch, pid_t *ret)
{
	const char *wanted = getenv("EDGEPROF_SSH");
	char *command = strdup(wanted && wanted[0] != '\0' ? wanted : "ssh"), *rest = NULL;
	char limit[48], host[REMOTE_SIZE];
	char *const last[] = {"-o", "BatchMode=yes", "-T", "-o", limit, "--", host, "edgeprofctl",
		"bridge", NULL};
	size_t skip = batch ? 0 : 2;
	char *words[WORDS_MAX];
	size_t count = 0;
	int pair[2];
	if (!command || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(command);
		return -ENOMEM;
	}
	snprintf(limit, sizeof(limit), "ConnectTimeout=%llu",
		(unsigned long long)(timeout_ms + 999) / 1000);
	snprintf(host, sizeof(host), "%s", name);
	for (char *word = strtok_r(command, " ", &rest);
		word && count < WORDS_MAX - sizeof(last) / sizeof(last[0]);
		word = strtok_r(NULL, " ", &rest)) {
		words[count++] = word;
	}
	memcpy(words + count, last + skip, sizeof(last) - skip * sizeof(last[0]));
	int r = spawn(words, pair[1], ret);
	free(command);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
	}
	return r < 0 ? r : pair[0];
}

/* True when it has ended. */
static bool wait_until(pid_t pid, double until_ms, int *ret)
{
	while (waitpid(pid, ret, WNOHANG) == 0) {
		if (when_mono_ms() >= until_ms) {
			return false;
		}
		usleep(POLL_US);
	}
	return true;
}

int remote_close(pid_t pid, uint64_t grace_ms)
{
	int status = 0;
	if (wait_until(pid, when_mono_ms() + (double)grace_ms, &status)) {
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	kill(pid, SIGTERM);
	if (!wait_until(pid, when_mono_ms() + TERM_MS, &status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return -1;
}
