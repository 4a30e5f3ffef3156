// `page.mjs SIMNEL OUT`: the page of `simnel serve` in Chromium, where scripts/served.sh runs it. It
// draws what happens; a change is looked at, tried and taken back; axe-core finds nothing serious;
// nothing is wrong in the console, and nothing is against the page's policy.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { LOOKS, judge } from "./accessibility.mjs";
import { PATIENCE, says, visit, withBrowser } from "./browser.mjs";

const WHAT = "the page of serve in a browser";
const [simnel, out] = process.argv.slice(2);
const { ADDRESS, TOKEN, CONTROL, SHAPED } = process.env;

/** The page with an interface on it, and what went wrong there so far. */
async function open(browser, look) {
    const wrong = [];
    const page = await visit(browser, look, (what) => wrong.push(what));
    await page.exposeFunction("violated", (what) => wrong.push(`policy: ${what}`));
    await page.addInitScript(() => addEventListener("securitypolicyviolation",
        ({ violatedDirective, blockedURI }) => window.violated(`${violatedDirective} ${blockedURI}`)));
    await page.addInitScript(() => new MutationObserver(() => {
        const words = document.querySelector("#words")?.textContent || "";
        if (words.includes("nothing is shaped")) window.violated(`at first it says "${words}"`);
    }).observe(document, { subtree: true, childList: true }));
    await page.goto(`http://${ADDRESS}/?token=${TOKEN}`);
    await says(page, "#state", /live/);
    await says(page, "#words", /the upload/);
    await says(page, "#limits", /download 20.00 Mbit\/s, upload 5.00 Mbit\/s/);
    await says(page, "#flows tr", /Wait.*RTT.*Drops/);
    // Two points make a line. The traffic comes near the upload's limit.
    await page.waitForFunction(() => document.querySelectorAll("#rate polyline").length === 2
        && document.querySelectorAll("#rate line.limit.up").length === 1
        && document.querySelectorAll("#flows tbody tr").length > 0);
    return { page, wrong };
}

/** The upload's settings, as the daemon tells them. */
function upload() {
    const all = execFileSync(simnel, ["show", "wan", "--control-dir", CONTROL], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return all.split("\n").find((line) => line.includes(" wan "));
}

async function change(page) {
    await page.locator("select[name=direction]").selectOption("upload");
    await page.locator("input[name=rate]").fill("4mbit");
    await page.locator("button[value=preview]").click();
    await says(page, "#changed", /now: .*5Mbit.*then: .*4Mbit.*\n.+/);
    assert.match(upload(), /bandwidth 5Mbit/, "a look changes nothing");
    // Longer than this test takes anywhere.
    await page.locator("select[name=seconds]").selectOption("3600");
    await page.locator("button[value=try]").click();
    await says(page, "#changed", /in force for 3600 s, unless it is kept/);
    assert.match(upload(), /bandwidth 4Mbit/);
    await says(page, "#limits", /upload 4.00 Mbit/);
    await page.locator("button[value=undo]").click();
    await says(page, "#changed", /in force again: upload .*5Mbit/);
    assert.match(upload(), /bandwidth 5Mbit/);
    await page.locator("input[name=rate]").fill("4");
    await page.locator("button[value=preview]").click();
    await says(page, "#changed", /did you mean `4mbit`/);
    console.log("a change is looked at, tried, and taken back; a slip is told");
}

/** What Linux's own cake does not tell is not drawn as nothing. */
async function withoutDelays(page) {
    const [lines, text] = await page.evaluate(() => {
        const upload = latest.flatMap((one) => one.view.lines).filter((line) => line.direction === "upload");
        for (const line of upload) line.delay = null;
        draw();
        const lines = ["up", "down"].map((way) => document.querySelectorAll(`#delay polyline.${way}`).length);
        return [lines, document.querySelector("#uncounted").textContent];
    });
    assert.deepEqual(lines, [0, 1]);
    assert.match(text, /^Of the upload, Linux does not count/);
}

if (!SHAPED) {
    console.log(`NOT RUN: ${WHAT} (needs root for an interface to be shaped)`);
    process.exit(0);
}
mkdirSync(out, { recursive: true });
setTimeout(() => {
    console.error("the browser does not answer");
    process.exit(1);
}, 5 * PATIENCE).unref();
await withBrowser(async (browser) => {
    for (const look of LOOKS) {
        const { page, wrong } = await open(browser, look);
        const label = `serve at ${look.width} px, ${look.scheme}`;
        if (look === LOOKS[0]) {
            await change(page);
            await withoutDelays(page);
            // The refusal of the slip is one that the browser notes as well.
            const noted = wrong.splice(0).filter((text) => !/status of 400/.test(text));
            assert.deepEqual(noted, [], label);
        }
        assert.deepEqual(wrong, [], label);
        await page.screenshot({ path: join(out, `serve-${look.width}-${look.scheme}.png`), fullPage: true });
        await judge(page, label);
        await page.context().close();
    }
    console.log(`${WHAT}: nothing serious at 390 and 1280 px, light and dark, and nothing against its policy`);
}, WHAT);
