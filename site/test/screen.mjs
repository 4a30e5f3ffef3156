// `screen.mjs ADDRESS FILE WIDTH HEIGHT [WORDS]`: what stands at an address as a picture, once it says WORDS.
import { visit, withBrowser } from "./browser.mjs";

const [address, path, width, height, words = ""] = process.argv.slice(2);
await withBrowser(async (browser) => {
    const page = await visit(browser, { width: Number(width), height: Number(height) });
    await page.goto(address, { waitUntil: "domcontentloaded" });
    await page.waitForFunction((words) => document.body.textContent.includes(words), words);
    await page.screenshot({ path });
});
