// Figures of runs: what can be compared between disciplines, and the verdict in words.
import type { Group, Summary } from "./messages";

/** One row of the table: a figure that each run has. */
export interface Figure {
    id: string;
    label: string;
    unit: "ms" | "Mbit/s" | "MOS" | "s" | "%" | "";
    better: "less" | "more";
    of: (summary: Summary) => number | null;
}

export interface Spread {
    median: number;
    low: number;
    high: number;
}

export function spread(values: number[]): Spread | null {
    if (values.length === 0) return null;
    const sorted = [...values].sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
    const half = sorted.length / 2;
    const median = sorted.length % 2 ? sorted[Math.floor(half)]! : (sorted[half - 1]! + sorted[half]!) / 2;
    return { median, low: at(0), high: at(1) };
}

/** A number with two digits, or those before its point. */
export function digits(value: number): string {
    const size = Math.abs(value);
    if (size >= 100) return String(Math.round(value));
    return String(Number(value.toPrecision(size < 0.1 ? 1 : 2)));
}

/** With its unit; what is longer than a second is said in seconds. */
export function told(value: number, unit: string): string {
    if (unit === "ms" && Math.abs(value) >= 1000) return `${digits(value / 1000)} s`;
    if (unit === "%") return `${digits(value)} %`;
    return `${digits(value)} ${unit}`.trim();
}

/** Traffic both ways has its direction in its name already. */
export function fullName({ name, direction }: Pick<Group, "name" | "direction">): string {
    return name.endsWith(direction) ? name : `${name} ${direction}`;
}

/** The figures that a scenario's runs have. */
export function figures(summary: Summary): Figure[] {
    const rows: Figure[] = [];
    summary.groups.forEach((group, n) => {
        const name = fullName(group);
        const add = (what: string, unit: Figure["unit"], better: Figure["better"], of: (group: Group) => number | null) => {
            const value = (each: Summary) => (each.groups[n] ? of(each.groups[n]!) : null);
            rows.push({ id: `${n} ${what}`, label: `${name}: ${what}`, unit, better, of: value });
        };
        const kind = group.application?.kind;
        if (kind === "ping" || kind === "datagrams") {
            const added = (group: Group) => {
                const application = group.application;
                const is = application?.kind === "ping" || application?.kind === "datagrams";
                return is && application.added_ms.n > 0 ? application.added_ms : null;
            };
            add("added delay, median", "ms", "less", (group) => added(group)?.p50 ?? null);
            add("added delay, 99 of 100", "ms", "less", (group) => added(group)?.p99 ?? null);
        }
        if (kind === "datagrams") {
            add("lost", "%", "less", ({ application: a }) => (a?.kind === "datagrams" ? a.loss * 100 : null));
            add("quality", "MOS", "more", ({ application: a }) => (a?.kind === "datagrams" ? a.mos : null));
        } else if (kind === "web") {
            add("a page loads in", "ms", "less", ({ application: a }) => (a?.kind === "web" && a.load_ms.n ? a.load_ms.p50 : null));
            add("pages loaded", "", "more", ({ application: a }) => (a?.kind === "web" ? a.pages : null));
        } else if (kind === "dash") {
            add("picture's rate", "Mbit/s", "more", ({ application: a }) => (a?.kind === "dash" ? a.chosen_mbps : null));
            add("stalled", "s", "less", ({ application: a }) => (a?.kind === "dash" ? a.stalled_s : null));
        } else if (kind === "messages") {
            add("latency, 99 of 100", "ms", "less", ({ application: a }) => (a?.kind === "messages" ? a.latency_ms.p99 : null));
        } else if (kind === "bursts" || kind === "transfers") {
            const time = ({ application: a }: Group) =>
                (a?.kind === "bursts" || a?.kind === "transfers") && a.completion_ms.n ? a.completion_ms.p50 : null;
            add("complete in", "ms", "less", time);
        }
        if (kind !== "ping" && kind !== "datagrams") add("goodput", "Mbit/s", "more", (group) => group.goodput_mbps);
    });
    summary.lines.forEach((line, n) => {
        const value = (of: (line: Summary["lines"][number]) => number | null) => (each: Summary) =>
            each.lines[n] ? of(each.lines[n]!) : null;
        const name = `line ${line.direction}`;
        const add = (what: string, unit: Figure["unit"], better: Figure["better"], of: (line: Summary["lines"][number]) => number | null) =>
            rows.push({ id: `line ${n} ${what}`, label: `${name}: ${what}`, unit, better, of: value(of) });
        add("in use", "%", "more", (line) => (line.utilisation === null ? null : line.utilisation * 100));
        add("longest queue, packets", "", "less", (line) => line.longest_queue);
        add("dropped packets", "", "less", (line) => line.drops);
    });
    return rows;
}

/** The median over a discipline's runs. */
export function middle(runs: Summary[], of: Figure["of"]): number | null {
    const values = runs.map(of).filter((value): value is number => value !== null);
    return spread(values)?.median ?? null;
}

/** One sentence of the verdict: better, worse or neither. */
export interface Sentence {
    tone: "good" | "bad" | "same";
    text: string;
}

type Word = { good: string; better: string; same: string; worse: string; fine: string };

