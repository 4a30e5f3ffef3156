// The verdict in words: what a discipline does to the traffic of people, beside another one.
import { countOf, delayOf, delaysOf, digits, lossOf, middle, told, type Figure } from "./figures";
import type { Group, Summary } from "./messages";

function capital(name: string): string {
    return name.charAt(0).toUpperCase() + name.slice(1);
}

/** Traffic of which only the rate counts, one way of the line. */
function bulk(first: Summary, direction: Group["direction"]): { group: Group; n: number }[] {
    const all = first.groups.map((group, n) => ({ group, n }));
    return all.filter(({ group: { application: a, direction: way } }) => way === direction && (!a || a.kind === "transfers"));
}

/** One sentence of the verdict: better, worse, neither, or nothing to be judged. */
export interface Sentence {
    tone: "good" | "bad" | "same" | "told";
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
    const title = capital(name);
    return {
        good: `${title} gets through at once`, better: `${title} waits less, and still long`,
        same: `${title} waits long with both`, worse: `${title} waits longer`,
        fine: `${title} gets through at once with both`,
    };
}

/** Added delay at the 99th percentile that a person does not notice in a talk or a game: a small
 * part of the 150 ms from mouth to ear of ITU-T G.114. */
const UNNOTICED_MS = 50;
/** The share of lost packets that a talk bears: ITU-T G.1010, table I.1. */
const BORNE = 0.03;
/** Smaller changes are not worth a word. */
const WORTH = 1.15;
/** Times of so much more that came to an end are those of others. */
const OTHERS = 1.5;

/** Traffic that waits for answers: its words, the delay that it feels, and the share that is lost. */
interface Prompt {
    word: Word;
    worst: (summary: Summary) => number | null;
    lost: (summary: Summary) => number | null;
}

/** What such traffic feels, over a discipline's runs. Without any packet that arrives the delay has no end. */
interface Felt {
    delay: number;
    lost: number;
    isGood: boolean;
}

/** Null if nothing was sent. */
function felt(runs: Summary[], { worst, lost }: Prompt): Felt | null {
    const [delay, share] = [middle(runs, worst), middle(runs, lost) ?? 0];
    if (delay === null && share < 1) return null;
    return { delay: delay ?? Infinity, lost: share, isGood: delay !== null && delay <= UNNOTICED_MS && share <= BORNE };
}

/** A delay, and the loss if that counts. */
function inFigures({ delay, lost }: Felt, isLossTold: boolean): string {
    if (delay === Infinity) return "nothing arrives";
    return told(delay, "ms") + (isLossTold ? ` and ${told(100 * lost, "%")} lost` : "");
}

/** True if the delay alone would say something else. */
function isLossy({ delay, lost }: Felt): boolean {
    return delay <= UNNOTICED_MS && lost > BORNE;
}

/** The kinds of such traffic. Of both ways of a call, or of a game, the worse one counts. */
function prompts(first: Summary): Prompt[] {
    const prompt = new Map<string, { indices: number[]; word: Word }>();
    first.groups.forEach((group, n) => {
        if (!delaysOf(group)) return;
        const isCall = group.application?.kind === "datagrams" && group.application.mos !== null;
        const key = isCall ? "call" : group.application?.kind === "ping" ? "ping" : group.name.replace(/ (up|down)$/, "");
        const word = PROMPT[key] ?? promptOf(key);
        prompt.set(key, { indices: [...(prompt.get(key)?.indices ?? []), n], word });
    });
    return [...prompt.values()].map(({ indices, word }) => {
        const worst = (summary: Summary): number | null => {
            const values = indices.map((n) => delayOf(summary.groups[n], "p99"));
            const there = values.filter((value): value is number => value !== null);
            return there.length > 0 ? Math.max(...there) : null;
        };
        const lost = (summary: Summary): number | null => {
            const values = indices.map((n) => lossOf(summary.groups[n]));
            const there = values.filter((value): value is number => value !== null);
            return there.length > 0 ? Math.max(...there) : null;
        };
        return { word, worst, lost };
    });
}

/** What runs of one discipline show, without another beside them. */
export function alone(runs: Summary[]): Sentence[] {
    const first = runs[0];
    return (first ? prompts(first) : []).flatMap((prompt): Sentence[] => {
        const is = felt(runs, prompt);
        if (!is) return [];
        const text = (is.isGood ? prompt.word.fine : prompt.word.same).replace(" with both", "");
        return [{ tone: is.isGood ? "good" : "bad", text: `${text}: ${inFigures(is, is.lost > BORNE)}` }];
    });
}

