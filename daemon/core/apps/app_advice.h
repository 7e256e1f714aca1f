/*
 * The advice of all apps: brings each one what advice.h judges by, and tells changes of the level
 * on the timeline. Whoever delivers it reads app->advice and watches the serial.
 */
#pragma once

#include "daemon/core/apps/advice.h"

struct apps;

/* Takes the settings (a copy); in effect at the next sample. */
void apps_configure_advice(struct apps *apps, const struct advice_options *options);

/* Grows with each change of any app's advice; that of an app is in app->advice.serial. */
uint64_t apps_advice_serial(const struct apps *apps);
