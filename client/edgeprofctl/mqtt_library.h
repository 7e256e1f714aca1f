/*
 * libmosquitto, loaded when a verb needs it: linked, it and OpenSSL would cost every other verb
 * about 1 ms at its start (measured on x86-64: 0.9 ms), and edgeprofctl would not run without it.
 */
#pragma once

#include <mosquitto.h>

struct mqtt_library {
	void *handle; /* of dlopen(3) */
	__typeof__(mosquitto_lib_init) *lib_init;
	__typeof__(mosquitto_new) *create;
	__typeof__(mosquitto_destroy) *destroy;
	__typeof__(mosquitto_connect) *connect;
	__typeof__(mosquitto_disconnect) *disconnect;
	__typeof__(mosquitto_loop) *loop;
	__typeof__(mosquitto_subscribe) *subscribe;
	__typeof__(mosquitto_publish) *publish;
	__typeof__(mosquitto_int_option) *int_option;
	__typeof__(mosquitto_void_option) *void_option;
	__typeof__(mosquitto_username_pw_set) *credentials;
	__typeof__(mosquitto_connect_callback_set) *on_connect;
	__typeof__(mosquitto_subscribe_callback_set) *on_subscribe;
	__typeof__(mosquitto_message_callback_set) *on_message;
	__typeof__(mosquitto_log_callback_set) *on_log;
	__typeof__(mosquitto_strerror) *error_text;
	__typeof__(mosquitto_connack_string) *refusal_text;
	__typeof__(mosquitto_sub_topic_check) *check_filter;
	__typeof__(mosquitto_pub_topic_check) *check_topic;
};

/* 0, or -ENOENT: not installed, or without one of the functions. Stays loaded. */
int mqtt_library_load(struct mqtt_library *library);
