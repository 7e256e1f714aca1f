/* SPDX-License-Identifier: Apache-2.0 */
/* tls_mode.c: parses the setting `tls`, and applies its rule to a broker. */
#include "proto/tls_mode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

int proto_tls_mode_parse(const char *text, enum proto_tls_mode *ret)
{
	static const char *const names[] = {
		[PROTO_TLS_AUTO] = "auto", [PROTO_TLS_YES] = "yes", [PROTO_TLS_NO] = "no"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum proto_tls_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool proto_broker_encrypted(const struct proto_broker *broker)
{
	switch (broker->tls) {
	case PROTO_TLS_YES:
		return true;
	case PROTO_TLS_NO:
		return false;
	case PROTO_TLS_AUTO:
		break;
	}
	return broker->port == PROTO_MQTTS_PORT || broker->ca_file[0] != '\0' ||
	       broker->cert_file[0] != '\0';
}

int proto_broker_port(const struct proto_broker *broker)
{
	int usual = proto_broker_encrypted(broker) ? PROTO_MQTTS_PORT : PROTO_MQTT_PORT;
	return broker->port > 0 ? broker->port : usual;
}

static bool is_loopback(const char *host)
{
	struct in_addr address;
	struct in6_addr address6;
	if (inet_pton(AF_INET, host, &address) == 1) {
		return ntohl(address.s_addr) >> 24 == 127;
	}
	if (inet_pton(AF_INET6, host, &address6) == 1) {
		return IN6_IS_ADDR_LOOPBACK(&address6);
	}
	return strcasecmp(host, "localhost") == 0;
}

bool proto_broker_exposes(const struct proto_broker *broker)
{
	return broker->tls != PROTO_TLS_NO && !proto_broker_encrypted(broker) &&
	       !is_loopback(broker->host);
}
