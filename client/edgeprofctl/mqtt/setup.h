/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h: gets the broker's address and credentials from options, a configuration file of
 * edgeprofd, or the running daemon. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "proto/tls.h"

struct mqtt_setup {
	char host[256];
	int port;
	enum proto_tls_mode tls;
	bool encrypted; /* what that and the rest come to */
	char username[128], password_file[256];
	char ca_file[256], cert_file[256], key_file[256];
};

/* --host and --port come first; the rest is that of [mqtt] in --config FILE, or in edgeprofd's own
 * configuration when neither --host nor --config is given; a host is asked of the daemon at last.
 * An exit status; errors are reported. */
int mqtt_setup_read(struct ctl *ctl, struct mqtt_setup *ret);

/* The password in the file, which only its owner may read. 0, -EPERM, -EFBIG, -EINVAL (a NUL in
 * it), -errno. */
int mqtt_setup_password(const struct mqtt_setup *setup, char *ret, size_t size);
