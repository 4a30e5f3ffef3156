// `speed.mjs ADDRESS SIMNEL`: how fast WebAssembly is beside the program, in one run. Scenarios of
// `simnel bench sim`, in turns; of each the least CPU time of the thread that simulates, so that other
// work on the machine counts little. What is simulated must be the same.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withBrowser } from "./browser.mjs";

const [, simnel] = process.argv.slice(2);
const root = new URL("../..", import.meta.url).pathname;
const SCENARIOS = ["rrul", "50up", "drr", "eight"];
/** The first runs of a module are slower, until it is compiled well. */
const [TURNS, RUNS] = [6, 5];

/** In the page: one run, and its summary. */
function simulate([text, name]) {
    const lab = new window.wasm.Lab(text, name);
    const picture = lab.run(undefined, 1n);
    window.summary = picture.summary();
    picture.free();
    lab.free();
}

await withBrowser(async (browser) => {
    // A page of nobody: no policy forbids what is written into it.
    const page = await browser.newPage();
    const built = (name) => readFileSync(join(root, "target", "site-build", "wasm", name));
    await page.evaluate(async ([script, bytes]) => {
        const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
        window.wasm = await import(address);
        await window.wasm.default({ module_or_path: Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0)) });
    }, [built("lab.js").toString(), built("lab_bg.wasm").toString("base64")]);
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
    const taskTime = async () => {
        const { metrics } = await devtools.send("Performance.getMetrics");
        return 1000 * metrics.find(({ name }) => name === "TaskDuration").value;
    };
    for (const name of SCENARIOS) {
        const text = readFileSync(join(root, "crates/cli/src/commands/lab/bench/sim", `${name}.toml`), "utf8");
        let [program, here] = [Infinity, Infinity];
        let packets = 0;
        for (let turn = 0; turn < TURNS; turn++) {
            const args = ["bench", "sim", "--only", name, "--runs", String(RUNS), "--json"];
            const native = JSON.parse(execFileSync(simnel, args, { encoding: "utf8" }));
            program = Math.min(program, native.cpu_ms);
            packets = native.bottleneck_packets;
            for (let n = 0; n < RUNS; n++) {
                const before = await taskTime();
                await page.evaluate(simulate, [text, name]);
                here = Math.min(here, await taskTime() - before);
            }
            const { hash } = JSON.parse(await page.evaluate(() => window.summary));
            assert.equal(hash, native.hash, `${name}: the browser simulates something else`);
        }
        const rate = (ms) => `${(packets / ms / 1000).toFixed(2)} million packets/s`;
        console.log(`${name}: ${rate(here)} in the browser, ${rate(program)} in the program: ${(program / here).toFixed(2)} of it`);
    }
});
