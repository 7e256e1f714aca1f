/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c: applies user name, password and encryption to a connection, and checks them before.
 * Used once at start, to refuse a wrong file early, and by the broker's thread before each
 * connection, so that a changed password takes effect. No password is ever logged.
 */
#include "daemon/publish/mqtt/options.h"

#include <errno.h>
#include <fcntl.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"

/* systemd gives a credential to the service's user by an access list where the file system has
 * them; the mode then shows the list's mask as group bits although no group may read. */
static bool is_credential(const char *path)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	size_t length = folder ? strlen(folder) : 0;
	return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/' &&
	       !strstr(path + length, "/../");
}

static int secret_load(int fd, mode_t forbidden, char *buf, size_t size)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EINVAL;
	}
	if (st.st_mode & forbidden) {
		return -EPERM;
	}
	size_t used = 0;
	while (used < size) {
		ssize_t n = read(fd, buf + used, size - used);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -errno;
		}
		if (n == 0) {
			break;
		}
		used += (size_t)n;
	}
	if (used == size) {
		return -EFBIG;
	}
	if (used > 0 && buf[used - 1] == '\n') {
		used--;
	}
	buf[used] = '\0';
	return memchr(buf, '\0', used) ? -EINVAL : 0;
}

int secret_read(const char *path, char *buf, size_t size)
{
	/* O_NONBLOCK: a fifo must not hang the caller. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return -errno;
	}
	mode_t forbidden = is_credential(path) ? S_IRWXO : S_IRWXG | S_IRWXO;
	int r = secret_load(fd, forbidden, buf, size);
	close(fd);
	if (r < 0) {
		explicit_bzero(buf, size);
	}
	return r;
}

int mqtt_check(const struct mqtt_options *options, char *reason, size_t size)
{
	if (options->brokers == 0) {
		snprintf(reason, size, "no host");
		return -EINVAL;
	}
	if (options->cert_file[0] != '\0' && options->key_file[0] == '\0') {
		snprintf(reason, size, "cert_file without key_file");
		return -EINVAL;
	}
	if (options->password_file[0] == '\0') {
		return 0;
	}
	if (options->username[0] == '\0') {
		snprintf(reason, size, "password_file without username");
		return -EINVAL;
	}
	char password[512];
	int r = secret_read(options->password_file, password, sizeof(password));
	explicit_bzero(password, sizeof(password));
	if (r == -EIO || r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EINTR) {
		return 0; /* that may pass: it is read again for each connection */
	}
	if (r < 0) {
		/* the reason comes first: a long path may be cut */
		snprintf(reason, size, "password_file: %s: %s",
			r == -EPERM ? "refused, group or others may read it" : errno_reason(r),
			options->password_file);
		return -EINVAL;
	}
	return 0;
}

struct proto_broker mqtt_broker(const struct mqtt_options *options, unsigned index)
{
	const struct proto_address *address = &options->broker[index];
	struct proto_broker broker = {.tls = options->tls,
		.host = address->host,
		.port = address->port ? address->port : options->port,
		.ca_file = options->ca_file,
		.cert_file = options->cert_file,
		.key_file = options->key_file};
	broker.port = proto_broker_port(&broker);
	return broker;
}

const char *mqtt_exposes(const struct mqtt_options *options)
{
	bool credentials = options->username[0] != '\0' || options->password_file[0] != '\0';
	for (unsigned i = 0; credentials && i < options->brokers; i++) {
		struct proto_broker broker = mqtt_broker(options, i);
		if (proto_broker_exposes(&broker)) {
			return broker.host;
		}
	}
	return NULL;
}

int mqtt_authenticate(
	struct mosquitto *mosq, const struct mqtt_options *options, char *reason, size_t size)
{
	if (options->username[0] == '\0') {
		return 0;
	}
	char password[512] = "";
	if (options->password_file[0] != '\0') {
		int r = secret_read(options->password_file, password, sizeof(password));
		if (r < 0) {
			snprintf(reason, size, "password file: %s",
				r == -EPERM ? "others may read it" : errno_reason(r));
			return MOSQ_ERR_AUTH;
		}
	}
	int code =
		mosquitto_username_pw_set(mosq, options->username, password[0] ? password : NULL);
	explicit_bzero(password, sizeof(password));
	return code;
}

static const char *context_fault(int r)
{
	switch (r) {
	case -ENOENT:
		return "ca_file, cert_file or key_file can't be read";
	case -EINVAL:
		return "TLS: no certificate can hold this host name";
	default:
		return "TLS: no memory";
	}
}

int mqtt_encrypt(
	struct mosquitto *mosq, const struct proto_broker *broker, char *reason, size_t size)
{
	SSL_CTX *context;
	if (!proto_broker_encrypted(broker)) {
		return 0;
	}
	int r = proto_broker_context(broker, &context);
	if (r < 0) {
		snprintf(reason, size, "%s", context_fault(r));
		return MOSQ_ERR_TLS;
	}
	int code = mosquitto_void_option(mosq, MOSQ_OPT_SSL_CTX, context);
	SSL_CTX_free(context); /* it has its own reference */
	code = code ? code : mosquitto_int_option(mosq, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
	if (code == MOSQ_ERR_NOT_SUPPORTED) {
		snprintf(reason, size, "TLS: this libmosquitto was built without it");
	}
	return code;
}
