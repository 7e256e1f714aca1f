/* SPDX-License-Identifier: Apache-2.0 */
/* security.h: declares how a connection is authenticated and encrypted. */
#pragma once

#include <stddef.h>

struct mosquitto;
struct mqtt_options;

/* Reads the file into buf, NUL-terminated, one trailing newline cut. 0; -EPERM when group or others
 * may access it
 * (a group may, below $CREDENTIALS_DIRECTORY); -EINVAL when it is not a plain file or holds a NUL;
 * -EFBIG when it does not fit; other -errno of open and read. On failure buf holds nothing of it.
 * Clear buf with explicit_bzero after use. Any thread. */
int secret_read(const char *path, char *buf, size_t size);

/* Before the connection: user name and password, as they are configured now. A code of
 * libmosquitto; reason is set when it is not 0. */
int mqtt_authenticate(
	struct mosquitto *mosq, const struct mqtt_options *options, char *reason, size_t size);

/* Before the connection, when it is encrypted: authorities, our certificate, and the host's name
 * that the broker's must hold. As above; nothing was sent then. */
int mqtt_encrypt(
	struct mosquitto *mosq, const struct mqtt_options *options, char *reason, size_t size);
