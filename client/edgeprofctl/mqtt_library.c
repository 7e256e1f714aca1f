/* The name of the library is its ABI's: libmosquitto 1 and 2 share it. */
#include "client/edgeprofctl/mqtt_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

int mqtt_library_load(struct mqtt_library *library)
{
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"mosquitto_lib_init", &library->lib_init},
		{"mosquitto_new", &library->create},
		{"mosquitto_destroy", &library->destroy},
		{"mosquitto_connect", &library->connect},
		{"mosquitto_disconnect", &library->disconnect},
		{"mosquitto_loop", &library->loop},
		{"mosquitto_subscribe", &library->subscribe},
		{"mosquitto_publish", &library->publish},
		{"mosquitto_int_option", &library->int_option},
		{"mosquitto_void_option", &library->void_option},
		{"mosquitto_username_pw_set", &library->credentials},
		{"mosquitto_connect_callback_set", &library->on_connect},
		{"mosquitto_subscribe_callback_set", &library->on_subscribe},
		{"mosquitto_message_callback_set", &library->on_message},
		{"mosquitto_log_callback_set", &library->on_log},
		{"mosquitto_strerror", &library->error_text},
		{"mosquitto_connack_string", &library->refusal_text},
		{"mosquitto_sub_topic_check", &library->check_filter},
		{"mosquitto_pub_topic_check", &library->check_topic},
	};
	library->handle = dlopen("libmosquitto.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library->handle == NULL) {
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = dlsym(library->handle, wanted[i].name);
		if (symbol == NULL) {
			return -ENOENT;
		}
		/* As POSIX shows it: C has no cast from an object pointer to a function. */
		*(void **)wanted[i].to = symbol;
	}
	library->lib_init();
	return 0;
}
