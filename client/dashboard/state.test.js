// SPDX-License-Identifier: Apache-2.0
// state.test.js: node --test client/dashboard/state.test.js
import assert from "node:assert";
import { test } from "node:test";
import { createFleet, dateMs, hourOf, LIMITS, printable, receive, reconnected, rowOf, select, SLOT_MS, SLOTS, stateOf, topicsOf }
	from "./state.js";

const NOW = 1_800_000_000_000;
const bytes = (value) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
const boot = (seconds) => ({ boot_id: "b", mono_us: seconds * 1e6, ts_ms: 1, clock_synchronized: false });
const send = (fleet, topic, value, { retained = false, now = NOW } = {}) => receive(fleet, "p", `p/${topic}`, bytes(value), retained, now);
const summary = (fleet, id, at, values, now = NOW + at * 1000) => send(fleet, `${id}/summary`, { ...boot(at), ...values }, { now });
const alert = (severity, more = {}) => ({ ...boot(1), state: "firing", severity, metric: "temperature/max", text: "hot", ...more });
const names = (fleet, options = {}, now = NOW) => select(fleet, options, now).rows.map((row) => row.device.name);

test("topics are those of the daemon", () => {
	assert.deepEqual(topicsOf("p"), ["p/+/status", "p/+/info", "p/+/summary", "p/+/missed", "p/+/diagnosis/+", "p/+/stage/+/+", "p/+/alert/+/+"]);
});

test("a device is online, stale after three and a half intervals, offline by its will", () => {
	const fleet = createFleet();
	send(fleet, "d/status", "online", { retained: true });
	const device = fleet.devices.get("d");
	assert.equal(device.heard, 0);
	assert.equal(stateOf(device, NOW + 29_000), "online");
	assert.equal(stateOf(device, NOW + 31_000), "stale");
	summary(fleet, "d", 100, {});
	summary(fleet, "d", 120, {});
	assert.equal(stateOf(device, NOW + 189_000), "online");
	assert.equal(stateOf(device, NOW + 191_000), "stale");
	send(fleet, "d/status", "offline", { retained: true });
	assert.equal(stateOf(device, NOW), "offline");
	send(fleet, "d/status", "", { retained: true });
	assert.equal(fleet.devices.size, 0);
});

test("times are those of the receiver, also of what came before the first live message", () => {
	const fleet = createFleet();
	send(fleet, "d/alert/hot/_", alert("warning", { mono_us: 40e6 }), { retained: true });
	const device = fleet.devices.get("d"), { stamp } = device.alerts.get("hot/_");
	assert.equal(dateMs(device, stamp), null);
	summary(fleet, "d", 100, {});
	assert.equal(dateMs(device, stamp), NOW + 40_000);
	assert.equal(dateMs(device, { ts_ms: 7, synchronized: true }), 7);
	summary(fleet, "d", 100, {}, NOW + 2 * 86_400_000); // the old offset is forgotten
	assert.equal(dateMs(device, stamp), NOW + 2 * 86_400_000 - 60_000);
	for (let i = 0; i < 100; i++) {
		send(fleet, "d/summary", { boot_id: `b${i}`, mono_us: 1 });
	}
	assert.ok(device.offsets.size <= LIMITS.boots);
});

test("alerts fire, are acknowledged and end; a new connection awaits them again", () => {
	const fleet = createFleet();
	send(fleet, "d/alert/hot/_", alert("critical"), { retained: true });
	send(fleet, "d/alert/slow/cam", alert("warning", { metric: "frame/cam/fps" }), { retained: true });
	const row = () => rowOf(fleet.devices.get("d"), NOW);
	assert.deepEqual([row().alerts, row().open, row().worst.rule, row().tones.heat, row().tones.fps], [2, 2, "hot", 3, 2]);
	send(fleet, "d/alert/hot/_", alert("critical", { acked: true }));
	assert.deepEqual([row().open, row().worst.rule], [1, "slow"]);
	send(fleet, "d/alert/slow/cam", "");
	assert.deepEqual([row().alerts, row().open], [1, 0]);
	reconnected(fleet, NOW);
	assert.equal(row().alerts, 0);
});

