// Colours, dashes and markers: the page's rules are the program's, and no two names look alike.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

export async function looks(root) {
    const entry = join(root, "site", "src", "styles.ts");
    const made = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm", logLevel: "warning" });
    const { styles } = await import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);
    const triples = (names) => styles(names).map(({ colour, dash, marker }) => [colour, dash, marker]);
    // crates/lab/src/figures/styles.rs reads the same cases.
    const cases = JSON.parse(await readFile(join(root, "crates", "lab", "tests", "styles.json"), "utf8"));
    for (const [names, wanted] of cases) assert.deepEqual(triples(names), wanted, names.join("; "));
    const names = [...cases.flatMap(([names]) => names), ...Array.from({ length: 400 }, (_, n) => `cake rtt ${n}ms`)];
    const all = [...new Set(names)].slice(0, 480);
    assert.equal(new Set(triples(all).map(String)).size, all.length, "no two of many names look alike");
    console.log(`${all.length} names, each with a look of its own, as the program has them`);
}
