// The answer to a question, on every page that has one: the verdict in words and the table of figures.
import { element, swatch } from "./dom";
import { figures, spread, told } from "./figures";
import type { Summary } from "./messages";
import { styles } from "./styles";
import { alone, verdict, type Sentence } from "./verdict";

/** Runs of one scenario: of each discipline, in the order of their names, a summary a seed. */
export interface Case {
    /** Its name where there are several. */
    name: string;
    runs: Summary[][];
}

/** The verdict: each discipline against the first; of a single one what it does. */
export function tell(place: HTMLElement, names: string[], cases: Case[]): void {
    const taken = styles(names);
    const list = (of: (runs: Summary[][]) => Sentence[]) => {
        const sentences = cases.flatMap(({ name, runs }) => of(runs).map(({ tone, text }) =>
            element("li", { className: tone }, text, ...(name ? [" ", element("small", {}, name)] : []))));
        return element("ul", {}, ...sentences);
    };
    const lists = names.slice(1).flatMap((name, n) => {
        const small = element("small", {}, `instead of ${names[0]}`);
        const title = element("h3", {}, swatch(taken[n + 1]!), ` ${name} `, small);
        return [title, list((runs) => verdict(runs[0]!, runs[n + 1]!))];
    });
    if (names.length === 1) lists.push(list((runs) => alone(runs[0]!)));
    if (names.length === 0) lists.push(element("p", {}, "Nothing could be simulated."));
    place.replaceChildren(...lists);
}

/** True if all runs of a discipline are the same packet by packet. */
function areAlike(runs: Summary[]): boolean {
    return runs.every(({ hash }) => hash === runs[0]!.hash);
}

/** What bands from the least to the greatest of several runs say of one more, value by value: by chance
 * it is below or above all `n` of them in two of n + 1 cases. Null where no seed makes a difference:
 * then there are no bands. */
export function bands(n: number, names: string[], runs: Summary[][]): string | null {
    if (runs.every(areAlike)) return null;
    const alike = names.filter((_, of) => runs[of]!.length > 1 && areAlike(runs[of]!));
    const chance = `another run lies between with a chance of ${Math.round((100 * (n - 1)) / (n + 1))} %`;
    return `bands the least and the greatest: ${chance}`
        + (alike.length > 0 ? `; seeds make no difference to ${alike.join(", ")}` : "");
}

/** The line and the name of each discipline, for all figures beside it. */
export function legend(names: string[]): HTMLSpanElement[] {
    const taken = styles(names);
    return names.map((name, n) => element("span", {}, swatch(taken[n]!), name));
}

/** All figures of a scenario's runs: medians, with the least and the greatest. */
export function table(table: HTMLTableElement, names: string[], runs: Summary[][]): void {
    const head = table.tHead ?? table.createTHead();
    const body = table.tBodies[0] ?? table.createTBody();
    head.replaceChildren();
    body.replaceChildren();
    const first = runs[0]?.[0];
    if (!first) return;
    const cell = (scope: string, ...inside: (Node | string)[]) => {
        const made = element("th", {}, ...inside);
        made.scope = scope;
        return made;
    };
    const taken = styles(names);
    head.insertRow().append(cell("col", "Figure"), ...names.map((name, n) => cell("col", swatch(taken[n]!), " ", name)));
    for (const figure of figures(first)) {
        const row = body.insertRow();
        row.append(cell("row", figure.label));
        for (const each of runs) {
            const of = spread(each.map(figure.of).filter((value): value is number => value !== null));
            const td = row.insertCell();
            if (!of) {
                td.textContent = "–";
                continue;
            }
            const [median, low, high] = [of.median, of.low, of.high].map((value) => told(value, figure.unit));
            td.textContent = median!;
            // Runs that read alike are said once.
            if (low !== median || high !== median) td.append(element("small", {}, ` ${low} to ${high}`));
        }
    }
}
