// SPDX-License-Identifier: Apache-2.0
// view.js: shows rows and one device. What comes from the wire becomes text nodes, nothing else.
import { dateMs, stageShare, stagesOf, stateOf } from "./state.js";

const TONES = ["", "", "warn", "bad"], STATES = { online: "good", stale: "warn", offline: "bad" };
const COLUMNS = [["name", "Device"], ["trouble", "State"], ["fps", "Frames/s"], ["stage", "Slowest stage"], ["heat", "Temperature"],
	["power", "Power"], ["alerts", "Alerts"], ["diagnosis", "Diagnosis"], ["missed", "Missed"]];

export const byId = (id) => document.getElementById(id);

export function element(tag, className = "", ...children) {
	const made = document.createElement(tag);
	made.className = className;
	made.append(...children);
	return made;
}

const short = (value) => value.toFixed(value < 9.95 ? 2 : value < 99.5 ? 1 : 0);
const join = (...texts) => texts.filter((text) => text).join(" · ");
const limit = (value) => (value ? `of ${+value.toFixed(1)}` : "");

function age(ms) {
	const [unit, name] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([seconds]) => ms >= 2000 * seconds) ?? [1, "s"];
	return `${Math.max(0, Math.round(ms / 1000 / unit))} ${name}`;
}

// [text, second line, tone, share of a target] of each column
function cellsOf({ device, state, app, stage, worst, diagnosis, ...row }, now) {
	const { values, info } = device, degrees = values.get("temperature"), watts = values.get("power");
	const throttle = row.throttled ? device.throttle.join(", ") || "throttled" : "";
	return [[device.name, join(info.get("model") ?? info.get("arch"), info.get("version"))],
		[state, device.heard ? `${age(now - device.heard)} ago` : "", STATES[state]],
		app ? [short(app.fps), join(limit(app.target), app.app), TONES[row.tones.fps], app.percent / 100] : [],
		stage?.p95_ms !== undefined
			? [`${short(stage.p95_ms)} ms`, join(limit(stage.deadline_ms), stage.name), TONES[row.tones.stage], stageShare(stage)] : [],
		degrees !== undefined || throttle
			? [degrees === undefined ? "throttled" : `${degrees.toFixed(1)} °C`, throttle, TONES[row.tones.heat]] : [],
		watts !== undefined ? [`${short(watts)} W`, "", TONES[row.tones.power]] : [],
		worst ? [row.open ? `${row.open} firing` : `${row.alerts} acknowledged`, worst.text, row.open ? TONES[worst.weight] : ""] : [],
		diagnosis ? [diagnosis.summary, diagnosis.app, diagnosis.found ? "warn" : ""] : [],
		row.missed ? [`${row.missed}`, "messages", "warn"] : []];
}

export function createList(onOpen, onSort) {
	const list = byId("list"), body = byId("rows"), head = byId("head"), pool = [];
	let rows = [], height = 1;
	const set = (node, key, value) => (node[key] === value ? undefined : (node[key] = value));
	head.append(...COLUMNS.map(([key, title]) => {
		const button = element("button", key, title);
		button.addEventListener("click", () => onSort(key));
		return button;
	}));
	body.addEventListener("click", (event) => {
		const node = event.target.closest(".row");
		node && onOpen(rows[node.index].device.id);
	});
	const makeRow = () => element("div", "row", ...COLUMNS.map(() => element("div", "", element("b"), element("i"), element("u"))));
	const fill = (node, row, now) => cellsOf(row, now).forEach(([text = "", second = "", tone = "", share], i) => {
		const cell = node.children[i], bar = Number.isFinite(share) ? `${Math.round(Math.min(100, Math.max(0, share * 100)))}%` : "";
		set(cell.children[0], "textContent", text);
		set(cell.children[1], "textContent", second);
		set(cell, "title", `${text}\n${second}`);
		set(cell, "className", `cell ${COLUMNS[i][0]} ${tone}${bar && " bar"}`);
		if (cell.share !== bar) {
			cell.style.setProperty("--share", cell.share = bar);
		}
	});

	// Only the rows in view exist; an element keeps its row while it is scrolled.
	function draw(now, selected, fresh) {
		height = fresh ? parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) : height;
		const first = Math.max(0, Math.floor(list.scrollTop / height) - 6), count = Math.ceil(list.clientHeight / height) + 12;
		set(body.style, "height", `${rows.length * height}px`);
		while (pool.length < count) {
			body.append(pool[pool.push(makeRow()) - 1]);
		}
		for (let index = first; index < first + pool.length; index++) {
			const node = pool[index % pool.length], row = rows[index];
			set(node, "hidden", !row);
			if (row && (fresh || node.index !== index)) {
				node.index = index;
				node.style.transform = `translateY(${index * height}px)`;
				node.className = `row${row.device.id === selected ? " selected" : ""}${row.state === "online" ? "" : " gone"}`;
				fill(node, row, now);
			}
		}
	}

	function show(shown, { sort, reverse }) {
		rows = shown;
		COLUMNS.forEach(([key], i) => head.children[i].setAttribute("aria-sort",
			key !== sort ? "none" : reverse ? "descending" : "ascending"));
	}

	function step(selected, by) {
		const at = rows.findIndex((row) => row.device.id === selected);
		const index = Math.min(rows.length - 1, Math.max(0, at + by)), top = index * height;
		list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + height + head.offsetHeight - list.clientHeight));
		rows[index] && onOpen(rows[index].device.id, true);
	}
	return { draw, show, step };
}

