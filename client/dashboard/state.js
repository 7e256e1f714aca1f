// SPDX-License-Identifier: Apache-2.0
// state.js: keeps what the devices of a broker publish and judges it, without the DOM and without a clock.
// Everything from the wire is hostile: sizes, types, names. What exceeds a limit is refused and counted.
import { timeUs } from "./time.js";

export const LIMITS = { devices: 5000, payload: 65536, name: 128, text: 400, boots: 4, apps: 16, stages: 64, alerts: 64,
	diagnoses: 16, series: 32 };
export const SLOT_MS = 10000, SLOTS = 360; // the last hour
const DAY_MS = 86400000, PATIENCE_MS = 30000, SLOW_PERCENT = 90; // of the target, as the daemon's own rule
const SEVERITY = new Map([["info", 1], ["warning", 2], ["critical", 3]]);
const decoder = new TextDecoder();

// Control, invisible and bidirectional characters would let a name pose as another.
export const printable = (text) => text.slice(0, LIMITS.text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
const number = (from, key) => (Number.isFinite(from[key]) && Math.abs(from[key]) < 1e15 ? from[key] : undefined);
const string = (from, key) => (typeof from[key] === "string" ? printable(from[key]) : undefined);

// false: there are too many, and none that is gone makes room.
function put(map, limit, key, value, isGone = () => false) {
	if (!map.has(key) && map.size >= limit) {
		map.forEach((one, name) => isGone(one) && map.delete(name));
	}
	return (map.has(key) || map.size < limit) && Boolean(map.set(key, value));
}

function parse(bytes) {
	let value = null;
	try { value = JSON.parse(decoder.decode(bytes)); } catch { /* refused below */ }
	return typeof value === "object" && !Array.isArray(value) ? value : null;
}

export const createFleet = () => ({ devices: new Map(), refused: 0 });

const createDevice = (id, now) => ({ id, name: printable(id), status: "", since: now, heard: 0, interval: 0, slot: 0,
	offsets: new Map(), offsetsSince: now, info: new Map(), values: new Map(), throttle: [], apps: new Map(),
	targets: new Map(), stages: new Map(), alerts: new Map(), diagnoses: new Map(), missed: null, series: new Map() });

// A broker does not say which retained messages are gone, so after a connection they are awaited again.
export function reconnected(fleet, now) {
	fleet.devices.forEach((device) => Object.assign(device, { alerts: new Map(), diagnoses: new Map(), status: "", since: now }));
}

const stampOf = (payload, prefix = "") => ({ boot_id: string(payload, "boot_id"), mono_us: number(payload, `${prefix}mono_us`),
	ts_ms: number(payload, `${prefix}ts_ms`), synchronized: payload.clock_synchronized === true });

// When it happened, by the clock of this machine; null: not known.
export function dateMs(device, stamp) {
	const us = timeUs(stamp, 0, true, device.offsets);
	return us !== null ? us / 1000 : (stamp.synchronized && stamp.ts_ms) || null;
}

function learnOffset(device, stamp, retained, now) {
	if (now - device.offsetsSince > DAY_MS) { // the oscillators drift
		Object.assign(device, { offsets: new Map(), offsetsSince: now });
	}
	timeUs(stamp, now * 1000, retained, device.offsets);
	device.offsets.size > LIMITS.boots && device.offsets.delete(device.offsets.keys().next().value);
}

function record(device, time, name, value) {
	const slot = Math.floor(time / SLOT_MS);
	if (value === undefined || slot <= device.slot - SLOTS) {
		return;
	}
	for (let gone = Math.max(device.slot + 1, slot - SLOTS + 1); gone <= slot; gone++) {
		device.series.forEach((values) => { values[gone % SLOTS] = NaN; });
	}
	device.slot = Math.max(device.slot, slot);
	const isGone = (values) => values.every(Number.isNaN);
	if (device.series.has(name) || put(device.series, LIMITS.series, name, new Float32Array(SLOTS).fill(NaN), isGone)) {
		device.series.get(name)[slot % SLOTS] = value;
	}
}

const VALUES = [["temperature", "temperature_max_celsius", 1], ["power", "power_total_milliwatts", 1000],
	["CPU", "cpu_utilization_percent", 1], ["GPU", "gpu_utilization_percent", 1], ["memory", "memory_used_percent", 1]];

function takeSummary(device, payload, _names, time) {
	const before = device.values.get("time");
	device.interval = before === undefined ? 0 : Math.max(0, time - before);
	device.values = new Map([["time", time], ["throttled", number(payload, "throttle_active")]]);
	for (const [name, key, divisor] of VALUES) {
		const value = number(payload, key);
		device.values.set(name, value === undefined ? value : value / divisor);
		record(device, time, name, device.values.get(name));
	}
	const keys = Object.keys(payload);
	device.throttle = keys.filter((key) => /^throttle_(?!active)[a-z_]{1,40}(?<!_occurred)$/.test(key) && payload[key] === 1)
		.slice(0, 6).map((key) => key.slice(9).replaceAll("_", " "));
	device.apps.clear();
	for (const app of keys.map((key) => /^frame_(.{1,128})_fps$/.exec(key)?.[1])) {
		const fps = number(payload, `frame_${app}_fps`), percent = number(payload, `frame_${app}_target_percent`);
		if (app !== undefined && fps !== undefined) {
			// The percentage falls at once when no frame comes, the rate later: the least ratio is the target.
			const target = percent > 0 ? Math.min(fps * 100 / percent, device.targets.get(app) ?? Infinity) : undefined;
			target && put(device.targets, LIMITS.apps, app, target);
			put(device.apps, LIMITS.apps, app, { app: printable(app), fps, percent, target });
			record(device, time, `fps/${app}`, fps);
		}
	}
}

function takeStage(device, payload, names, time, _stamp, now) {
	const numbers = ["rate_per_second", "p50_ms", "p95_ms", "p99_ms", "deadline_ms"].map((key) => [key, number(payload, key)]);
	record(device, time, `stage/${names.join("/")}`, number(payload, "p95_ms"));
	return put(device.stages, LIMITS.stages, names.join("/"),
		{ name: names.map(printable).join("/"), heard: now, ...Object.fromEntries(numbers) },
		(stage) => now - stage.heard > SLOT_MS * SLOTS);
}

function takeAlert(device, payload, names, _time, stamp) {
	if (payload.state !== "firing") {
		device.alerts.delete(names.join("/"));
		return true;
	}
	return put(device.alerts, LIMITS.alerts, names.join("/"), { rule: printable(names[0]), stamp,
		instance: names[1] === "_" ? "" : printable(names[1]), metric: string(payload, "metric") ?? "",
		text: string(payload, "text") || printable(names[0]), weight: SEVERITY.get(payload.severity) ?? 1,
		acked: payload.acked === true, silenced: payload.silenced === true });
}

function takeDiagnosis(device, payload, names) {
	const texts = (kind) => [1, 2, 3, 4, 5].map((i) => string(payload, `${kind}_${i}`)).filter((text) => text);
	return put(device.diagnoses, LIMITS.diagnoses, names[0], { app: printable(names[0]), summary: string(payload, "summary") ?? "",
		found: payload.status === "findings", confidence: string(payload, "confidence"),
		evidence: texts("evidence"), advice: texts("advice") });
}

function takeMissed(device, payload, _names, _time, { synchronized }) {
	const rules = [];
	for (let i = 1; i <= 32 && string(payload, `rule_${i}`); i++) {
		rules.push(`${string(payload, `rule_${i}`)} ${number(payload, `rule_${i}_count`) ?? 0}`);
	}
	const [first, last] = ["first_", "last_"].map((prefix) => ({ ...stampOf(payload, prefix), synchronized }));
	const [alerts, summaries, others] = ["alerts", "summaries", "others"].map((kind) => number(payload, `${kind}_count`) ?? 0);
	device.missed = { first, last, alerts, summaries, others, rules };
}

const INFO = ["version", "model", "os", "kernel", "arch", "config_hash", "boot_reason", "boot_reason_detail", "reset_reason"];

function takeInfo(device, payload, _names, _time, stamp) {
	device.targets.clear(); // it is sent when the configuration has changed, too
	device.info = new Map(INFO.map((key) => [key, string(payload, key)]).filter(([, value]) => value));
	device.started = { stamp, uptime: number(payload, "uptime_s") };
}

// levels below the kind, who takes it, the map that an empty payload removes it from
const KINDS = new Map([["status", [0]], ["info", [0, takeInfo]], ["summary", [0, takeSummary]], ["missed", [0, takeMissed]],
	["diagnosis", [1, takeDiagnosis, "diagnoses"]], ["stage", [2, takeStage]], ["alert", [2, takeAlert, "alerts"]]]);

export const topicsOf = (prefix) => Array.from(KINDS, ([kind, [levels]]) => `${prefix}/+/${kind}${"/+".repeat(levels)}`);

// Takes one message; false: refused.
export function receive(fleet, prefix, topic, bytes, retained, now) {
	const accepted = topic.startsWith(`${prefix}/`) && topic.length <= 4 * LIMITS.name && bytes.length <= LIMITS.payload
		&& take(fleet, topic.slice(prefix.length + 1).split("/"), bytes, retained, now);
	fleet.refused += accepted ? 0 : 1;
	return accepted;
}

function take(fleet, [id, kind, ...names], bytes, retained, now) {
	const [levels, handler, kept] = KINDS.get(kind) ?? [-1];
	if (!id || names.length !== levels || [id, ...names].some((name) => name.length > LIMITS.name)) {
		return false;
	}
	if (!bytes.length && (kept || kind === "status")) { // the state has ended; without a status the device is withdrawn
		kept ? fleet.devices.get(id)?.[kept].delete(names.join("/")) : fleet.devices.delete(id);
		return true;
	}
	const payload = handler ? parse(bytes) : /^(?:online|offline)$/.exec(decoder.decode(bytes.subarray(0, 8)))?.[0];
	const device = fleet.devices.get(id) ?? createDevice(id, now);
	if (!payload || !put(fleet.devices, LIMITS.devices, id, device)) {
		return false;
	}
	device.heard = retained ? device.heard : now;
	if (!handler) {
		device.status = payload;
		return true;
	}
	const stamp = stampOf(payload);
	learnOffset(device, stamp, retained, now);
	return handler(device, payload, names, Math.min(now, dateMs(device, stamp) ?? now), stamp, now) !== false;
}

const silence = (device) => Math.max(PATIENCE_MS, 3.5 * device.interval);

export function stateOf(device, now) {
	const silent = now - Math.max(device.heard, device.since) > silence(device);
	return device.status === "offline" ? "offline" : silent ? "stale" : "online";
}

export const stageShare = (stage) => (stage?.deadline_ms > 0 ? stage.p95_ms / stage.deadline_ms : undefined);
export const stagesOf = (device, now) => [...device.stages.values()].filter((stage) => now - stage.heard <= silence(device));
const least = (list, of) => list.reduce((best, one) => (best === undefined || of(one) < of(best) ? one : best), undefined);

// What a row shows. Tones are weights of severities: of alerts that fire, or a warning if a target or a deadline is missed.
export function rowOf(device, now) {
	const alerts = [...device.alerts.values()], open = alerts.filter((alert) => !alert.acked), state = stateOf(device, now);
	const tone = (start, missed) => Math.max(missed ? 2 : 0,
		...alerts.filter((one) => one.metric.startsWith(start)).map((one) => one.weight));
	const app = least([...device.apps.values()], (one) => (one.percent ?? 1e9) + one.fps / 1e6);
	const stage = least(stagesOf(device, now), (one) => -(stageShare(one) ?? (one.p95_ms ?? 0) / 1e9));
	const diagnosis = least([...device.diagnoses.values()], (one) => (one.found ? 0 : 1));
	const missed = device.missed ? device.missed.alerts + device.missed.summaries + device.missed.others : 0;
	const throttled = device.values.get("throttled") === 1, slow = app?.percent < SLOW_PERCENT;
	return { device, state, app, stage, diagnosis, missed, throttled, alerts: alerts.length, open: open.length,
		worst: least(alerts, (alert) => -alert.weight - (alert.acked ? 0 : 10)),
		tones: { fps: tone("frame/", slow), stage: tone("stage/", stageShare(stage) > 1), power: tone("power/", false),
			heat: Math.max(tone("temperature/", throttled), tone("throttle/", false)) },
		trouble: Math.max(0, ...open.map((alert) => 10 * alert.weight)) + { online: 0, stale: 8, offline: 9 }[state]
			+ (diagnosis?.found ? 4 : 0) + (alerts.length ? 2 : 0) + (slow ? 1 : 0) };
}

const collator = new Intl.Collator("en", { numeric: true });
const ORDERS = new Map([["name", () => 0], ["trouble", (row) => -row.trouble], ["missed", (row) => -row.missed],
	["fps", (row) => row.app && (row.app.percent ?? 1e6 + row.app.fps)], ["stage", (row) => -stageShare(row.stage)],
	["heat", (row) => -row.device.values.get("temperature") - (row.throttled ? 1000 : 0)],
	["power", (row) => -row.device.values.get("power")], ["diagnosis", (row) => row.diagnosis && (row.diagnosis.found ? 0 : 1)],
	["alerts", (row) => -(row.worst?.weight ?? 0) - 10 * row.open - row.alerts / 100]]);
const FILTERS = new Map([["all", () => true], ["alerts", (row) => row.alerts > 0], ["throttled", (row) => row.throttled],
	...["online", "stale", "offline"].map((state) => [state, (row) => row.state === state])]);

function matches({ device, state, diagnosis }, words) {
	if (!words.length) {
		return true;
	}
	const text = [device.name, state, ...device.info.values(), diagnosis?.summary, ...device.apps.keys(),
		...[...device.alerts.values()].flatMap((alert) => [alert.rule, alert.text])].join("\n").toLowerCase();
	return words.every((word) => text.includes(word));
}

// The rows to show, in their order, and how many each filter has.
export function select(fleet, { search = "", filter = "all", sort = "trouble", reverse = false }, now) {
	const rows = Array.from(fleet.devices.values(), (device) => rowOf(device, now));
	const words = search.toLowerCase().split(/\s+/).filter((word) => word);
	const key = (row) => (Number.isFinite(ORDERS.get(sort)(row)) ? ORDERS.get(sort)(row) : Infinity);
	const shown = rows.filter((row) => FILTERS.get(filter)(row) && matches(row, words)).map((row) => ({ row, key: key(row) }))
		.sort((a, b) => (a.key === b.key ? collator.compare(a.row.device.name, b.row.device.name) : a.key < b.key ? -1 : 1));
	return { rows: (reverse ? shown.reverse() : shown).map(({ row }) => row),
		counts: Array.from(FILTERS, ([name, keep]) => [name, rows.filter(keep).length]) };
}

// The last hour of some series for a graph: [seconds, values, …]; null where nothing arrived for a while.
export function hourOf(device, names, now) {
	const gap = Math.max(6, 3 * device.interval / SLOT_MS), columns = [[], ...names.map(() => [])];
	const push = (slot, values) => [slot * SLOT_MS / 1000, ...values].forEach((value, i) => columns[i].push(value));
	let before = Infinity;
	for (let slot = Math.max(Math.floor(now / SLOT_MS), device.slot) - SLOTS + 1; slot <= device.slot; slot++) {
		const values = names.map((name) => device.series.get(name)?.[slot % SLOTS]);
		if (values.some(Number.isFinite)) {
			slot - before > gap && push(slot - 1, names.map(() => null));
			push(slot, values.map((value) => (Number.isFinite(value) ? value : undefined)));
			before = slot;
		}
	}
	return columns;
}
