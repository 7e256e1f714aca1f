/* Asked before the broker's thread is started, and by --check-config. The password is read and
 * forgotten: the thread reads it anew for each connection. */
#include "daemon/publish/mqtt/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/publish/mqtt/mqtt.h"
#include "daemon/publish/mqtt/secret.h"

int mqtt_check(const struct mqtt_options *options, char *reason, size_t size)
{
	if (options->host[0] == '\0') {
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

struct proto_broker mqtt_broker(const struct mqtt_options *options)
{
	return (struct proto_broker){.tls = options->tls,
		.host = options->host,
		.port = options->port,
		.ca_file = options->ca_file,
		.cert_file = options->cert_file};
}

bool mqtt_exposes(const struct mqtt_options *options)
{
	struct proto_broker broker = mqtt_broker(options);
	bool credentials = options->username[0] != '\0' || options->password_file[0] != '\0';
	return credentials && proto_broker_exposes(&broker);
}
