/* What about the MQTT settings can be told to be unusable before anything is connected. */
#pragma once

#include <stddef.h>

struct mqtt_options;

/* 0, or -EINVAL with the reason: a setting is missing, or the password's file cannot be used by
 * this process. */
int mqtt_check(const struct mqtt_options *options, char *reason, size_t size);
