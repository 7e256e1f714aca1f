// SPDX-License-Identifier: Apache-2.0
// main.js: connects to the broker, keeps its address in the fragment, draws twice a second and when the list is scrolled.
import mqtt from "mqtt";
import { createGraphs } from "./graph.js";
import { createFleet, receive, reconnected, select, topicsOf } from "./state.js";
import { byId, createList, drawDevice, element } from "./view.js";

const KEY = "edgeprof-fleet", REDRAW_MS = 500, BACKOFF_MS = 1000, BACKOFF_LIMIT_MS = 60000;
const KEEPALIVE_S = 180; // timers of a page in the background may be a minute late
const REFUSED = [4, 5]; // bad user name or password, not authorized: trying again would not help
const fleet = createFleet(), options = { search: "", filter: "all", sort: "trouble", reverse: false };
const target = { broker: "", prefix: "edgeprof", username: "", password: "" };
const link = { text: "not connected", good: false, attempts: 0, client: null, timer: 0 };
let selected = "", stale = true, queued = false;

function storage(use) {
	try { return use(localStorage); } catch { return null; } // not permitted to this page
}

function say(text, good = false) {
	Object.assign(link, { text, good });
	redraw();
}

function ask(problem = "") {
	byId("problem").textContent = problem;
	for (const [key, value] of Object.entries(target)) {
		byId("form").elements[key].value = value;
	}
	byId("dialog").open || byId("dialog").showModal();
}

// What an address contains of credentials goes to memory, and nowhere else.
function aim() {
	const url = new URL(target.broker);
	if (!/^wss?:$/.test(url.protocol)) {
		throw new Error("the address must begin with ws:// or wss://");
	}
	target.username ||= decodeURIComponent(url.username);
	target.password ||= decodeURIComponent(url.password);
	url.username = url.password = url.hash = "";
	target.broker = url.href;
	const fragment = `#${new URLSearchParams({ broker: target.broker, prefix: target.prefix })}`;
	storage((local) => local.setItem(KEY, fragment));
	history.replaceState(null, "", fragment + (selected && `&${new URLSearchParams({ device: selected })}`));
}

function later() {
	const delay = BACKOFF_MS / 4 + Math.random() * Math.min(BACKOFF_LIMIT_MS, BACKOFF_MS * 2 ** link.attempts++);
	link.timer = setTimeout(() => link.client.reconnect(), delay);
	say(`not connected, next attempt in ${Math.ceil(delay / 1000)} s`);
}

function connect() {
	clearTimeout(link.timer);
	link.client?.removeAllListeners().on("error", () => {}).end(true);
	fleet.devices.clear();
	let refusal = "";
	try {
		aim();
		link.client = mqtt.connect(target.broker, { protocolVersion: 4, reconnectPeriod: 0, resubscribe: false, keepalive: KEEPALIVE_S,
			timerVariant: "native", clientId: `edgeprof-page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`,
			username: target.username || undefined, password: target.password || undefined });
	} catch (error) {
		ask(error.message);
		return;
	}
	say("connecting");
	link.client.on("connect", () => {
		link.attempts = 0;
		reconnected(fleet, Date.now());
		const topics = topicsOf(target.prefix).map((topic) => [topic, { qos: /\+\/(summary|stage)/.test(topic) ? 0 : 1 }]);
		link.client.subscribe(Object.fromEntries(topics), (error) => error && say(`subscription refused: ${error.message}`));
		say("connected", true);
	});
	link.client.on("message", (topic, bytes, { retain }) => receive(fleet, target.prefix, topic, bytes, retain, Date.now()));
	link.client.on("error", (error) => { refusal = REFUSED.includes(error.code) ? error.message : ""; });
	link.client.on("close", () => (refusal ? (say(refusal), ask(refusal)) : later()));
}

function open(id, replace = false) {
	const params = new URLSearchParams(location.hash.slice(1));
	id ? params.set("device", id) : params.delete("device");
	history[replace ? "replaceState" : "pushState"](null, "", `#${params}`);
	follow();
}

function follow() {
	const params = new URLSearchParams(location.hash.slice(1));
	if ((params.get("broker") ?? target.broker) !== target.broker) {
		location.reload(); // another broker must not get this one's password
	}
	selected = params.get("device") ?? "";
	redraw();
}

function drawFilter([name, count]) {
	let button = byId(`filter-${name}`);
	if (!button) {
		button = element("button", "", name, element("b"));
		button.id = `filter-${name}`;
		button.addEventListener("click", () => redraw({ filter: options.filter === name ? "all" : name }));
		byId("filters").append(button);
	}
	button.lastChild.textContent = count;
	button.setAttribute("aria-pressed", options.filter === name);
}

function draw() {
	const now = Date.now(), fresh = stale;
	queued = stale = false;
	if (fresh) {
		const { rows, counts } = select(fleet, options, now), device = fleet.devices.get(selected);
		counts.forEach(drawFilter);
		list.show(rows, options);
		byId("empty").textContent = rows.length || !link.good ? "" : fleet.devices.size ? "No device matches." : "No device publishes here.";
		byId("broker").textContent = link.text + (fleet.refused ? `, ${fleet.refused} messages refused` : "");
		byId("broker").className = link.good ? "good" : "bad";
		byId("detail").hidden = !device;
		device && drawDevice(device, now);
		drawGraphs(device, now);
	}
	list.draw(now, selected, fresh);
}

const frame = () => (queued ||= Boolean(requestAnimationFrame(draw)));

function redraw(changed) {
	Object.assign(options, changed);
	stale = true;
	frame();
}

const list = createList(open, (sort) => redraw({ sort, reverse: options.sort === sort && !options.reverse }));
const drawGraphs = createGraphs(byId("graphs"));
setInterval(redraw, REDRAW_MS);
addEventListener("resize", () => redraw());
addEventListener("popstate", follow);
byId("list").addEventListener("scroll", frame, { passive: true });
byId("close").addEventListener("click", () => open(""));
byId("broker").addEventListener("click", () => ask());
byId("search").addEventListener("input", (event) => {
	byId("list").scrollTop = 0;
	redraw({ search: event.target.value });
});
addEventListener("keydown", (event) => {
	const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
	if (event.target === byId("list") && by) {
		event.preventDefault();
		list.step(selected, by);
	} else if (event.key === "Escape" && !byId("dialog").open && selected) {
		open("");
	}
});
byId("form").addEventListener("submit", () => {
	Object.assign(target, Object.fromEntries(new FormData(byId("form"))));
	connect();
});

const begin = new URLSearchParams((location.hash || storage((local) => local.getItem(KEY)) || "").slice(1));
target.broker = begin.get("broker") ?? "";
target.prefix = begin.get("prefix") ?? target.prefix;
selected = begin.get("device") ?? "";
target.broker ? connect() : ask();
redraw();
