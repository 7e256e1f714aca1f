// SPDX-License-Identifier: Apache-2.0
// build.mjs: makes one HTML file of the page, with a policy that allows what is in it and WebSockets, nothing else.
// usage: node build.mjs OUTPUT
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const here = new URL(".", import.meta.url).pathname;
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const bundle = async (entry, more) => {
	const { outputFiles } = await build({ absWorkingDir: here, entryPoints: [entry], bundle: true, minify: true, write: false,
		legalComments: "inline", ...more });
	return outputFiles[0].text.trim();
};

const script = (await bundle("main.js", { format: "iife", platform: "browser", target: "es2022", define: { "process.env.NODE_ENV": '"production"' } }))
	.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const style = await bundle("style.css", {}) + readFileSync(`${here}node_modules/uplot/dist/uPlot.min.css`, "utf8").trim();
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; connect-src ws: wss:; base-uri 'none'; `
	+ "form-action 'none'; require-trusted-types-for 'script'";
const page = readFileSync(`${here}index.html`, "utf8");
const parts = { CSP: policy, STYLE: style, SCRIPT: script };
writeFileSync(process.argv[2], page.replace(/@(CSP|STYLE|SCRIPT)@/g, (_all, name) => parts[name]));
