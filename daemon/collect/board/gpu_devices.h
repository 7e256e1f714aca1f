/* The files of GPUs, NPUs and other engines, and the metrics made of them. */
#pragma once

#include <stddef.h>

#include "daemon/collect/board/gpu_load.h"
#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/collector.h"

enum { GPU_VALUES_MAX = 64, GPU_TEXT_SIZE = 128 };

/* One file, one metric. */
struct gpu_value {
	struct device_file file;
	char name[PROTO_PATH_SIZE]; /* of the metric */
	enum unit unit;
	bool meek; /* not told when another source tells it */
	struct metric *metric;
	enum gpu_scale scale; /* of a load */
	double factor;	      /* of a clock, to hertz; 0 = it is a load */
	bool activity;	      /* mc_all: kHz of memory traffic, a share of the EMC's clock */
	int result;	      /* of the last read, and what it gave */
	long long number;
	char text[GPU_TEXT_SIZE]; /* of a load, instead of number */
};

struct gpu_values {
	size_t count;
	struct gpu_value value[GPU_VALUES_MAX];
};

/* Finds what this machine has; may hang. The number, or -ENOMEM. */
int gpu_devices_probe(struct gpu_values *values, const struct root *root);

/* Adds the metrics. What another source tells already, or has no room, is left out. 0, -ENOMEM. */
int gpu_devices_name(struct gpu_values *values, struct naming *naming);
