// Figures of runs: what can be compared between disciplines, and curves that a summary has.
import type { Cdf, Curve, Delays, Group, Shown, Summary } from "./messages";

/** One row of the table: a figure that each run has. */
export interface Figure {
    id: string;
    label: string;
    unit: "ms" | "Mbit/s" | "MOS" | "s" | "%" | "";
    better: "less" | "more";
    /** Not of those that are seen first. */
    isMinor?: true;
    of: (summary: Summary) => number | null;
    /** How many it is of, where only what ended has been timed: times of other counts do not compare. */
    count?: (summary: Summary) => number | null;
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

/** With its unit; what is longer than a second is said in seconds, what nobody can feel not at all. */
export function told(value: number, unit: string): string {
    if (unit === "ms" && value > 0 && value < 0.1) return "below 0.1 ms";
    if (unit === "ms" && Math.abs(value) >= 1000) return `${digits(value / 1000)} s`;
    if (unit === "%") return `${digits(value)} %`;
    return `${digits(value)} ${unit}`.trim();
}

/** Traffic both ways has its direction in its name already. */
export function fullName({ name, direction }: Pick<Group, "name" | "direction">): string {
    return name.endsWith(direction) ? name : `${name} ${direction}`;
}

/** Delays of traffic that waits for answers; null of other traffic, and of a group that is not there. */
export function delaysOf(group: Group | undefined): Delays | null {
    const application = group?.application;
    return application?.kind === "ping" || application?.kind === "datagrams" ? application : null;
}

/** A figure of those delays; null if nothing arrived. */
export function delayOf(group: Group | undefined, which: "p50" | "p99"): number | null {
    return delaysOf(group)?.added_ms?.[which] ?? null;
}

/** The share of datagrams that are lost; null of other traffic. Of pings some are on their way at the
 * end: lost is said only where nothing arrived. */
export function lossOf(group: Group | undefined): number | null {
    const application = group?.application;
    if (application?.kind === "ping") return Number(application.received === 0 && application.sent > 0);
    return application?.kind === "datagrams" ? application.loss : null;
}

/** How many pages, bursts or transfers came to their end; null of other traffic. */
export function countOf(group: Group | undefined): number | null {
    const application = group?.application;
    switch (application?.kind) {
        case "web": return application.pages;
        case "bursts": return application.completed;
        case "transfers": return application.finished;
        default: return null;
    }
}

/** The figures that a scenario's runs have. */
export function figures(summary: Summary): Figure[] {
    const rows: Figure[] = [];
    summary.groups.forEach((group, n) => {
        const name = fullName(group);
        const add = (
            what: string, unit: Figure["unit"], better: Figure["better"], of: (group: Group) => number | null,
            more: Pick<Figure, "isMinor" | "count"> = {},
        ) => {
            const value = (each: Summary) => (each.groups[n] ? of(each.groups[n]!) : null);
            rows.push({ id: `${n} ${what}`, label: `${name}: ${what}`, unit, better, of: value, ...more });
        };
        const count = (each: Summary) => countOf(each.groups[n]);
        const kind = group.application?.kind;
        if (delaysOf(group)) {
            add("added delay, median", "ms", "less", (group) => delayOf(group, "p50"), { isMinor: true });
            add("added delay, 99 of 100", "ms", "less", (group) => delayOf(group, "p99"));
        }
        if (kind === "datagrams") {
            add("lost", "%", "less", (group) => (lossOf(group) ?? 0) * 100);
            // Only a call has one.
            if (group.application?.kind === "datagrams" && group.application.mos !== null) {
                add("quality", "MOS", "more", ({ application: a }) => (a?.kind === "datagrams" ? a.mos : null));
            }
        } else if (kind === "web") {
            const time = ({ application: a }: Group) => (a?.kind === "web" ? (a.load_ms?.p50 ?? null) : null);
            add("a page loads in", "ms", "less", time, { count });
            add("pages loaded", "", "more", countOf);
        } else if (kind === "dash") {
            add("picture's rate", "Mbit/s", "more", ({ application: a }) => (a?.kind === "dash" ? a.chosen_mbps : null));
            add("stalled", "s", "less", ({ application: a }) => (a?.kind === "dash" ? a.stalled_s : null));
        } else if (kind === "messages") {
            add("latency, 99 of 100", "ms", "less", ({ application: a }) => (a?.kind === "messages" ? (a.latency_ms?.p99 ?? null) : null));
        } else if (kind === "bursts" || kind === "transfers") {
            const time = ({ application: a }: Group) =>
                a?.kind === "bursts" || a?.kind === "transfers" ? (a.completion_ms?.p50 ?? null) : null;
            add("complete in", "ms", "less", time, { count });
            add("completed", "", "more", countOf);
        }
        if (!delaysOf(group)) add("goodput", "Mbit/s", "more", (group) => group.goodput_mbps);
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

/** A run's curves over time that its summary has, on every page: delays, then goodput. */
export function overTime({ groups }: Summary): Curve[] {
    const delays = groups.flatMap((group): Curve[] => {
        const series = delaysOf(group)?.added_series_ms ?? [];
        const points = Float64Array.from(series, (delay) => delay ?? NaN);
        return points.length > 0 ? [{ kind: "delay", name: fullName(group), points }] : [];
    });
    const goodputs = groups.flatMap((group): Curve[] => {
        // What sends at a rate of its own has no goodput worth a curve.
        const isSteady = delaysOf(group) || group.application?.kind === "messages";
        const points = Float64Array.from(group.series_mbps);
        return points.length > 0 && !isSteady ? [{ kind: "goodput", name: fullName(group), points }] : [];
    });
    return [...delays, ...goodputs];
}

/** The curves of a run of which there is no more than its summary: delays by share as well. */
export function shownOf(summary: Summary, interval: number): Shown {
    const shares = summary.groups.flatMap((group): Curve[] => {
        const points = quantiles(delaysOf(group)?.added_cdf ?? group.sojourn_cdf);
        return points ? [{ kind: "share", name: fullName(group), points }] : [];
    });
    return { summary: "", interval, curves: [...overTime(summary), ...shares] };
}

/** The values that 0 to 100 of a hundred do not exceed. */
function quantiles(cdf: Cdf): Float64Array | null {
    if (cdf.length === 0) return null;
    let at = 0;
    return Float64Array.from({ length: 101 }, (_, percent) => {
        while (at < cdf.length - 1 && cdf[at]![1] * 100 < percent) at += 1;
        return cdf[at]![0];
    });
}
