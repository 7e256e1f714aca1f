/*
 * The state of an app's current or latest run, as every query and the reports name it. A run is
 * one process from attach to end, or several processes of the app that overlap in time.
 */
#pragma once

#include <stdint.h>

struct app;

enum app_state {
	APP_RUNNING,
	APP_IDLE,   /* a process is attached and no stream had an event for its idle limit */
	APP_HUNG,   /* a stage is open far longer than usual (app_hang.h) */
	APP_ENDED,  /* on purpose: bye, exit 0, SIGTERM, SIGINT, SIGHUP */
	APP_DIED,   /* a crash signal, or an unexplained end */
	APP_KILLED, /* SIGKILL */
	APP_STATES
};

enum app_state app_state(const struct app *app, uint64_t now_ns);

/* "running", "idle", "hung", "ended", "died", "killed". */
const char *app_state_name(enum app_state state);
