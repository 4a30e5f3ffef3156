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

/** A button that runs something and, meanwhile, stops it; what was said comes after it, then `place`. */
function stoppable(label: string, place: HTMLElement, work: (say: (text: string) => void, signal: AbortSignal) => Promise<string>): Node[] {
    const button = element("button", { type: "button", className: "again" }, label);
    const said = element("p", { className: "setup" });
    said.setAttribute("role", "status");
    const say = (text: string) => (said.textContent = text);
    let running: AbortController | null = null;
    button.addEventListener("click", async () => {
        if (running) return running.abort();
        running = new AbortController();
        button.textContent = "Stop";
        place.replaceChildren();
        try {
            say(await work(say, running.signal));
        } catch (error) {
            say(error instanceof Cancelled ? "Stopped." : `It cannot be run here: ${why(error)}`);
        }
        running = null;
        button.textContent = label;
    });
    return [button, said, place];
}

/** A button before each scenario's text, and what its runs showed after it. */
function offer(text: HTMLElement): void {
    const place = element("div");
    text.before(...stoppable("Run it again, here", place, async (say, signal) => {
        say("Simulating…");
        const runner = await simulator();
        const runs: Summary[] = [];
        for (let seed = 1; seed <= SEEDS; seed++) {
            say(`Simulating: run ${seed} of ${SEEDS}…`);
            const job = { text: text.textContent ?? "", name: "again", words: undefined, seed };
            runs.push(JSON.parse((await runner.run(job, signal)).summary) as Summary);
            place.replaceChildren(table(runs));
        }
        return `${SEEDS} runs, seeds 1 to ${SEEDS}: medians, with the least and the greatest.`;
    }));
}

/** A button in an experiment's section, and the verdicts of its runs. */
function judged(section: HTMLElement): void {
    const place = element("div", { className: "judged" });
    section.append(...stoppable("Run and judge it again, here", place, (say, signal) => judge(section.id, place, say, signal)));
}

async function judge(id: string, place: HTMLElement, say: (text: string) => void, signal: AbortSignal): Promise<string> {
    say("Simulating…");
    const runner = await simulator();
    const arms = Number(await runner.ask({ kind: "arms", id }, signal));
    if (arms > MOST_RUNS) return `${arms} settings are too many for a page: simnel paper ${id} runs them.`;
    const seeds = Math.max(1, Math.min(SEEDS, Math.floor(MOST_RUNS / arms)));
    const jobs = Array.from({ length: arms * seeds }, (_, n) => ({ arm: n % arms, seed: 1 + Math.floor(n / arms) }));
    let done = 0;
    const runs = await Promise.all(jobs.map(async (job) => {
        const run = await runner.ask({ kind: "measure", id, ...job }, signal);
        say(`Simulating: run ${++done} of ${jobs.length}…`);
        return run;
    }));
    const verdicts = JSON.parse(await runner.ask({ kind: "judge", id, runs: `[${runs.join()}]` }, signal)) as Judged[];
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
