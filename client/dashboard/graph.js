// SPDX-License-Identifier: Apache-2.0
// graph.js: draws the last hour of one device, a graph for each kind of series.
import uPlot from "uplot";
import { hourOf, printable } from "./state.js";
import { element } from "./view.js";

const INKS = 6, HEIGHT = 130, HOUR_S = 3600;
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// [title, its series, target lines, how much room around the values: else from 0]
function groupsOf(device) {
	const names = [...device.series.keys()], start = (text) => names.filter((name) => name.startsWith(text));
	const unique = (values) => [...new Set(values.map((value) => value > 0 && +value.toFixed(1)))].filter(Number).slice(0, 2);
	return [["Frames/s", start("fps/"), unique([...device.apps.values()].map((app) => app.target))],
		["Stages, p95, ms", start("stage/"), unique([...device.stages.values()].map((stage) => stage.deadline_ms))],
		["Temperature, °C", start("temperature"), [], 10], ["Power, W", start("power"), []],
		["Use, %", names.filter((name) => ["CPU", "GPU", "memory"].includes(name)), []]]
		.map(([title, series, ...more]) => [title, series.slice(0, INKS), ...more]).filter(([, series]) => series.length);
}

function make(box, [title, names, lines, around]) {
	const spans = names.map((name, i) => element("span", `l${i}`, printable(name.replace(/^(fps|stage)\//, "")), element("b")));
	const target = lines.length ? [element("span", "target", lines.join(", "))] : [];
	const values = ({ data, cursor }) => spans.forEach((span, i) => {
		const column = data[i + 1], value = column[cursor.idx ?? column.findLastIndex(Number.isFinite)];
		span.lastChild.textContent = Number.isFinite(value) ? ` ${value.toFixed(1)}` : " –";
	});
	const clock = (s) => new Date(s * 1000).toLocaleTimeString([], { timeStyle: "short" });
	const axis = { stroke: () => ink("--dim"), grid: { stroke: () => ink("--rule"), width: 1 }, ticks: { show: false },
		font: "11px system-ui" };
	const range = (_plot, low, high) => (around ? [(low ?? 0) - around, (high ?? 0) + around]
		: [Math.min(0, low ?? 0), Math.max(high ?? 1, 1e-3) * 1.1]);
	const series = [{}, ...names.map((_name, i) => ({ stroke: () => ink(`--l${i}`), width: 1.5, points: { size: 3 } })),
		...lines.map(() => ({ stroke: () => ink("--bad"), width: 1, dash: [5, 4], points: { show: false } }))];
	const holder = element("div");
	box.append(element("h3", "", title), element("div", "key", ...spans, ...target), holder);
	const plot = new uPlot({ width: box.clientWidth, height: HEIGHT, legend: { show: false }, scales: { y: { range } }, series,
		cursor: { sync: { key: "hour" }, y: false, drag: { x: false } }, hooks: { setCursor: [values] },
		axes: [{ ...axis, size: 26, values: (_plot, times) => times.map(clock) }, { ...axis, size: 44 }] }, series.map(() => []), holder);
	return { plot, names, lines, values };
}

export function createGraphs(box) {
	let graphs = [], shape = "";
	new ResizeObserver(() => graphs.forEach(({ plot }) => plot.setSize({ width: box.clientWidth, height: HEIGHT }))).observe(box);
	return function draw(device, now) {
		const groups = device ? groupsOf(device) : [], wanted = JSON.stringify([device?.id, groups]);
		if (wanted !== shape) {
			shape = wanted;
			graphs.forEach(({ plot }) => plot.destroy());
			box.replaceChildren();
			graphs = groups.map((group) => make(box, group));
		}
		graphs.forEach(({ plot, names, lines, values }) => plot.batch(() => {
			const hour = hourOf(device, names, now);
			plot.setData([...hour, ...lines.map((value) => hour[0].map(() => value))], false);
			plot.setScale("x", { min: now / 1000 - HOUR_S, max: now / 1000 });
			values(plot);
		}));
	};
}
