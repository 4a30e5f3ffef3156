// The pages that commands write. `simnel sim` and `compare`: the verdict in words, dots for every run,
// one legend. `sweep` and `plot`: figures that come drawn. Nothing from anywhere else.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { LOOKS, judge } from "./accessibility.mjs";
import { visit } from "./browser.mjs";
import { paper } from "./paper.mjs";
import { SEEDLESS } from "./telling.mjs";

const QDISCS = ["pfifo limit 1000", "cake bandwidth {rate}"];

export async function reports(browser, simnel, root, out) {
    const run = (...words) => execFileSync(simnel, words, { cwd: out, stdio: ["ignore", "ignore", "inherit"] });
    const upload = join(root, "scenarios", "upload.toml");
    const qdiscs = QDISCS.flatMap((words) => ["--qdisc", words]);
    run("sim", upload, ...qdiscs, "--seed", "1..3", "--report", "sim.html");
    run("compare", ...QDISCS, "--line", "20mbit/3mbit", "--repetitions", "2", "--report", "compare.html");
    run("sweep", upload, "--over", "rtt=10ms..100ms:3,rate=2mbit..20mbit:2", "--repetitions", "2", "-o", "sweep.jsonl");
    run("plot", "sweep.jsonl", "-o", "plot.html");
    await colours(browser, run, upload, out);
    await counted(browser, out);
    await seedless(browser, run, out);
    const checks = { sim, compare, sweep, plot: sweep };
    for (const [name, check] of Object.entries(checks)) {
        for (const look of LOOKS) await one(browser, name, check, pathToFileURL(join(out, `${name}.html`)).href, look, out);
    }
    console.log("pages of commands: the verdict in words, a dot a run; nothing serious");
}

/** A discipline has its colour, also where a rate each way makes its name long. */
async function colours(browser, run, upload, out) {
    const words = ["cobalt", "sfq", "dualpi2", "cake bandwidth {rate}", "cake bandwidth {rate} besteffort"];
    run("sim", upload, ...words.flatMap((words) => ["--qdisc", words]), "--report", "four.html");
    const page = await visit(browser);
    await page.goto(pathToFileURL(join(out, "four.html")).href);
    assert.match(await page.locator("section > .legend").innerText(), /up: cake bandwidth 3mbit, down: cake/);
    const seen = await page.locator("section > .legend .swatch").evaluateAll((all) => all.map((swatch) => swatch.outerHTML));
    assert.deepEqual(seen.map((swatch) => /swatch (c\d)/.exec(swatch)[1]), ["c4", "c7", "c6", "c1", "c1"]);
    assert.equal(new Set(seen).size, 5, "two cakes are told apart");
    await page.context().close();
}

/** Times of what came to its end compare only where about as many did; sentences that decide are seen. */
async function counted(browser, out) {
    const times = (p50) => ({ n: 1, mean: p50, p50, p95: p50, p99: p50, max: p50 });
    const group = (name, application) =>
        ({ name, direction: "up", flows: 1, goodput_mbps: 1, series_mbps: [], sojourn_cdf: [], application });
    const run = (completed, completion, pages, load) => ({ qdisc_up: "", qdisc_down: "", seed: 1, simulated_s: 1, lines: [], groups: [
        group("photos", { kind: "bursts", completed, completion_ms: times(completion) }),
        group("browsing", { kind: "web", pages, load_ms: times(load) }),
    ] });
    const frame = readFileSync(join(out, "sim.html"), "utf8");
    const show = async (...runs) => {
        const words = ["fq_codel", "cake"];
        const cases = [{ name: "", interval_s: 1, runs: runs.map((each) => [run(...each)]) }];
        const decides = ["Verdict: cake.", ...[1, 2, 3, 4, 5, 6].map((n) => `measure ${n}: cake 42 better than fq_codel 11.`)];
        const said = [...decides.map((text) => ({ text, decides: true })), { text: "sfq better than pfifo.", decides: false }];
        const result = JSON.stringify({ question: "", partial: "", names: words, words, cases, said, scenario: "" });
        const file = join(out, "counted.html");
        writeFileSync(file, frame.replace(/(<script id="result"[^>]*>).*?<\/script>/s, (_, tag) => `${tag}${result}</script>`));
        const page = await visit(browser);
        await page.goto(pathToFileURL(file).href);
        return page;
    };
    const page = await show([1, 9600, 12, 300], [5, 11000, 50, 500]);
    const figure = page.locator("main > section .plots figure", { hasText: "Delays" });
    await figure.locator("svg text", { hasText: "photos up: complete in, of those that did" }).waitFor();
    assert.deepEqual(await figure.locator("svg text", { hasText: " of " }).allTextContents(), [
        "photos up: complete in, of those that did", "9.6 s of 1", "11 s of 5",
        "browsing up: a page loads in, of those that did", "300 ms of 12", "500 ms of 50",
    ]);
    assert.match(await page.locator("#verdict").innerText(),
        /More pages are loaded, so that times do not compare: 12 in 300 ms → 50 in 500 ms/);
    for (let n = 1; n <= 6; n++) assert.ok(await page.getByText(`measure ${n}: cake 42`).isVisible(), "what decides is seen");
    const other = page.getByText("sfq better than pfifo");
    assert.equal(await other.isVisible(), false, "what does not is folded");
    await page.getByText("What does not decide").click();
    assert.ok(await other.isVisible());
    assert.match(await page.locator("table").textContent(), /photos up: completed15/);
    await page.context().close();
    const both = await show([1, 11000, 12, 5000], [5, 9600, 50, 1000]);
    assert.match(await both.locator("#verdict").innerText(), /Pages load faster: 5 s → 1 s/);
    await both.context().close();
}

