/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c: finds out which broker to use. The daemon validates the configuration file; only one
 * section of it matters here, and only the values that are used are checked. */
#include "client/edgeprofctl/mqtt/mqtt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/text.h"

static const char own_config[] = "/etc/edgeprofd/edgeprofd.conf";

static int set_key(struct mqtt_setup *setup, const char *key, const char *value)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} texts[] = {
		{"host", setup->host, sizeof(setup->host)},
		{"username", setup->username, sizeof(setup->username)},
		{"password_file", setup->password_file, sizeof(setup->password_file)},
		{"ca_file", setup->ca_file, sizeof(setup->ca_file)},
		{"cert_file", setup->cert_file, sizeof(setup->cert_file)},
		{"key_file", setup->key_file, sizeof(setup->key_file)},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(key, texts[i].name) == 0) {
			snprintf(texts[i].to, texts[i].size, "%s", value);
		}
	}
	if (strcmp(key, "port") == 0) {
		setup->broker.port = (int)strtol(value, NULL, 10);
	}
	return strcmp(key, "tls") == 0 ? proto_tls_mode_parse(value, &setup->broker.tls) : 0;
}

static int read_config(const char *path, struct mqtt_setup *setup)
{
	char line[1024];
	bool ours = false;
	int r = 0;
	FILE *file = fopen(path, "re");
	if (!file) {
		return -errno;
	}
	while (r == 0 && fgets(line, sizeof(line), file)) {
		char *text = text_trim(line);
		char *comment = strstr(text, " ;"), *equals;
		if (comment) {
			*comment = '\0';
		}
		if (text[0] == '[') {
			ours = strncmp(text, "[mqtt]", 6) == 0;
		} else if (ours && text[0] != '#' && text[0] != ';' &&
			   (equals = strchr(text, '='))) {
			*equals = '\0';
			r = set_key(setup, text_trim(text), text_trim(equals + 1));
		}
	}
	r = ferror(file) ? -EIO : r;
	fclose(file);
	return r;
}

static int ask_daemon(struct ctl *ctl, struct mqtt_setup *setup)
{
	cJSON *reply;
	int status = ctl_call(ctl, "GetStatus", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	const cJSON *broker = json_get(reply, "broker");
	snprintf(setup->host, sizeof(setup->host), "%s", json_word(broker, "host"));
	setup->broker.port = (int)json_integer(broker, "port");
	cJSON_Delete(reply);
	return CTL_FINE;
}

/* Of several brokers it is the one that the daemon uses; its files and names are those of all. */
static int choose_broker(struct ctl *ctl, struct mqtt_setup *setup)
{
	struct proto_address list[PROTO_BROKERS_MAX];
	char error[300];
	int count = proto_brokers_parse(setup->host, list, error, sizeof(error));
	if (count < 0) {
		return ctl_fail(ctl, CTL_USAGE, "host: %s", error);
	}
	if (count > 1) {
		return ask_daemon(ctl, setup);
	}
	snprintf(setup->host, sizeof(setup->host), "%s", list[0].host);
	setup->broker.port = list[0].port ? list[0].port : setup->broker.port;
	return CTL_FINE;
}

int mqtt_setup_read(struct ctl *ctl, struct mqtt_setup *setup)
{
	if (ctl->options.config) {
		int r = read_config(ctl->options.config, setup);
		if (r < 0) {
			return ctl_fail(ctl, CTL_NO_INPUT, "cannot read %s: %s",
				ctl->options.config, strerror(-r));
		}
	} else if (!ctl->options.host) {
		read_config(own_config, setup);
	}
	if (ctl->options.host) {
		snprintf(setup->host, sizeof(setup->host), "%s", ctl->options.host);
	}
	if (setup->host[0] == '\0' && !ctl->options.config) {
		int status = ask_daemon(ctl, setup);
		if (status != CTL_FINE) {
			return status;
		}
	}
	if (setup->host[0] == '\0') {
		return ctl_fail(ctl, CTL_USAGE,
			"no broker is configured; use --host HOST or --config FILE");
	}
	int status = choose_broker(ctl, setup);
	if (status != CTL_FINE) {
		return status;
	}
	struct proto_broker *broker = &setup->broker;
	broker->host = setup->host;
	broker->ca_file = setup->ca_file;
	broker->cert_file = setup->cert_file;
	broker->key_file = setup->key_file;
	broker->port = ctl->options.port > 0 ? (int)ctl->options.port : broker->port;
	broker->port = proto_broker_port(broker);
	if (setup->username[0] != '\0' && proto_broker_exposes(broker)) {
		return ctl_fail(ctl, CTL_USAGE,
			"the password would be sent to %s in clear text: set tls = yes in [mqtt], "
			"or tls = no to send it anyway",
			setup->host);
	}
	return CTL_FINE;
}

int mqtt_setup_password(const struct mqtt_setup *setup, char *ret, size_t size)
{
	struct stat st;
	int fd = open(setup->password_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		return -errno;
	}
	bool safe = S_ISREG(st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO)) == 0;
	ssize_t got = safe ? read(fd, ret, size) : 0;
	int error = got < 0 ? errno : (size_t)got == size ? EFBIG : safe ? 0 : EPERM;
	close(fd);
	if (error != 0) {
		return -error;
	}
	got -= got > 0 && ret[got - 1] == '\n';
	ret[got] = '\0';
	return memchr(ret, '\0', (size_t)got) ? -EINVAL : 0;
}
