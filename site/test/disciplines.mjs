// Disciplines explained: each of the core's has a page whose figure is drawn, that says its words
// as `simnel words` does, and that keys and the address drive.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { LOOKS, judge } from "./accessibility.mjs";
import { visit } from "./browser.mjs";
import { paper } from "./paper.mjs";

async function drawn(page, id) {
    await page.waitForFunction((id) => document.documentElement.dataset.drawn === id, id);
    assert.equal(await page.locator("#status").textContent(), "", id);
}

/** `simnel words NAME`, without the columns' blanks. */
function words(simnel, name) {
    const lines = execFileSync(simnel, ["words", name], { encoding: "utf8" }).trimEnd().split("\n");
    return lines.map((line) => line.replace(/\s+/g, " "));
}

export async function disciplines(browser, address, simnel, out) {
    const page = await visit(browser);
    await page.goto(`${address}disciplines.html`);
    await drawn(page, "cake");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.missing), "", "explained are all");
    const ids = await page.locator("#choice a").evaluateAll((all) => all.map((link) => link.hash.slice(1)));
    for (const id of ids) {
        await page.locator(`#choice a[href="#${id}"]`).click();
        await drawn(page, id);
        const lines = await page.locator("#strips path").evaluateAll((all) => all.filter((path) => path.getAttribute("d")?.length > 50).length);
        assert.ok(lines > 1, `${id}: ${lines} lines are drawn`);
        const name = (await page.locator("#words-title").textContent()).replace("Its words: ", "");
        const listed = await page.locator("#keywords tbody tr").evaluateAll((all) =>
            all.map((row) => Array.from(row.cells, (cell) => cell.textContent).join(" ").replace(/\s+/g, " ")));
        assert.deepEqual(listed, words(simnel, name), `${id}: the words are not the program's`);
    }
    // More drops than the record tells of one by one: they are counted, and drawn to the end.
    await page.goto(`${address}disciplines.html#cobalt&load0=30&load1=30`);
    await drawn(page, "cobalt");
    await page.locator("#at").press("End");
    const dropped = (await page.locator("#told").textContent()).match(/\d+(?= dropped so far)/g);
    const rows = page.locator("#strips svg").filter({ hasText: "Drops and marks" });
    for (const count of dropped) assert.equal(await rows.getByText(count, { exact: true }).count(), 1, `${count} drops`);
    const strokes = await rows.locator("path").evaluateAll((all) => all.map((path) => path.getBBox()).slice(-2).map(({ x, width }) => x + width));
    assert.ok(dropped.length === 2 && strokes[1] > 0.95 * (await rows.evaluate((svg) => svg.viewBox.baseVal.width)), `${strokes}`);
    await page.goto(`${address}disciplines.html#codel&target=20.2`);
    await drawn(page, "codel");
    assert.equal(await page.locator("#set-target").inputValue(), "20", "the address holds the settings");
    await page.locator("#set-interval").press("ArrowRight");
    await page.waitForFunction(() => location.hash === "#codel&target=20&interval=110");
    assert.match(await page.locator("#words").textContent(), /^codel target 20ms interval 110ms$/);
    const before = await page.locator("#told").textContent();
    await page.locator("#at").press("ArrowLeft");
    assert.notEqual(await page.locator("#told").textContent(), before, "the moment goes by keys");
    await page.context().close();
    for (const look of LOOKS) {
        const page = await visit(browser, look);
        await page.goto(`${address}disciplines.html#cake`);
        for (const id of ["cake", "sfb"]) {
            await page.locator(`#choice a[href="#${id}"]`).click();
            await drawn(page, id);
            await judge(page, `${id} at ${look.width} px, ${look.scheme}`);
        }
        await page.screenshot({ path: join(out, `disciplines-${look.width}-${look.scheme}.png`), fullPage: true });
        if (look === LOOKS.at(-1)) {
            await paper(page, "disciplines", 0, out);
            assert.equal(await page.locator("#legend .swatch").count(), 5, "flood, two flows, highest and mean");
        }
        await page.context().close();
    }
    console.log(`${ids.length} disciplines are explained, with the program's words; nothing serious`);
}
