// `picture.mjs ADDRESS SIMNEL FILE [WIDTH] [SCHEME] [HASH]`: the page as a picture.
import { open, withBrowser } from "./browser.mjs";

const [address, , file, width = "1100", scheme = "light", hash = ""] = process.argv.slice(2);
await withBrowser(async (browser) => {
    const page = await open(browser, address, { width: Number(width), height: 720, scheme, runs: 8, hash });
    await page.screenshot({ path: file, fullPage: process.env.FULL === "1" });
});
