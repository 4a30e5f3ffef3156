// The papers' page: it keeps the site's policy, its figures answer to keys, a scenario runs again, an
// experiment is judged again.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { LOOKS, judge } from "./accessibility.mjs";
import { PATIENCE, visit } from "./browser.mjs";
import { paper } from "./paper.mjs";

/** The page judges as the program does, with the same seeds. */
async function verdicts(page, simnel) {
    const section = page.locator("section[id]").first();
    const id = await section.getAttribute("id");
    const button = section.locator("> .again");
    const label = await button.textContent();
    await button.evaluate((button) => (button.click(), button.click()));
    await section.locator("> .setup[role=status]").getByText(/^Stopped/).waitFor();
    assert.equal(await button.textContent(), label);
    await button.click();
    await section.locator(".judged tbody tr").first().waitFor({ timeout: 5 * PATIENCE });
    const told = await section.locator("> .setup[role=status]").textContent();
    const [, seeds] = /with (\d+) runs/.exec(told);
    const lines = execFileSync(simnel, ["paper", id, "--repetitions", seeds, "--json"], { encoding: "utf8" });
    const native = lines.trimEnd().split("\n").map(JSON.parse).map(({ id, holds }) => `${id} ${holds ? "✓ holds" : "✗ does not"}`);
    const here = await section.locator(".judged tbody tr").evaluateAll((rows) =>
        rows.map((row) => `${row.querySelector(".small").textContent} ${row.lastElementChild.textContent}`));
    assert.deepEqual(here, native, "verdicts of the page and of the program");
    console.log(`the papers: ${id} judged in the page as by the program, ${native.length} claims, ${seeds} runs`);
}

export async function papers(browser, address, simnel, out) {
    for (const look of LOOKS) {
        const wrong = [];
        const page = await visit(browser, look, (what) => wrong.push(what));
        await page.goto(`${address}papers.html`);
        await page.locator("button.again").first().waitFor({ state: "attached" });
        assert.ok(await page.locator("figure svg .band").count() > 0, "what is stated is drawn");
        await judge(page, `papers at ${look.width} px, ${look.scheme}`);
        await page.screenshot({ path: join(out, `papers-${look.width}-${look.scheme}.png`), fullPage: true });
        if (look === LOOKS[0]) {
            const svg = page.locator("figure svg[tabindex]:has(.s0 > g:first-of-type > .band)").first();
            await svg.press("ArrowRight");
            await page.waitForFunction(() => /median.*Mbit|stated/s.test(document.querySelector(".tip")?.textContent ?? ""));
            await page.locator("details").evaluateAll((all) => all.forEach((each) => (each.open = true)));
            await page.locator("button.again").first().click();
            await page.waitForFunction(() => /5 runs/.test(document.querySelector(".again + .setup")?.textContent ?? ""));
            assert.ok(await page.locator("div > table.numbers tr").count() > 3, "its figures are there");
            await verdicts(page, simnel);
        }
        if (look === LOOKS.at(-1)) await paper(page, "papers", 1, out);
        assert.deepEqual(wrong, [], "nothing is refused and nothing fails");
        await page.context().close();
    }
    console.log("the papers: what is stated is drawn, keys show values, a scenario runs again; nothing serious");
}
