/*
 * The methods' functions, one a method, in topic files method_*.c; dispatch.c holds their rows. A
 * function writes the reply's fields into call->out and returns API_LAST, or replaces them by an
 * error (reply_*), or starts a stream.
 */
#pragma once

#include "daemon/varlink/server/dispatch.h"

enum api_result method_get_info(struct api_call *call);
enum api_result method_get_interface_description(struct api_call *call);

enum api_result method_get_status(struct api_call *call);
enum api_result method_get_snapshot(struct api_call *call);
enum api_result method_list_sources(struct api_call *call);
enum api_result method_set_source(struct api_call *call);
enum api_result method_reload(struct api_call *call);
enum api_result method_get_self(struct api_call *call);

enum api_result method_get_throttle(struct api_call *call);
enum api_result method_list_metrics(struct api_call *call);
enum api_result method_get_history(struct api_call *call);
enum api_result method_list_boots(struct api_call *call);
enum api_result method_export_trace(struct api_call *call);
enum api_result method_record_now(struct api_call *call);
enum api_result method_list_recordings(struct api_call *call);
enum api_result method_get_recording(struct api_call *call);

enum api_result method_list_apps(struct api_call *call);
enum api_result method_list_stages(struct api_call *call);
enum api_result method_get_frames(struct api_call *call);
enum api_result method_get_report(struct api_call *call);
enum api_result method_list_processes(struct api_call *call);
enum api_result method_watch_process(struct api_call *call);

enum api_result method_list_alerts(struct api_call *call);
enum api_result method_list_rules(struct api_call *call);
enum api_result method_ack_alert(struct api_call *call);
enum api_result method_silence_alert(struct api_call *call);
enum api_result method_list_silences(struct api_call *call);
enum api_result method_get_alert_log(struct api_call *call);
enum api_result method_test_alert(struct api_call *call);
enum api_result method_list_events(struct api_call *call);
enum api_result method_mark(struct api_call *call);
enum api_result method_list_marks(struct api_call *call);
enum api_result method_subscribe(struct api_call *call);
