/*
 * The verbs: each asks the daemon, writes its answer to ctl->output and returns the exit status.
 * The show_ functions render one answer and are shared with watch.
 */
#pragma once

#include <stdio.h>

#include "client/edgeprofctl/ctl.h"

int verb_status(struct ctl *ctl);
int verb_snapshot(struct ctl *ctl);
int verb_sensors(struct ctl *ctl);
int verb_metrics(struct ctl *ctl);
int verb_report(struct ctl *ctl);
int verb_stages(struct ctl *ctl);
int verb_frames(struct ctl *ctl);
int verb_apps(struct ctl *ctl);
int verb_ps(struct ctl *ctl);
int verb_power(struct ctl *ctl);
int verb_history(struct ctl *ctl);
int verb_trace(struct ctl *ctl);
int verb_record(struct ctl *ctl);
int verb_alerts(struct ctl *ctl);
int verb_rules(struct ctl *ctl);
int verb_ack(struct ctl *ctl);
int verb_silence(struct ctl *ctl);
int verb_test_alert(struct ctl *ctl);
int verb_events(struct ctl *ctl);
int verb_watch(struct ctl *ctl);
int verb_throttle(struct ctl *ctl);
int verb_self(struct ctl *ctl);
int verb_mark(struct ctl *ctl);
int verb_marks(struct ctl *ctl);
int verb_source(struct ctl *ctl);
int verb_doctor(struct ctl *ctl);
int verb_reload(struct ctl *ctl);
int verb_parse(struct ctl *ctl); /* asks nobody */
int verb_emit(struct ctl *ctl);
int verb_mqtt_latency(struct ctl *ctl);
int verb_version(struct ctl *ctl);

/* Renderers: `reply` is the answer of ListMetrics, ListStages, GetFrames, ListAlerts. */
void show_metrics(struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name));
void show_stages(struct ctl *ctl, const cJSON *reply);
void show_frames(struct ctl *ctl, const cJSON *reply);
void show_alerts(struct ctl *ctl, const cJSON *reply);