/** What `other` changes in comparison with `base`, a sentence a kind of traffic. */
export function verdict(base: Summary[], other: Summary[]): Sentence[] {
    const first = base[0];
    if (!first || other.length === 0) return [];
    const sentences: Sentence[] = [];
    const arrow = (a: number, b: number, unit: string) => `${told(a, unit)} → ${told(b, unit)}`;
    for (const prompt of prompts(first)) {
        const { word } = prompt;
        const [a, b] = [felt(base, prompt), felt(other, prompt)];
        if (!a || !b) continue;
        const isLossTold = isLossy(a) || b.lost > BORNE;
        const figures = `${inFigures(a, isLossTold)} → ${inFigures(b, isLossTold)}`;
        // Neither counts while nobody notices it.
        const change = (before: number, after: number, unnoticed: number) =>
            Math.max(before, after) <= unnoticed ? 0 : Math.sign(Number(after > before * WORTH) - Number(after * WORTH < before));
        // Of what is mostly lost, the share that arrives tells more.
        const lost = change(a.lost, b.lost, BORNE) || change(1 - b.lost, 1 - a.lost, 0);
        const changes = [change(a.delay, b.delay, UNNOTICED_MS), lost];
        const [isBetter, isWorse] = [changes.includes(-1), changes.includes(1)];
        if (b.isGood) {
            sentences.push({ tone: a.isGood ? "same" : "good", text: `${a.isGood ? word.fine : word.good}: ${figures}` });
        } else if (isBetter && !isWorse) {
            sentences.push({ tone: "good", text: `${word.better}: ${figures}` });
        } else if (isWorse && !isBetter) {
            sentences.push({ tone: "bad", text: `${word.worse}: ${figures}` });
        } else {
            sentences.push({ tone: "same", text: `${word.same}: ${figures}` });
        }
    }
    const compare = (of: Figure["of"], unit: string, better: Figure["better"], [gains, loses, same]: [string, string, string]) => {
        const [a, b] = [middle(base, of), middle(other, of)];
        if (a === null || b === null) return;
        // Nothing under both is as much.
        const ratio = a === b ? 1 : better === "more" ? b / Math.max(a, 1e-9) : a / Math.max(b, 1e-9);
        const tone = ratio > WORTH ? "good" : ratio < 1 / WORTH ? "bad" : "same";
        const text = { good: gains, bad: loses, same }[tone];
        sentences.push({ tone, text: `${text}${text.includes(":") ? "," : ":"} ${arrow(a, b, unit)}` });
    };
    first.groups.forEach((group, n) => {
        const application = group.application;
        if (application?.kind === "web") {
            const load = (each: Summary) => {
                const application = each.groups[n]?.application;
                return application?.kind === "web" ? (application.load_ms?.p50 ?? null) : null;
            };
            const count = (each: Summary) => countOf(each.groups[n]);
            const [a, b] = [middle(base, load), middle(other, load)];
            const [before, after] = [middle(base, count) ?? 0, middle(other, count) ?? 0];
            const isMore = after > before * OTHERS;
            // What is late under one and never ends under the other is among the times of one alone.
            if (a !== null && b !== null && (isMore ? b * WORTH > a : before > after * OTHERS && a * WORTH > b)) {
                const text = `${isMore ? "More" : "Fewer"} pages are loaded, so that times do not compare`;
                const figures = `${digits(before)} in ${told(a, "ms")} → ${digits(after)} in ${told(b, "ms")}`;
                sentences.push({ tone: "told", text: `${text}: ${figures}` });
            } else {
                compare(load, "ms", "less", ["Pages load faster", "Pages load slower", "Pages load as fast"]);
            }
        } else if (application?.kind === "dash") {
            const rate = (each: Summary) => {
                const application = each.groups[n]?.application;
                return application?.kind === "dash" ? application.chosen_mbps : null;
            };
            compare(rate, "Mbit/s", "more", ["The film is sharper", "The film is less sharp", "The film is as sharp"]);
        }
    });
    for (const direction of ["up", "down"] as const) {
        const rivals = bulk(first, direction);
        if (rivals.length === 0) continue;
        const rates = (each: Summary) => rivals.map(({ n }) => each.groups[n]?.goodput_mbps ?? 0);
        const sum = (each: Summary) => rates(each).reduce((sum, rate) => sum + rate, 0);
        const [one] = rivals;
        const way = { up: "Upload", down: "Download" }[direction];
        const title = rivals.length > 1 || /^bulk\b/.test(one!.group.name) ? way : capital(one!.group.name);
        compare(sum, "Mbit/s", "more", [`${title}: more`, `${title}: less`, `${title} keeps its rate`]);
        if (rivals.length === 1) continue;
        // What one gains another loses: neither is better.
        const shares = (runs: Summary[]) => rivals.map((_, n) => {
            const share = middle(runs, (each) => rates(each)[n]! / Math.max(sum(each), 1e-9));
            return Math.round(100 * (share ?? 0));
        }).join(" : ");
        const names = rivals.map(({ group }) => group.name.replace(/ (up|down)$/, "")).join(" : ");
        sentences.push({ tone: "told", text: `Shares of ${names}, ${direction}: ${shares(base)} → ${shares(other)} %` });
    }
    return sentences;
}
