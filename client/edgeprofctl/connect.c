/* SPDX-License-Identifier: Apache-2.0 */
/* connect.c: connects a verb with the daemon of this machine, or over ssh with that of another. */
#include <errno.h>
#include <string.h>

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/link/address.h"
#include "client/edgeprofctl/link/client.h"
#include "client/edgeprofctl/link/remote.h"

enum { GRACE_MS = 1000 };

int ctl_check_local(struct ctl *ctl)
{
	return ctl_hosts(ctl) == 0
		       ? CTL_FINE
		       : ctl_fail(ctl, CTL_USAGE, "--remote does not work with this command");
}

int ctl_addresses(struct ctl *ctl, struct address_list *ret)
{
	int status = ctl_check_local(ctl);
	if (status != CTL_FINE) {
		return status;
	}
	return address_search(ctl->options.socket, ret) == 0
		       ? CTL_FINE
		       : ctl_fail(ctl, CTL_UNREACHABLE,
				 "socket path is too long (at most 107 bytes)");
}

size_t ctl_hosts(const struct ctl *ctl)
{
	return ctl->options.hosts.count;
}

const char *ctl_host(const struct ctl *ctl, size_t number)
{
	return ctl->options.hosts.names[number];
}

void ctl_init_host(const struct ctl *ctl, size_t number, struct ctl *ret)
{
	*ret = (struct ctl){.options = ctl->options,
		.style = ctl->style,
		.output = ctl->output,
		.words = ctl->words,
		.word_count = ctl->word_count,
		.quiet = true};
	ret->options.hosts.count = 0;
	remote_add(&ret->options.hosts, ctl_host(ctl, number));
}

/* A descriptor, or an exit status as a negative number. */
static int connect_remote(struct ctl *ctl)
{
	const char *host = ctl_host(ctl, 0);
	if (ctl_hosts(ctl) > 1) {
		return -ctl_fail(ctl, CTL_USAGE, "this command works with one host at a time");
	}
	if (ctl->options.socket) {
		return -ctl_fail(ctl, CTL_USAGE, "--remote and --socket exclude each other");
	}
	int fd = remote_open(host, ctl->options.timeout_ms, ctl->quiet, &ctl->remote);
	return fd >= 0 ? fd
		       : -ctl_fail(ctl, CTL_UNREACHABLE, "cannot connect to %s: cannot run ssh: %s",
				 host, strerror(-fd));
}

int ctl_open_local(struct ctl *ctl)
{
	struct address_list list;
	int status = ctl_addresses(ctl, &list);
	if (status != CTL_FINE) {
		return -status;
	}
	int fd = address_connect(&list, ctl->options.timeout_ms);
	if (fd >= 0) {
		return fd;
	}
	if (ctl->quiet) {
		ctl_fail(ctl, 0, "cannot connect to edgeprofd: %s", strerror(-fd));
	} else {
		address_explain(&list, fd, stderr);
	}
	return fd == -EACCES ? -CTL_NOT_PERMITTED : -CTL_UNREACHABLE;
}

int ctl_connect(struct ctl *ctl)
{
	if (ctl->client) {
		return CTL_FINE;
	}
	int fd = ctl_hosts(ctl) > 0 ? connect_remote(ctl) : ctl_open_local(ctl);
	if (fd < 0) {
		return -fd;
	}
	if (client_create(fd, &ctl->client) < 0) {
		ctl_disconnect(ctl);
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	return CTL_FINE;
}

void ctl_disconnect(struct ctl *ctl)
{
	client_destroy(ctl->client);
	ctl->client = NULL;
	if (ctl->remote > 0) {
		remote_close(ctl->remote, 0);
		ctl->remote = 0;
	}
}

int ctl_remote_failed(struct ctl *ctl)
{
	static const struct {
		int code;
		enum ctl_exit status;
		const char *reason;
	} reasons[] = {
		{255, CTL_UNREACHABLE, "ssh failed"},
		{127, CTL_UNREACHABLE, "edgeprofctl is not installed there"},
		{CTL_USAGE, CTL_UNREACHABLE, "edgeprofctl is too old there"},
		{CTL_UNREACHABLE, CTL_UNREACHABLE, "edgeprofd does not run there"},
		{CTL_NOT_PERMITTED, CTL_NOT_PERMITTED, "permission denied by edgeprofd"},
	};
	int code = remote_close(ctl->remote, GRACE_MS);
	ctl->remote = 0;
	ctl_disconnect(ctl);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].code == code) {
			return ctl_fail(ctl, reasons[i].status, "cannot connect to %s: %s",
				ctl_host(ctl, 0), reasons[i].reason);
		}
	}
	return ctl_fail(ctl, CTL_UNREACHABLE, "%s: the connection was closed", ctl_host(ctl, 0));
}
