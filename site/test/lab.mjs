// `lab.mjs ADDRESS SIMNEL OUT`: the page in Chromium. Its figures are the program's, to the byte;
// axe-core finds nothing serious; wrong words and numbers are told; the address holds the question;
// the queue can be watched; disciplines are explained; the pages of commands are read.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LOOKS, judge } from "./accessibility.mjs";
import { PATIENCE, open, says, shown, withBrowser } from "./browser.mjs";
import { disciplines } from "./disciplines.mjs";
import { paper } from "./paper.mjs";
import { papers } from "./papers.mjs";
import { reports } from "./reports.mjs";
import { slips } from "./slips.mjs";
import { looks } from "./styles.mjs";
import { telling } from "./telling.mjs";

const [address, simnel, out] = process.argv.slice(2);
const root = new URL("../..", import.meta.url).pathname;

/** Scenarios of the repository: with and without words of their own. */
const SAME = [
    ["upload", "cake bandwidth {rate}", 1],
    ["rrul", "fq_codel", 7],
    ["acks", undefined, 3],
];

async function sameFigures(page) {
    for (const [name, words, seed] of SAME) {
        const file = join(root, "scenarios", `${name}.toml`);
        const qdisc = words === undefined ? [] : ["--qdisc", words];
        const program = execFileSync(simnel, ["sim", file, ...qdisc, "--seed", String(seed), "--json"],
            { encoding: "utf8", maxBuffer: 1 << 28 }).trimEnd();
        const run = [readFileSync(file, "utf8"), name, words, seed];
        const browser = await page.evaluate((run) => window.simnel.run(...run), run);
        assert.ok(browser === program, `${name}: the browser's figures are not the program's`);
        console.log(`${name}, seed ${seed}: ${browser.length} bytes, the same in both`);
    }
}

/** Words that no line of a phone holds. */
const LONG = "&qdisc=pfifo+limit+1000&qdisc=cake+bandwidth+%7Brate%7D+diffserv4+rtt+20ms+ack-filter+overhead+34";

async function accessible(browser) {
    for (const { width, scheme } of LOOKS) {
        const page = await open(browser, address, { width, scheme, hash: `#calls=1&games=1&films=1&browsing=1&runs=2${LONG}`, runs: 2 });
        await page.locator("details").evaluateAll((all) => all.forEach((each) => (each.open = true)));
        await judge(page, `at ${width} px, ${scheme}`);
        await page.screenshot({ path: join(out, `${width}-${scheme}.png`), fullPage: true });
        await page.context().close();
    }
    console.log("nothing serious at 390 and 1280 px, light and dark");
}

/** A chat that is given a link shows a title and a picture. */
async function linked() {
    for (const page of ["", "disciplines.html", "papers.html"]) {
        const text = await (await fetch(address + page)).text();
        const of = (name) => new RegExp(`property="og:${name}" content="([^"]+)"`).exec(text)?.[1];
        assert.ok(of("title"), `${page}: no title for a chat`);
        const picture = await fetch(new URL(of("image"), address));
        assert.equal(picture.headers.get("content-type"), "image/png", `${page}: no picture for a chat`);
    }
    console.log("links: a title and a picture for chats");
}

async function sharing(browser) {
    const page = await open(browser, address);
    await page.locator("#up").fill("7.5");
    await page.locator("#qdisc-1").fill("fq_codel");
    await page.waitForFunction(() => location.hash.includes("up=7.5") && location.hash.includes("fq_codel"));
    const hash = await page.evaluate(() => location.hash);
    const other = await open(browser, address, { hash });
    assert.equal(await other.locator("#up").inputValue(), "7.5");
    assert.equal(await other.locator("#qdisc-1").inputValue(), "fq_codel");
    await says(other, "#verdict", /Calls stay clear/);
    await says(other, "#charts", /Added delay: call up.*Goodput: upload.*Queue up/);
    await page.context().close();
    await other.context().close();
    console.log("the address holds the question");
}