test("the slowest app and stage are judged by their targets", () => {
	const fleet = createFleet();
	summary(fleet, "d", 1, { frame_cam_fps: 24, frame_cam_target_percent: 80 });
	send(fleet, "d/stage/cam/infer", { ...boot(1), p95_ms: 40, deadline_ms: 33 });
	send(fleet, "d/stage/cam/load", { ...boot(1), p95_ms: 400 });
	summary(fleet, "d", 2, { frame_cam_fps: 24, frame_cam_target_percent: 20 }); // no frame any more
	assert.equal(rowOf(fleet.devices.get("d"), NOW).app.target, 30);
	send(fleet, "d/info", { ...boot(2), config_hash: "0" });
	summary(fleet, "d", 2, { frame_cam_fps: 24, frame_cam_target_percent: 40 });
	assert.equal(rowOf(fleet.devices.get("d"), NOW).app.target, 60);
	send(fleet, "d/info", { ...boot(3), config_hash: "1" });
	summary(fleet, "d", 3, { frame_cam_fps: 24, frame_cam_target_percent: 80, frame_b_fps: 5, temperature_max_celsius: 61, throttle_active: 1,
		throttle_under_voltage: 1, throttle_throttled_occurred: 1, power_total_milliwatts: 12_500 });
	const row = rowOf(fleet.devices.get("d"), NOW);
	assert.deepEqual([row.app.app, row.app.target, row.tones.fps, row.stage.name, row.tones.stage], ["cam", 30, 2, "cam/infer", 2]);
	assert.deepEqual([row.throttled, row.device.throttle, row.device.values.get("power")], [true, ["under voltage"], 12.5]);
	assert.equal(rowOf(fleet.devices.get("d"), NOW + 60_000).stage, undefined); // no event any more
});

test("what was missed and what is wrong is kept", () => {
	const fleet = createFleet();
	send(fleet, "d/missed", { ...boot(9), alerts_count: 2, summaries_count: 30, others_count: 1, rule_1: "hot", rule_1_count: 2, first_mono_us: 3e6 });
	send(fleet, "d/diagnosis/cam", { ...boot(9), status: "findings", summary: "slow", evidence_1: "x", advice_1: "y" }, { retained: true });
	const { missed, diagnosis, device } = rowOf(fleet.devices.get("d"), NOW);
	assert.deepEqual([missed, device.missed.rules, diagnosis.summary, diagnosis.evidence], [33, ["hot 2"], "slow", ["x"]]);
});

test("rows are searched, filtered and sorted", () => {
	const fleet = createFleet();
	for (const [id, temperature] of [["n10", 50], ["n2", 70], ["n1", undefined]]) {
		summary(fleet, id, 1, { temperature_max_celsius: temperature });
	}
	send(fleet, "n2/info", { ...boot(1), model: "Jetson Orin" }, { retained: true });
	send(fleet, "n1/alert/disk/_", alert("warning"), { retained: true });
	assert.deepEqual(names(fleet), ["n1", "n2", "n10"]);
	assert.deepEqual(names(fleet, { sort: "name", reverse: true }), ["n10", "n2", "n1"]);
	assert.deepEqual(names(fleet, { sort: "heat" }), ["n2", "n10", "n1"]);
	assert.deepEqual(names(fleet, { search: "ORIN n2" }), ["n2"]);
	assert.deepEqual(names(fleet, { search: "disk" }), ["n1"]);
	assert.deepEqual(names(fleet, { filter: "alerts" }), ["n1"]);
	assert.deepEqual(names(fleet, { search: "none" }), []);
	assert.equal(new Map(select(fleet, {}, NOW).counts).get("all"), 3);
});

