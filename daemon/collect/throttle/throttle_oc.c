/* Part of the throttle collector: oc<n>_event_cnt count since boot; oc1 is under-voltage, oc2
 * average and oc3 instantaneous over-current. An Orin at full power has some each second, as
 * designed (0.9 % of the time at half clock), so they are rates and do not make `active`. */
#include "daemon/collect/throttle/throttle_oc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/throttle/throttle_hwmon.h"

static void add_event(
	struct throttle_oc *oc, const struct root *root, unsigned number, const char *folder)
{
	char text[64];
	struct device_file *file = &oc->event[oc->count].file;
	if (device_file_init(file, true, "%.100s/oc%u_event_cnt", folder, number) < 0) {
		return;
	}
	if (device_file_read(file, root, text, sizeof(text)) == -ENOENT) {
		return;
	}
	oc->event[oc->count].number = number;
	oc->event[oc->count].last = -1;
	oc->count++;
}

int throttle_oc_probe(
	struct throttle_oc *oc, const struct root *root, struct throttle_status *status)
{
	char folder[DEVICE_FILE_PATH];
	int r = throttle_hwmon_find(root, "soctherm_oc", folder);
	if (r == -ENOMEM) {
		return r;
	}
	for (unsigned number = 1; r == 0 && number <= THROTTLE_OC_MAX; number++) {
		add_event(oc, root, number, folder);
	}
	throttle_add_tried(
		status, "hwmon soctherm_oc", "%s", oc->count > 0 ? "used for rates" : "absent");
	return (int)oc->count;
}

int throttle_oc_name(struct throttle_oc *oc, struct naming *naming)
{
	for (size_t i = 0; i < oc->count; i++) {
		char path[PROTO_PATH_SIZE];
		snprintf(path, sizeof(path), "throttle/oc%u_rate", oc->event[i].number);
		int r = naming_add_exact(naming, path, UNIT_PER_SECOND, &oc->event[i].rate);
		if (r == -ENOMEM) {
			return r;
		}
	}
	return 0;
}

void throttle_oc_fetch(struct throttle_oc *oc, const struct root *root)
{
	for (size_t i = 0; i < oc->count; i++) {
		oc->event[i].result =
			device_file_read_i64(&oc->event[i].file, root, &oc->event[i].value);
	}
}

void throttle_oc_sample(struct throttle_oc *oc, struct throttle_status *status, uint64_t now_ns)
{
	double seconds = oc->t_ns != 0 ? (double)(now_ns - oc->t_ns) / 1e9 : 0;
	bool known = false;
	for (size_t i = 0; i < oc->count; i++) {
		struct metric *rate = oc->event[i].rate;
		if (!rate) {
			continue;
		}
		long long value = oc->event[i].value, last = oc->event[i].last;
		int r = oc->event[i].result;
		if (r < 0 || value < 0) {
			metric_set_null(rate, r < 0 ? device_file_reason(r) : "out of range");
			oc->event[i].last = -1;
			continue;
		}
		oc->event[i].last = value;
		if (last < 0 || seconds <= 0) {
			metric_set_null(rate, "needs two samples");
		} else if (value < last) {
			metric_set_null(rate, "counter went back");
		} else {
			metric_set(rate, (double)(value - last) / seconds);
			throttle_join(status,
				oc->event[i].number == 1 ? THROTTLE_UNDER_VOLTAGE
							 : THROTTLE_OVER_CURRENT,
				value > last);
			known = true;
		}
	}
	oc->t_ns = now_ns;
	if (known) {
		throttle_add_source(status, "soctherm_oc");
	} else if (oc->count > 0) {
		status->flag[THROTTLE_OVER_CURRENT].reason = "needs two samples";
	}
}

void throttle_oc_close(struct throttle_oc *oc)
{
	for (size_t i = 0; i < oc->count; i++) {
		device_file_close(&oc->event[i].file);
	}
	memset(oc, 0, sizeof(*oc));
}