async function watching(browser) {
    const page = await open(browser, address, { hash: "#seconds=10&runs=1" });
    await page.locator("#watch summary").click();
    await page.locator("#watch-play:not([disabled])").waitFor();
    const at = () => page.locator("#watch-at").inputValue().then(Number);
    const pixels = () => page.locator("#watch-picture").evaluate((canvas) => canvas.toDataURL());
    const label = () => page.locator("#watch-play").textContent();
    assert.equal(await at(), 0);
    const still = await pixels();
    await page.locator("#watch-picture").press(" ");
    await page.waitForFunction(() => Number(document.querySelector("#watch-at").value) > 5);
    await page.locator("#watch-picture").press("ArrowRight");
    assert.equal(await label(), "play", "an arrow stops it");
    const stopped = await at();
    assert.notEqual(await pixels(), still, "the picture moves");
    await page.locator("#watch-picture").press("ArrowLeft");
    assert.equal(await at(), stopped - 1);
    await page.locator("#watch-at").press("End");
    await says(page, "#watch-told", /at 10\.00 s: .* wait/);
    assert.equal(await page.locator("#watch-at").getAttribute("max"), String(await at()));
    await page.locator("#watch-picture").press("Home");
    assert.equal(await at(), 0);
    await page.locator("#watch-picture").press("End");
    await says(page, "#watch-told", /at 10\.00 s/);
    await page.locator("#watch-qdisc").selectOption("0");
    await says(page, "#watch-told", /at 10\.00 s: .*upload: \d+[^(]*$/);
    await page.locator("#watch-speed").selectOption("0.1");
    await page.locator("#watch-play").click();
    await says(page, "#watch-play", /pause/);
    await page.locator("#watch-play").click();
    const paused = await at();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    assert.equal(await at(), paused, "a pause holds");
    assert.equal(await label(), "play");
    await page.context().close();
    console.log("the queue can be watched: it plays, pauses, and goes by keys");
}

/** What runs in the background ends at a word, keeps what there is, and goes on at another. */
async function stopping(browser) {
    const page = await open(browser, address, { hash: "#seconds=300&runs=50" });
    const button = page.locator("#stop");
    const told = async () => Number(/^\d+/.exec(await page.locator("#status").textContent())[0]);
    await page.locator("#watch summary").click();
    await says(page, "#status", /\d+ of 50 runs$/);
    await button.click();
    await says(page, "#status", /of 50 runs: stopped$/);
    const stopped = await told();
    await says(page, "#verdict", /Calls stay clear/);
    // Whoever watches the queue goes on to do so.
    await page.locator("#watch-play:not([disabled])").waitFor();
    assert.equal(await told(), stopped);
    assert.equal(await button.textContent(), "go on");
    await button.click();
    await page.waitForFunction((least) => Number(/^\d+/.exec(document.querySelector("#status").textContent)?.[0]) > least, stopped);
    await page.getByLabel("Repetitions", { exact: true }).fill("2");
    await says(page, "#status", /^2 runs/);
    await button.waitFor({ state: "hidden" });
    // Before the first picture.
    await page.evaluate(() => {
        location.hash = "#seconds=110&runs=3";
        addEventListener("hashchange", () => setTimeout(() => document.querySelector("#stop").click()), { once: true });
    });
    await says(page, "#status", /^Stopped before/);
    await button.click();
    await says(page, "#status", /^3 runs/);
    await page.context().close();
    console.log("repetitions can be stopped, and go on");
}

/** Paper is white, and says which line is whose. */
async function printing(browser) {
    const page = await open(browser, address, { scheme: "dark" });
    const colour = () => page.evaluate(() => getComputedStyle(document.body).color);
    const dark = await colour();
    await page.evaluate(() => addEventListener("beforeprint", () => {
        window.onPaper = [getComputedStyle(document.body).color, document.documentElement.dataset.scheme];
    }));
    await page.pdf();
    await page.emulateMedia({ colorScheme: "light" });
    assert.deepEqual(await page.evaluate(() => window.onPaper), [await colour(), "light"]);
    await page.emulateMedia({ colorScheme: "dark" });
    assert.equal(await colour(), dark, "the screen is as before");
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.locator("#legend").isVisible());
    assert.equal(await page.locator("#legend").innerText(), "pfifo limit 1000cake bandwidth {rate}");
    assert.match(await page.locator("#asked").innerText(), /Upload rate: 3 Mbit\/s.*cubic/);
    await page.emulateMedia({ media: null });
    await page.locator("#watch summary").click();
    await page.locator("#watch-play:not([disabled])").waitFor();
    await paper(page, "play", 5, out);
    await page.context().close();
    console.log("a dark page is printed as a light one, with its legend");
}

async function offline(browser) {
    const page = await open(browser, address);
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await page.context().setOffline(true);
    await page.reload();
    await shown(page, 1);
    await says(page, "#verdict", /Calls stay clear/);
    await page.context().close();
    console.log("works without a network after the first visit");
}

mkdirSync(out, { recursive: true });
setTimeout(() => {
    console.error("the browser does not answer");
    process.exit(1);
}, 9 * PATIENCE).unref();
await looks(root);
await withBrowser(async (browser) => {
    const page = await open(browser, address);
    await sameFigures(page);
    await page.context().close();
    await slips(browser, address);
    await telling(browser, address);
    await linked();
    await sharing(browser);
    await watching(browser);
    await stopping(browser);
    await printing(browser);
    await offline(browser);
    await accessible(browser);
    await disciplines(browser, address, simnel, out);
    await papers(browser, address, simnel, out);
    await reports(browser, simnel, root, out);
});