test("an hour is kept, gaps are gaps, older values go", () => {
	const fleet = createFleet(), base = Math.floor(NOW / SLOT_MS) * SLOT_MS;
	const at = (seconds, value) => summary(fleet, "d", seconds, { temperature_max_celsius: value }, base + seconds * 1000);
	at(0, 1);
	at(10, 2);
	at(200, 3);
	at(210, 4);
	const [times, values] = hourOf(fleet.devices.get("d"), ["temperature"], base + 200_000);
	assert.deepEqual(values, [1, 2, null, 3, 4]);
	summary(fleet, "d", 20, { temperature_max_celsius: 9 }, base + 210_000); // it has waited in a queue
	assert.deepEqual(hourOf(fleet.devices.get("d"), ["temperature"], base + 210_000)[1].slice(0, 3), [1, 2, 9]);
	assert.deepEqual(times, [0, 10, 190, 200, 210].map((s) => base / 1000 + s));
	at(SLOTS * 10 + 200, 5);
	summary(fleet, "d", 0, { temperature_max_celsius: 7 }, base + SLOTS * 10_000 + 200_000); // of more than an hour ago
	assert.deepEqual(hourOf(fleet.devices.get("d"), ["temperature"], base + SLOTS * 10_000 + 200_000)[1].filter(Boolean), [4, 5]);
	at(9e9, 6); // a mad clock
	assert.deepEqual(hourOf(fleet.devices.get("d"), ["temperature"], base + 9e12)[1], [6]);
});

test("hostile messages are refused or harmless", () => {
	const fleet = createFleet();
	for (const [topic, value] of [["d/summary", "{"], ["d/summary", "[1]"], ["d/summary", "null"], ["d/summary", "7"], ["d/summary", "[".repeat(60_000)],
		["d/status", "maybe"], ["/status", "online"], ["d", "x"], ["d/what", "{}"], ["d/stage/cam", "{}"], ["d/constructor/x", "{}"],
		[`${"d".repeat(LIMITS.name + 1)}/status`, "online"], ["d/summary", `{"x":"${"y".repeat(LIMITS.payload)}"}`], ["d/summary", ""]]) {
		assert.equal(send(fleet, topic, value), false, topic);
	}
	assert.equal(fleet.devices.size, 0);
	assert.equal(receive(fleet, "p", "p/d/status", new Uint8Array([0xff, 0xfe]), false, NOW), false);
	send(fleet, "__proto__/status", "online");
	send(fleet, "__proto__/summary", '{"__proto__":{"temperature_max_celsius":1},"temperature_max_celsius":"<b>","frame___proto___fps":1,"mono_us":1e999}');
	send(fleet, "__proto__/stage/constructor/__proto__", { p95_ms: "9", deadline_ms: [] });
	send(fleet, "__proto__/alert/__proto__/_", alert({ toString: 1 }, { text: { a: 1 }, metric: 5 }));
	send(fleet, "__proto__/missed", { alerts_count: 1e300, others_count: 0 });
	const device = fleet.devices.get("__proto__");
	assert.deepEqual([rowOf(device, NOW).missed, device.values.get("temperature"), device.apps.get("__proto__").fps, {}.temperature_max_celsius], [0, undefined, 1, undefined]);
	assert.equal(rowOf(device, NOW).worst.text, "__proto__");
	assert.equal(printable("a\u202Eb\u0000\u200B\uD800"), "a\uFFFDb\uFFFD\uFFFD\uFFFD");
	for (let i = 0; i < 200; i++) {
		send(fleet, `__proto__/alert/r${i}/_`, alert("info"));
		send(fleet, `__proto__/stage/a/s${i}`, { p95_ms: 1 });
		send(fleet, `__proto__/diagnosis/a${i}`, { summary: "x" });
	}
	assert.deepEqual([device.alerts.size, device.stages.size, device.diagnoses.size, device.series.size],
		[LIMITS.alerts, LIMITS.stages, LIMITS.diagnoses, LIMITS.series]);
	const later = NOW + SLOT_MS * SLOTS * 1.1; // what was not heard for an hour makes room
	assert.equal(send(fleet, "__proto__/stage/a/new", { p95_ms: 1 }, { now: NOW + 60_000 }), false);
	assert.equal(send(fleet, "__proto__/stage/a/new", { p95_ms: 1 }, { now: later }), true);
	assert.deepEqual([...device.stages.keys(), ...device.series.keys()], ["a/new", "stage/a/new"]);
	for (let i = 0; i < LIMITS.devices + 9; i++) {
		send(fleet, `d${i}/status`, "online");
	}
	assert.equal(fleet.devices.size, LIMITS.devices);
});
