/* The Raspberry Pi's throttle word, from the best place that can be read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/collect/board/pi_firmware.h"
#include "daemon/collect/board/pi_tool.h"
#include "daemon/collect/lib/device_file.h"
#include "daemon/core/metrics/throttle.h"

#define THROTTLE_PI_RETRY_NS UINT64_C(60000000000) /* a firmware that failed is asked again */
#define THROTTLE_PI_HOLD_NS UINT64_C(5000000000)   /* the alarm flickers at a low supply */

struct throttle_pi {
	struct pi_firmware firmware;
	bool has_firmware, has_word, has_alarm;
	bool resting; /* the firmware failed and is not asked until retry_ns */
	bool failed;  /* just now: sample sets retry_ns */
	uint64_t retry_ns;
	int firmware_result, word_result, alarm_result; /* of the last reads; -ENODEV = none */
	struct pi_tool tool;
	bool asked_tool; /* by the last fetch, for nothing else told */
	int tool_result;
	uint32_t value;
	const char *firmware_source;
	long long alarm_value;
	struct device_file word, alarm;
	uint64_t alarm_ns; /* when it was last on; 0 = never */
	uint32_t seen;	   /* bits 0-3: was seen, now or as sticky */
};

/* Looks for the places and notes each in status->tried; may hang. vcgencmd: its path, NULL or "" =
 * never run. How many can be read; -ENOMEM. */
int throttle_pi_probe(struct throttle_pi *pi, const struct root *root, const char *vcgencmd,
	struct throttle_status *status);

/* Reads the best place that can be read; no more, as it runs on a worker. */
void throttle_pi_fetch(struct throttle_pi *pi, const struct root *root);

/* Sets the flags that it told. */
void throttle_pi_sample(struct throttle_pi *pi, struct throttle_status *status, uint64_t now_ns);

/* Of `found` things that the machine has, all are the alarm, or a program that is not asked where
 * the alarm can be read. */
static inline bool throttle_pi_only_alarm(const struct throttle_pi *pi, int found)
{
	return pi->has_alarm && !pi->has_firmware && !pi->has_word &&
	       found == 1 + (pi_tool_check(&pi->tool) == 0);
}
void throttle_pi_close(struct throttle_pi *pi); /* only after throttle_pi_probe */
