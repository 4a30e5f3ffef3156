// `node build.mjs OUT WASM REPORTS`: the site's files. WASM is where bindgen has put its own, REPORTS
// where `simnel paper` has. `node build.mjs report OUT`: only what the pages of commands are made with,
// which stands in crates/lab/src/report/front, so that cargo needs no npm. SITE_URL is where the site will be: a chat that shows a link's picture
// wants its whole address.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { papers } from "./papers.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const common = { bundle: true, minify: true, target: "es2022", logLevel: "warning", legalComments: "none" };

/** What the pages of commands are made with: one script, one style sheet, with the licence of what is in them. */
async function report(out) {
    const licence = await readFile(join(here, "node_modules", "uplot", "LICENSE"), "utf8");
    const banner = `/* Made from site/src by site/build.mjs. With uPlot:\n${licence.trim()}\n*/`;
    const entryPoints = ["report.ts", "report.css"].map((name) => join(here, "src", name));
    await build({ ...common, format: "iife", entryPoints, outdir: out, banner: { js: banner, css: banner } });
}

if (process.argv[2] === "report" && process.argv[3]) {
    await report(resolve(process.argv[3]));
    process.exit();
}
const [out, wasm, reports] = process.argv.slice(2).map((path) => resolve(path));
if (!out || !wasm || !reports) {
    console.error("build.mjs: expected OUT WASM REPORTS, or report OUT");
    process.exit(2);
}
Object.assign(common, {
    format: "esm",
    loader: { ".toml": "text" },
    alias: { "lab-wasm": join(wasm, "lab.js") },
    outdir: out,
});

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
    ...common,
    entryPoints: ["lab.ts", "disciplines.ts", "papers.ts", "worker.ts", "style.css"].map((name) => join(here, "src", name)),
});
await report(out);
for (const name of ["index.html", "disciplines.html", "icon.svg"]) await cp(join(here, "src", name), join(out, name));
await cp(join(wasm, "lab_bg.wasm"), join(out, "lab.wasm"));

await papers(reports, out);

// What the service worker keeps, and a name that changes with any of it.
const files = (await readdir(out)).sort();
const picture = process.env.SITE_URL ? new URL("lab.png", process.env.SITE_URL).href : "lab.png";
for (const page of files.filter((name) => name.endsWith(".html"))) {
    const path = join(out, page);
    const text = await readFile(path, "utf8");
    const tags = `<meta property="og:type" content="website"><meta property="og:image" content="${picture}"><meta name="twitter:card" content="summary_large_image">`;
    await writeFile(path, text.replace("</title>", `</title>${tags}`));
}
await cp(join(here, "..", "docs", "lab.png"), join(out, "lab.png"));
const hash = createHash("sha256");
for (const file of files) hash.update(file).update(await readFile(join(out, file)));
await build({
    ...common,
    entryPoints: [join(here, "src", "offline.ts")],
    define: {
        FILES: JSON.stringify(["./", ...files]),
        VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)),
    },
});
