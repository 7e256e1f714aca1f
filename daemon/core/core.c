/* The words for states, as answers and the status screen show them. */
#include "daemon/core/core.h"

const char *broker_state_name(enum broker_state state)
{
	switch (state) {
	case BROKER_OFF:
		return "off";
	case BROKER_CONNECTING:
		return "connecting";
	case BROKER_CONNECTED:
		return "connected";
	case BROKER_AWAY:
		return "away";
	}
	return "unknown";
}

const char *persist_state_name(enum persist_state state)
{
	switch (state) {
	case PERSIST_OFF:
		return "off";
	case PERSIST_STARTING:
		return "starting";
	case PERSIST_OK:
		return "ok";
	case PERSIST_PAUSED:
		return "paused";
	case PERSIST_DEGRADED:
		return "degraded";
	case PERSIST_STUCK:
		return "stuck";
	case PERSIST_IMPAIRED:
		return "impaired";
	}
	return "unknown";
}
