// The page of `simnel paper` as a part of the site: style and scripts in files of their own, since
// the site's policy admits none in the page; links to the site's other pages; no files beside it.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const NAV = `<nav class="site" aria-label="Pages"><a href="index.html">Play with a line</a> <a href="disciplines.html">Disciplines</a> <a href="papers.html" aria-current="page">The papers</a></nav>`;

/** Where nobody has run the papers yet. */
const NONE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta property="og:title" content="The papers"><title>The papers – Simnel</title><link rel="stylesheet" href="style.css"></head><body><header><h1>The papers</h1>${NAV}</header><main class="plain"><p>The experiments have not been run for this copy of the site: <code>scripts/site.sh papers</code> runs them, in some minutes, and <code>make site</code> takes their page up.</p></main></body></html>
`;

/** Takes the one page in `reports` up into `out`. */
export async function papers(reports, out) {
    const pages = (await readdir(reports).catch(() => [])).filter((name) => name.endsWith(".html"));
    if (pages.length !== 1) {
        await writeFile(join(out, "papers.html"), NONE);
        return;
    }
    let text = await readFile(join(reports, pages[0]), "utf8");
    // What commands put into their pages are files of the site.
    text = text.replace(/<(style|script)>[\s\S]*?<\/\1>/g, "");
    text = text.replace(/<p class="files">[\s\S]*?<\/p>/g, "");
    if (/ style="/.test(text)) throw new Error(`${pages[0]} has styles in its elements`);
    text = text.replace("<title>", `<meta property="og:title" content="Published experiments on queue management, run again"><title>`);
    text = text.replace("</head>", `<link rel="stylesheet" href="report.css"><script defer src="report.js"></script><script type="module" src="papers.js"></script></head>`);
    text = text.replace('<link rel="icon" href="data:,">', '<link rel="icon" href="icon.svg">');
    text = text.replace("</header>", `</header>${NAV}`);
    await writeFile(join(out, "papers.html"), text);
}
