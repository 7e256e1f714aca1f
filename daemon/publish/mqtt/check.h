/* What can be said about the MQTT settings before anything is connected. */
#pragma once

#include <stddef.h>

#include "proto/tls_mode.h"

struct mqtt_options;

/* 0, or -EINVAL with the reason: a setting is missing, or the password's file cannot be used by
 * this process. */
int mqtt_check(const struct mqtt_options *options, char *reason, size_t size);

/* What decides about encryption; it points into options. */
struct proto_broker mqtt_broker(const struct mqtt_options *options);

/* Credentials would leave this machine as clear text. */
bool mqtt_exposes(const struct mqtt_options *options);
