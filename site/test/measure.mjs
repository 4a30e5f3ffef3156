// `measure.mjs ADDRESS`: milliseconds from a change to the first picture, for a line of 20/3 Mbit/s
// over 30 seconds with two disciplines; the median of ten changes.
import { open, withBrowser } from "./browser.mjs";

const CHANGES = 10;
const [address] = process.argv.slice(2);

await withBrowser(async (browser) => {
    const page = await open(browser, address, { runs: 8 });
    for (let n = 0; n < CHANGES; n++) {
        const before = await page.evaluate(() => performance.getEntriesByName("first picture").length);
        // Another line each time.
        await page.locator("#rtt").fill(String(51 + n));
        await page.waitForFunction((n) => performance.getEntriesByName("first picture").length > n, before);
        // As a person does: the repetitions are under way when the next change comes.
        await page.waitForTimeout(300);
    }
    for (const name of ["simulated", "first picture"]) {
        const entries = await page.evaluate((name) => performance.getEntriesByName(name).map((entry) => entry.duration), name);
        const last = entries.slice(-CHANGES).sort((a, b) => a - b);
        const median = (last[CHANGES / 2 - 1] + last[CHANGES / 2]) / 2;
        console.log(`${name}: ${median.toFixed(0)} ms after a change (median of ${CHANGES}; ${last[0].toFixed(0)} to ${last.at(-1).toFixed(0)} ms)`);
    }
});
