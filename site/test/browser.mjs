// Chromium, as every script here starts it.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** A machine may be busy: nothing here is judged by its speed. */
export const PATIENCE = 180_000;

export async function withBrowser(work, what = "the lab in a browser") {
    const executablePath = PLACES.find((place) => existsSync(place));
    if (!executablePath) {
        console.log(`NOT RUN: ${what} (chromium is missing: apt-get install chromium)`);
        return;
    }
    let browser;
    try {
        browser = await chromium.launch({
            executablePath,
            timeout: PATIENCE,
            args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        });
    } catch (error) {
        console.log(`NOT RUN: ${what} (chromium does not start: ${String(error).split("\n")[0]})`);
        return;
    }
    try {
        await work(browser);
    } finally {
        await browser.close();
    }
}

/** An empty page. `note` is told what goes wrong there; without it the test fails by an error of the
 * page's scripts, and what the browser has to say (about an icon that comes late) is printed. */
export async function visit(browser, { width = 1280, height = 900, scheme = "light", ...more } = {}, note) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...more });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => (note ?? fail)(String(error.stack ?? error)));
    page.on("console", (message) => message.type() === "error" && (note ?? console.error)(message.text()));
    return page;
}

function fail(what) {
    throw new Error(`page: ${what}`);
}

/** A page of the lab with everything on it that `runs` repetitions show. */
export async function open(browser, address, { hash = "", runs = 1, ...look } = {}) {
    const page = await visit(browser, look);
    await page.goto(address + hash);
    await shown(page, runs);
    return page;
}

/** Waits until so many runs are drawn. */
export async function shown(page, runs) {
    await page.waitForFunction((runs) => Number(document.documentElement.dataset.runs) >= runs, runs);
}

/** Waits until an element says so: what is typed may be simulated in several pieces. */
export async function says(page, selector, words) {
    const is = ([selector, words]) => new RegExp(words, "s").test(document.querySelector(selector)?.textContent ?? "");
    await page.waitForFunction(is, [selector, words.source]);
}