/** Where seeds make no difference that is said, and no chance is stated. */
async function seedless(browser, run, out) {
    writeFileSync(join(out, "seedless.toml"), SEEDLESS);
    const curves = async (...qdiscs) => {
        run("sim", "seedless.toml", ...qdiscs.flatMap((words) => ["--qdisc", words]), "--seed", "1..3", "--report", "seedless.html");
        const page = await visit(browser);
        await page.goto(pathToFileURL(join(out, "seedless.html")).href);
        const said = await page.locator("main > section", { hasText: "Curves" }).innerText();
        const whole = await page.locator("main").innerText();
        await page.context().close();
        return { said, whole };
    };
    const same = await curves("pfifo limit 100", "fq_codel");
    assert.match(same.whole, /The seeds make no difference here: all repetitions are the same run\./);
    assert.doesNotMatch(same.whole, /chance|Medians of 3 runs/);
    const one = await curves("pfifo limit 100", "pie");
    assert.doesNotMatch(one.whole, /The seeds make no difference here/);
    assert.match(one.said, /Medians of 3 runs, bands .* with a chance of 50 %; seeds make no difference to pfifo limit 100\./);
}

async function compare(page) {
    const text = (selector) => page.locator(selector).innerText();
    assert.match(await text("#verdict"), /Calls stay clear: [\d.]+ s → [\d.]+ ms/);
    assert.doesNotMatch(await text("body"), /[`{}]/);
    assert.match(await text("section:has(#verdict)"), /Verdict: cake on this line: .*\n(\n|.*better than.*){5,}/, "all that decides is seen");
    assert.equal(await page.locator("main > section .plots figure").count(), 4, "a plot a workload");
    assert.equal(await page.locator("main > section .legend:visible").count(), 1, "one legend, but on paper");
    assert.equal(await page.locator("#charts").count(), 0, "no curves that nobody could tell apart");
}

async function sim(page) {
    assert.match(await page.locator("#verdict").innerText(), /Calls stay clear: [\d.]+ s → [\d.]+ ms/);
    const dots = await page.locator(".plots .dot").count();
    assert.equal(dots, 2 * 3 * 4, "two disciplines, three seeds, three delays and a rate");
    assert.ok(await page.locator("#charts canvas").count() >= 5, "curves");
    const delay = page.locator("#charts figure", { hasText: "Added delay: ping up" }).getByRole("img");
    assert.match(await delay.getAttribute("aria-label"), /over time.*pfifo limit 1000: median [\d.]+ s; cake: median [\d.]+ ms/);
}

async function sweep(page) {
    assert.ok(await page.locator("figure svg polyline").count() >= 4, "curves");
    const svg = page.locator(".draw svg[tabindex]").first();
    await svg.press("ArrowRight");
    await page.waitForFunction(() => /ms/.test(document.querySelector(".tip")?.textContent ?? ""));
    const button = page.locator(".legend button").first();
    await button.click();
    assert.equal(await page.locator("figure .s0").first().isVisible(), false, "a legend switches");
    await button.click();
}

async function one(browser, name, check, address, { width, scheme }, out) {
    const wrong = [];
    const page = await visit(browser, { width, scheme }, (what) => wrong.push(what));
    page.on("request", (request) => request.url() !== address && !request.url().startsWith("data:") && wrong.push(request.url()));
    await page.goto(address);
    await check(page);
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await back();
    await page.locator("#theme").click();
    assert.notEqual(await back(), before, "the button changes light and dark");
    await page.locator("#theme").click();
    assert.equal(await back(), before);
    await page.locator("details").evaluateAll((all) => all.forEach((each) => (each.open = true)));
    await judge(page, `${name} at ${width} px, ${scheme}`);
    await page.screenshot({ path: join(out, `${name}-${width}-${scheme}.png`), fullPage: true });
    if (width === 1280 && scheme === "dark") await paper(page, name, 1, out);
    assert.deepEqual(wrong, [], "nothing fails, and nothing is fetched");
    await page.context().close();
}
