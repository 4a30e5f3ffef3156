// The papers' page: each scenario there can be run again in the page, with as many seeds as asked.
import { figures, spread, told } from "./figures";
import type { Summary } from "./messages";
import { Cancelled, Pool, Wrong } from "./pool";

/** Runs of one scenario: enough for a median. */
const SEEDS = 5;

/** Made when it is first needed: a page that is only read loads no simulator. */
let pool: Promise<Pool> | null = null;

async function simulator(): Promise<Pool> {
    const answer = await fetch("lab.wasm");
    if (!answer.ok) throw new Error(`lab.wasm: ${answer.status} ${answer.statusText}`);
    return new Pool(await WebAssembly.compile(await answer.arrayBuffer()));
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
            pool ??= simulator();
            const runner = await pool;
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

function why(error: unknown): string {
    if (error instanceof Wrong) return `${error.fault.what}; expected ${error.fault.expected}`;
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

for (const text of document.querySelectorAll<HTMLElement>("section details pre")) offer(text);
