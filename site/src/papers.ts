// The papers' page: each experiment there can be run again and judged in the page, by the code of
// `simnel paper`; each scenario run again with a few seeds.
import { element } from "./dom";
import { inWords } from "./fault";
import { figures, spread, told } from "./figures";
import { load } from "./load";
import type { Judged, Summary } from "./messages";
import { Cancelled, Pool, Wrong } from "./pool";

/** Runs of one scenario: enough for a median. */
const SEEDS = 5;
/** Runs of an experiment that a page carries out; the program does them all. */
const MOST_RUNS = 120;

/** Made when it is first needed: a page that is only read loads no simulator. */
let pool: Promise<Pool> | null = null;

async function simulator(): Promise<Pool> {
    try {
        return await (pool ??= load().then((module) => new Pool(module)));
    } catch (error) {
        // The next one who asks may have a network again.
        pool = null;
        throw error;
    }
}

/** A button before each scenario's text, and what its runs showed after it. */
function offer(text: HTMLElement): void {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "again";
    button.textContent = "Run it again, here";
    const said = document.createElement("p");
    said.className = "setup";
    said.setAttribute("role", "status");
    const place = document.createElement("div");
    text.before(button, said, place);
    button.addEventListener("click", async () => {
        button.disabled = true;
        place.replaceChildren();
        try {
            const runner = await simulator();
            const runs: Summary[] = [];
            for (let seed = 1; seed <= SEEDS; seed++) {
                said.textContent = `Simulating: run ${seed} of ${SEEDS}…`;
                const job = { text: text.textContent ?? "", name: "again", words: undefined, seed };
                runs.push(JSON.parse((await runner.run(job)).summary) as Summary);
                place.replaceChildren(table(runs));
            }
            said.textContent = `${SEEDS} runs, seeds 1 to ${SEEDS}: medians, with the least and the greatest.`;
        } catch (error) {
            said.textContent = `It cannot be run here: ${why(error)}`;
        }
        button.disabled = false;
    });
}

/** A button in an experiment's section, and the verdicts of its runs. */
function judged(section: HTMLElement): void {
    const button = element("button", { type: "button", className: "again" }, "Run and judge it again, here");
    const said = element("p", { className: "setup" });
    said.setAttribute("role", "status");
    const place = element("div", { className: "judged" });
    section.append(button, said, place);
    button.addEventListener("click", async () => {
        button.disabled = true;
        place.replaceChildren();
        try {
            said.textContent = await judge(section.id, place, (text) => (said.textContent = text));
        } catch (error) {
            said.textContent = `It cannot be run here: ${why(error)}`;
        }
        button.disabled = false;
    });
}

async function judge(id: string, place: HTMLElement, say: (text: string) => void): Promise<string> {
    say("Simulating…");
    const runner = await simulator();
    const arms = Number(await runner.ask({ kind: "arms", id }));
    if (arms > MOST_RUNS) return `${arms} settings are too many for a page: simnel paper ${id} runs them.`;
    const seeds = Math.max(1, Math.min(SEEDS, Math.floor(MOST_RUNS / arms)));
    const jobs = Array.from({ length: arms * seeds }, (_, n) => ({ arm: n % arms, seed: 1 + Math.floor(n / arms) }));
    let done = 0;
    const runs = await Promise.all(jobs.map(async (job) => {
        const run = await runner.ask({ kind: "measure", id, ...job });
        say(`Simulating: run ${++done} of ${jobs.length}…`);
        return run;
    }));
    const verdicts = JSON.parse(await runner.ask({ kind: "judge", id, runs: `[${runs.join()}]` })) as Judged[];
    place.replaceChildren(claims(verdicts));
    const held = verdicts.filter(({ holds }) => holds).length;
    const count = seeds === 1 ? "one run" : `${seeds} runs`;
    return `${held} of ${verdicts.length} claims hold, with ${count} of each of ${arms} settings, simulated in this page.`;
}

function claims(verdicts: Judged[]): HTMLTableElement {
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const name of ["claim", "stated", "simulated here", "verdict"]) {
        head.append(element("th", { scope: "col" }, name));
    }
    const body = table.createTBody();
    for (const { id, claim, stated, simulated, holds } of verdicts) {
        const row = body.insertRow();
        const cell = (className: string, name: string, ...inside: (Node | string)[]) => {
            const made = element("td", { className }, ...inside);
            if (name) made.dataset.h = name;
            row.append(made);
        };
        cell("claim", "", element("span", { className: "small" }, id), ` ${claim}`);
        cell("", "stated", stated);
        cell("", "simulated here", simulated);
        const [className, words] = holds === null ? ["none", "– not judged"] : holds ? ["good", "✓ holds"] : ["bad", "✗ does not"];
        cell(className!, "", words!);
    }
    return table;
}

function why(error: unknown): string {
    if (error instanceof Wrong) return inWords(error.fault);
    if (error instanceof Cancelled) return "it was stopped";
    return error instanceof Error ? error.message : String(error);
}

function table(runs: Summary[]): HTMLTableElement {
    const table = document.createElement("table");
    table.className = "numbers";
    const body = table.createTBody();
    for (const figure of figures(runs[0]!)) {
        const of = spread(runs.map(figure.of).filter((value): value is number => value !== null));
        if (!of) continue;
        const row = body.insertRow();
        row.insertCell().textContent = figure.label;
        const range = of.low === of.high ? "" : ` (${told(of.low, figure.unit)} to ${told(of.high, figure.unit)})`;
        row.insertCell().textContent = told(of.median, figure.unit) + range;
    }
    return table;
}

for (const section of document.querySelectorAll<HTMLElement>("section[id]")) judged(section);
for (const text of document.querySelectorAll<HTMLElement>("section details pre")) offer(text);
