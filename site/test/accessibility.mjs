// What holds for every page: axe-core finds nothing serious, nothing is wider than the screen, and no
// two elements have one name: a label would belong to the wrong one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const LOOKS = [390, 1280].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));

export async function judge(page, label) {
    // By the debugger's way: the page's policy admits no scripts of others.
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run());
    const grave = result.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`);
    assert.deepEqual(told, [], label);
    const ids = await page.locator("[id]").evaluateAll((all) => all.map(({ id }) => id));
    assert.deepEqual(ids.filter((id, n) => ids.indexOf(id) !== n), [], `${label}: names of several elements`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${label}: ${wide} px too wide`);
}
