/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c: calls sd_notify(3) and sd_listen_fds(3) for the rest of the daemon. */
#include "daemon/host/notify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/util/log.h"

enum { REPLY_US = 500000 }; /* of the service manager */

int notify_listen_fd(void)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);
	int found = -1;
	for (int i = 0; i < count; i++) {
		int fd = SD_LISTEN_FDS_START + i;
		if (found < 0 && strcmp(names[i], "varlink") == 0 &&
			sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0) {
			found = fd;
		} else {
			log_warning("closed an unexpected socket passed by the service manager: %s",
				names[i]);
			close(fd);
		}
	}
	for (int i = 0; i < count; i++) {
		free(names[i]);
	}
	free(names);
	return found;
}

void notify_state(const char *format, ...)
{
	char state[320];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(state, sizeof(state), format, arguments);
	va_end(arguments);
	sd_notify(0, state);
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t usec = 0;
	return sd_watchdog_enabled(0, &usec) > 0 ? usec / 3000 : 0;
}

bool notify_system_stops(void)
{
	sd_bus *bus = NULL;
	char *state = NULL;
	bool stops = false;
	if (sd_bus_open_system(&bus) >= 0 && sd_bus_set_method_call_timeout(bus, REPLY_US) >= 0 &&
		sd_bus_get_property_string(bus, "org.freedesktop.systemd1",
			"/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
			"SystemState", NULL, &state) >= 0) {
		stops = strcmp(state, "stopping") == 0;
	}
	free(state);
	sd_bus_close_unref(bus);
	return stops;
}
