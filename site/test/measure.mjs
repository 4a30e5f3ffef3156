// `measure.mjs ADDRESS`: how long one waits for the page, with a line of 20/3 Mbit/s over 30 seconds
// and two disciplines. From the address to the first picture, in a browser that has nothing of the page
// yet; and from a change to its picture. A benchmark: exit status 1 where a median is above its bound.
import { open, withBrowser } from "./browser.mjs";

const LOADS = 5;
const CHANGES = 10;
/** Milliseconds. */
const USABLE = 2000;
const AT_ONCE = 100;
const [address] = process.argv.slice(2);

/** In the page: true if there are more first pictures. */
const drawn = (before) => performance.getEntriesByName("first picture").length > before;

function told(what, values, most = Infinity) {
    const sorted = values.sort((a, b) => a - b);
    const half = sorted.length / 2;
    const median = (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
    const [low, middle, high] = [sorted[0], median, sorted.at(-1)].map((value) => value.toFixed(0));
    const isAbove = median > most;
    const bound = most === Infinity ? "" : `; ${isAbove ? "ABOVE" : "within"} ${most} ms`;
    console.log(`${what}: ${middle} ms (median of ${sorted.length}; ${low} to ${high} ms)${bound}`);
    if (isAbove) process.exitCode = 1;
}

await withBrowser(async (browser) => {
    const loads = [];
    for (let n = 0; n < LOADS; n++) {
        const page = await open(browser, address);
        await page.waitForFunction(drawn, 0);
        loads.push(await page.evaluate(() => {
            const [first] = performance.getEntriesByName("first picture");
            return first.startTime + first.duration;
        }));
        await page.context().close();
    }
    told("page usable, its first picture drawn", loads, USABLE);
    const page = await open(browser, address, { runs: 8 });
    for (let n = 0; n < CHANGES; n++) {
        const before = await page.evaluate(() => performance.getEntriesByName("first picture").length);
        // Another line each time.
        await page.locator("#rtt").fill(String(51 + n));
        await page.waitForFunction(drawn, before);
        // As a person does: the repetitions are under way when the next change comes.
        await page.waitForTimeout(300);
    }
    for (const [name, most] of [["simulated"], ["first picture", AT_ONCE]]) {
        const entries = await page.evaluate((name) => performance.getEntriesByName(name).map((entry) => entry.duration), name);
        told(`${name} after a change`, entries.slice(-CHANGES), most);
    }
});
