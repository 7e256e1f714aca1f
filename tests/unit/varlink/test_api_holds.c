/* SPDX-License-Identifier: Apache-2.0 */
/* AckAlert, SilenceAlert, ListSilences, GetAlertLog, TestAlert over the socket: what they refuse,
 * by name, and what they answer; every reply against the description. */
#include "tests/unit/varlink/api_fixture.h"

#include "daemon/core/alerts/actions.h"
#include "tests/unit/unit.h"

static void start(void)
{
	fixture_open();
	fixture_serve();
}

static void end(void)
{
	fixture_close();
}

static bool refused(const char *method, const char *parameters, const char *name)
{
	char wanted[64];
	snprintf(wanted, sizeof(wanted), "%s", name);
	return strstr(ask_error(method, parameters), wanted) != NULL;
}

FIXTURE(start, end);

START_TEST(what_is_wrong_is_named)
{
	ck_assert(refused("AckAlert", "{}", "InvalidParameter"));
	ck_assert(refused("AckAlert", "{\"rule\":\"h*\"}", "InvalidParameter"));
	ck_assert(refused("AckAlert", "{\"rule\":\"hot\",\"instance\":\"\"}", "InvalidParameter"));
	ck_assert(refused("AckAlert", "{\"rule\":\"nothing\"}", "NotFound"));
	ck_assert(refused("SilenceAlert", "{\"rule\":\"hot\"}", "InvalidParameter"));
	ck_assert(
		refused("SilenceAlert", "{\"rule\":\"hot\",\"seconds\":0.5}", "InvalidParameter"));
	ck_assert(refused("SilenceAlert", "{\"rule\":\"a/b\",\"seconds\":5}", "InvalidParameter"));
	ck_assert(refused("SilenceAlert", "{\"rule\":\"hot\",\"seconds\":5,\"remove\":true}",
		"InvalidParameter"));
	ck_assert(refused("SilenceAlert", "{\"rule\":\"hot\",\"remove\":true}", "NotFound"));
	ck_assert(refused("GetAlertLog", "{\"limit\":129}", "InvalidParameter"));
	ck_assert(refused("TestAlert", "{\"text\":\"\"}", "InvalidParameter"));
	ck_assert(refused("TestAlert", "{\"severity\":\"bad\"}", "InvalidParameter"));
}
END_TEST

START_TEST(an_alert_is_acknowledged_silenced_and_logged)
{
	fixture_temperature(80, 0);
	cJSON *reply = ask("AckAlert", "{\"rule\":\"hot\",\"note\":\"known \xc3\xa9\"}");
	ck_assert_int_eq((int)number(reply, "alerts"), 1);
	cJSON_Delete(reply);
	reply = ask(
		"SilenceAlert", "{\"rule\":\"h?t\",\"instance\":\"temperature/*\",\"seconds\":60}");
	ck_assert(number(reply, "until_us") > 0);
	cJSON_Delete(reply);
	reply = ask("ListAlerts", NULL);
	const cJSON *alert = get(reply, "alerts")->child;
	ck_assert(cJSON_IsTrue(get(alert, "acked")) && cJSON_IsTrue(get(alert, "silenced")));
	ck_assert_str_eq(string(alert, "ack_note"), "known \xc3\xa9");
	ck_assert_int_eq((int)number(alert, "acked_by_uid"), (int)geteuid());
	cJSON_Delete(reply);
	reply = ask("ListSilences", NULL);
	ck_assert_int_eq(count(reply, "silences"), 1);
	ck_assert_str_eq(string(get(reply, "silences")->child, "instance"), "temperature/*");
	cJSON_Delete(reply);
	reply = ask("GetAlertLog", NULL);
	ck_assert_int_eq(count(reply, "transitions"), 1);
	ck_assert_str_eq(string(get(reply, "transitions")->child, "to"), "firing");
	cJSON_Delete(reply);
	reply = ask("GetAlertLog", "{\"since_us\":4000000000000000}");
	ck_assert_int_eq(count(reply, "transitions"), 0);
	cJSON_Delete(reply);
	cJSON_Delete(ask("AckAlert", "{\"rule\":\"hot\",\"remove\":true}"));
	cJSON_Delete(ask("SilenceAlert",
		"{\"rule\":\"h?t\",\"instance\":\"temperature/*\",\"remove\":true}"));
}
END_TEST

START_TEST(a_test_waits_for_the_broker_no_longer_than_it_may)
{
	cJSON *reply = ask("TestAlert", "{\"seconds\":1}");
	ck_assert_str_eq(string(reply, "mqtt"), "off");
	ck_assert_str_eq(string(reply, "journal"), "off");
	ck_assert_str_eq(string(reply, "state"), "firing");
	cJSON_Delete(reply);
	ck_assert(refused("TestAlert", "{\"seconds\":1}", "LimitReached"));
	alerts_tick(f.core.alerts, sysops()->now_ns() + 2 * (uint64_t)FIXTURE_SECOND);
	ck_assert_uint_eq(alerts_last_test(f.core.alerts)->serial, 2);
}
END_TEST