/** What is said of traffic that waits for answers, by what it is. */
const PROMPT: Record<string, Word> = {
    call: { good: "Calls stay clear", better: "Calls get better, and still suffer", same: "Calls suffer with both", worse: "Calls get worse", fine: "Calls are clear with both" },
    game: { good: "Games answer at once", better: "Games get better, and still lag", same: "Games lag with both", worse: "Games get worse", fine: "Games answer at once with both" },
    ping: { good: "A small packet gets through at once", better: "A small packet waits less, and still long", same: "A small packet waits long with both", worse: "A small packet waits longer", fine: "A small packet gets through at once with both" },
};

/** The same of datagrams of another name. */
function promptOf(name: string): Word {
    const title = name.charAt(0).toUpperCase() + name.slice(1);
    return {
        good: `${title} gets through at once`, better: `${title} waits less, and still long`,
        same: `${title} waits long with both`, worse: `${title} waits longer`,
        fine: `${title} gets through at once with both`,
    };
}

/** Added delay at the 99th percentile that a person does not notice in a talk or a game: a small
 * part of the 150 ms from mouth to ear of ITU-T G.114. */
const UNNOTICED_MS = 50;
/** Smaller changes are not worth a word. */
const WORTH = 1.15;

/** What `other` changes in comparison with `base`, a sentence a kind of traffic. */
export function verdict(base: Summary[], other: Summary[]): Sentence[] {
    const first = base[0];
    if (!first || other.length === 0) return [];
    const sentences: Sentence[] = [];
    const arrow = (a: number, b: number, unit: string) => `${told(a, unit)} → ${told(b, unit)}`;
    // Both ways of a call, or of a game: the worse one.
    const prompt = new Map<string, { indices: number[]; word: Word }>();
    first.groups.forEach((group, n) => {
        const kind = group.application?.kind;
        if (kind !== "ping" && kind !== "datagrams") return;
        const isCall = group.application?.kind === "datagrams" && group.application.mos !== null;
        const key = isCall ? "call" : kind === "ping" ? "ping" : group.name.replace(/ (up|down)$/, "");
        const word = PROMPT[key] ?? promptOf(key);
        prompt.set(key, { indices: [...(prompt.get(key)?.indices ?? []), n], word });
    });
    for (const [, { indices, word }] of prompt) {
        const worst = (summary: Summary): number | null => {
            const values = indices.map((n) => {
                const application = summary.groups[n]?.application;
                const is = application?.kind === "ping" || application?.kind === "datagrams";
                return is && application.added_ms.n > 0 ? application.added_ms.p99 : null;
            });
            const there = values.filter((value): value is number => value !== null);
            return there.length > 0 ? Math.max(...there) : null;
        };
        const [a, b] = [middle(base, worst), middle(other, worst)];
        if (a === null || b === null) continue;
        const figures = arrow(a, b, "ms");
        if (b <= UNNOTICED_MS) {
            const wasGood = a <= UNNOTICED_MS;
            sentences.push({ tone: wasGood ? "same" : "good", text: `${wasGood ? word.fine : word.good}: ${figures}` });
        } else if (b * WORTH < a) {
            sentences.push({ tone: "good", text: `${word.better}: ${figures}` });
        } else if (b > a * WORTH) {
            sentences.push({ tone: "bad", text: `${word.worse}: ${figures}` });
        } else {
            sentences.push({ tone: "same", text: `${word.same}: ${figures}` });
        }
    }
    const compare = (of: Figure["of"], unit: string, better: Figure["better"], [gains, loses, same]: [string, string, string]) => {
        const [a, b] = [middle(base, of), middle(other, of)];
        if (a === null || b === null) return;
        const ratio = better === "more" ? b / Math.max(a, 1e-9) : a / Math.max(b, 1e-9);
        const tone = ratio > WORTH ? "good" : ratio < 1 / WORTH ? "bad" : "same";
        const text = { good: gains, bad: loses, same }[tone];
        sentences.push({ tone, text: `${text}${text.includes(":") ? "," : ":"} ${arrow(a, b, unit)}` });
    };
    first.groups.forEach((group, n) => {
        const application = group.application;
        const { name } = group;
        if (application?.kind === "web") {
            const load = (each: Summary) => {
                const application = each.groups[n]?.application;
                return application?.kind === "web" && application.load_ms.n ? application.load_ms.p50 : null;
            };
            compare(load, "ms", "less", ["Pages load faster", "Pages load slower", "Pages load as fast"]);
        } else if (application?.kind === "dash") {
            const rate = (each: Summary) => {
                const application = each.groups[n]?.application;
                return application?.kind === "dash" ? application.chosen_mbps : null;
            };
            compare(rate, "Mbit/s", "more", ["The film is sharper", "The film is less sharp", "The film is as sharp"]);
        } else if (!application || application.kind === "transfers") {
            const goodput = (each: Summary) => each.groups[n]?.goodput_mbps ?? null;
            const title = name.charAt(0).toUpperCase() + name.slice(1);
            compare(goodput, "Mbit/s", "more", [
                `${title}: more`,
                `${title}: less`,
                `${title} keeps its rate`,
            ]);
        }
    });
    return sentences;
}