const section = (title, children) => (children.length ? [element("h3", "", title), ...children] : []);
const note = (...texts) => element("small", "", join(...texts));

function when(device, stamp) {
	const ms = dateMs(device, stamp);
	return ms === null || Math.abs(ms) > 8e15 ? "an unknown time" : new Date(ms).toLocaleString();
}

const alertOf = (device) => (alert) => element("p", alert.acked ? "" : TONES[alert.weight], alert.text,
	note(alert.rule, alert.instance, `since ${when(device, alert.stamp)}`, alert.acked ? "acknowledged" : "not acknowledged",
		alert.silenced && "silenced"));

const diagnosisOf = ({ found, summary, app, confidence, evidence, advice }) => element("p", found ? "warn" : "", summary,
	note(app, confidence && `confidence ${confidence}`), ...evidence.map((text) => note(text)), ...advice.map((text) => note(`→ ${text}`)));

const missedOf = (device, { first, last, alerts, summaries, others, rules }) => element("p", "",
	`${alerts} alerts, ${summaries} summaries, ${others} others`,
	note(`from ${when(device, first)} to ${when(device, last)}`, rules.join(", ")));

function stageTable(stages) {
	const columns = [["rate_per_second", "per s"], ["p50_ms", "p50 ms"], ["p95_ms", "p95"], ["p99_ms", "p99"],
		["deadline_ms", "deadline"]];
	const cell = (value) => element("td", "", value === undefined ? "–" : short(value));
	return element("table", "", element("tr", "", element("th", "", "Stage"), ...columns.map(([, title]) => element("th", "", title))),
		...stages.map((stage) => element("tr", stageShare(stage) > 1 ? "warn" : "", element("td", "", stage.name),
			...columns.map(([key]) => cell(stage[key])))));
}

function aboutOf(device, now) {
	const since = device.started && dateMs(device, device.started.stamp), uptime = device.started?.uptime;
	return [["heard", device.heard ? new Date(device.heard).toLocaleTimeString() : "not since this page is open"],
		...Array.from(device.info, ([key, value]) => [key.replaceAll("_", " "), value]),
		...(since && uptime !== undefined ? [["running for", age(now - since + uptime * 1000)]] : [])];
}

// One device; drawn again only where something has changed.
export function drawDevice(device, now) {
	const state = stateOf(device, now), stages = stagesOf(device, now);
	const facts = element("div", "", element("h2", "", device.name, " ", element("small", STATES[state], state)),
		...section("Alerts", [...device.alerts.values()].map(alertOf(device))),
		...section("Diagnosis", [...device.diagnoses.values()].map(diagnosisOf)),
		...section("Missed", device.missed ? [missedOf(device, device.missed)] : []),
		...section("Stages", stages.length ? [stageTable(stages)] : []));
	const about = element("dl", "", ...aboutOf(device, now).flatMap(([key, value]) => [element("dt", "", key), element("dd", "", value)]));
	for (const [id, fresh] of [["facts", facts], ["about", about]]) {
		byId(id).firstChild?.isEqualNode(fresh) || byId(id).replaceChildren(fresh);
	}
}
