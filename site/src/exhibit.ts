// A discipline alone under load, drawn: rows over time, drops and marks, and one moment of it.
import type { Explained, Load, Strip } from "./explained";
import { told } from "./figures";
import { dash } from "./styles";
import { element, path, ticks } from "./svg";

/** What the core's `exhibit::Record` says. */
export interface Shown {
    interval_ms: number;
    looks: Look[];
    /** Milliseconds, load, why. */
    events: [number, number, string][];
}

interface Look {
    loads: Seen[];
    own: string;
    inside: Record<string, number>;
    /** Packets and probability, level by level. */
    bins?: [number, number][];
}

interface Seen {
    waiting: number;
    delay_ms: number | null;
    sent_mbps: number;
    dropped: number;
    marked: number;
    queue: { is_sparse: boolean; deficit: number; count: number; p_drop: number } | null;
}

const HEIGHT = 96;
const TITLE = 20;
const LEFT = 52;
const RIGHT = 8;
const ROW = 14;
/** Looks for which a flow may send nothing before its line is broken. */
const PAUSE = 25;
/** Bins of a level of SFB. */
const BINS = 16;

/** One line of a strip. */
interface Series {
    label: string;
    /** Number of its colour and dash. */
    n: number;
    values: (number | null)[];
}

const statistics = new WeakMap<Look, Record<string, unknown>>();

function own(look: Look): Record<string, unknown> {
    let parsed = statistics.get(look);
    if (!parsed) {
        parsed = JSON.parse(look.own) as Record<string, unknown>;
        statistics.set(look, parsed);
    }
    return parsed;
}

function series(strip: Strip, loads: Load[], { looks }: Shown): Series[] {
    if (Array.isArray(strip.of)) {
        return strip.of.map(({ key, scale = 1 }, n) => ({
            label: strip.labels?.[n] ?? strip.title, n: loads.length + n,
            values: looks.map((look) => {
                const value = look.inside[key] ?? own(look)[key];
                return typeof value === "number" ? value * scale : null;
            }),
        }));
    }
    const of = {
        delay: (seen: Seen) => seen.delay_ms,
        waiting: (seen: Seen) => seen.waiting,
        rate: (seen: Seen) => seen.sent_mbps,
        p_drop: (seen: Seen) => (seen.queue ? seen.queue.p_drop * 100 : null),
    }[strip.of];
    return loads.map((load, n) => {
        const values = looks.map((look) => of(look.loads[n]!));
        return { label: load.name, n, values: strip.of === "rate" ? smooth(values) : values };
    });
}

/** Mean over nine looks: single packets make a rate jump. */
function smooth(values: (number | null)[]): (number | null)[] {
    return values.map((_, at) => {
        const near = values.slice(Math.max(0, at - 4), at + 5).map((value) => value ?? 0);
        return near.reduce((a, b) => a + b, 0) / near.length;
    });
}

/** Colours are eight: a figure has fewer lines. */
const colour = (n: number) => `curve-${n}`;

/** All strips over time, one below the other, with a place for the cursor. */
export function strips(about: Explained, levels: Record<string, number>, record: Shown, width: number): SVGSVGElement {
    const events = about.loads.length * ROW + TITLE;
    const height = about.strips.length * (HEIGHT + TITLE) + events + 24;
    const wide = width - LEFT - RIGHT;
    const end = record.looks.length * record.interval_ms;
    const x = (ms: number) => LEFT + (wide * ms) / end;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "strips" });
    const text: string[] = [];
    about.strips.forEach((strip, row) => {
        const top = row * (HEIGHT + TITLE) + TITLE;
        const all = series(strip, about.loads, record);
        const level = strip.level === undefined ? undefined : levels[strip.level];
        const values = all.flatMap((each) => each.values).filter((value): value is number => value !== null);
        const most = Math.max(1e-6, ...values, (level ?? 0) * 1.2) * 1.05;
        const y = (value: number) => top + HEIGHT * (1 - value / most);
        const unit = strip.unit ? `, ${strip.unit}` : "";
        svg.append(element("text", { x: 0, y: top - 6, class: "title" }, strip.title + unit));
        for (const tick of ticks(most, 3)) {
            svg.append(element("line", { x1: LEFT, x2: LEFT + wide, y1: y(tick), y2: y(tick), class: "grid" }));
            svg.append(element("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
        }
        if (level !== undefined) {
            svg.append(element("line", { x1: LEFT, x2: LEFT + wide, y1: y(level), y2: y(level), class: "level" }));
            svg.append(element("text", { x: LEFT + wide, y: y(level) - 3, "text-anchor": "end" }, `${strip.level} ${level}`));
        }
        for (const { n, values } of all) {
            const points = values.map((value, at): [number, number] | null =>
                value === null ? null : [x((at + 1) * record.interval_ms), y(value)]);
            svg.append(element("path", { d: path(points, PAUSE), class: `line ${colour(n)}`, "stroke-dasharray": dash({ dash: n }).join(" ") }));
        }
        const last = all.map(({ label, values }) => `${label} ${told(values.at(-1) ?? 0, strip.unit)}`);
        text.push(`${strip.title} at the end: ${last.join(", ")}`);
    });
    drops(svg, about, record, about.strips.length * (HEIGHT + TITLE) + TITLE, x);
    const bottom = height - 20;
    for (const tick of ticks(end / 1000, Math.max(2, Math.floor(wide / 90)))) {
        svg.append(element("text", { x: x(tick * 1000), y: bottom + 14, "text-anchor": "middle" }, `${tick} s`));
    }
    svg.append(element("line", { x1: LEFT, x2: LEFT, y1: TITLE, y2: bottom, class: "cursor" }));
    svg.setAttribute("aria-label", `${about.title}. ${text.join(". ")}.`);
    return svg;
}

function drops(svg: SVGSVGElement, { loads }: Explained, record: Shown, top: number, x: (ms: number) => number): void {
    const { events, looks, interval_ms } = record;
    /** Drops and marks of a load up to the end of look `at`. */
    const count = (at: number, n: number) => {
        const seen = looks[at]?.loads[n];
        return seen ? seen.dropped + seen.marked : 0;
    };
    // The record tells of its first thousands one by one; then a look in which there were some has a stroke.
    const known = Math.ceil((events.at(-1)?.[0] ?? 0) / interval_ms);
    svg.append(element("text", { x: 0, y: top - 6, class: "title" }, "Drops and marks, one stroke each"));
    loads.forEach((_, n) => {
        const y = top + n * ROW;
        const strokes = events.filter(([, load]) => load === n).map(([ms, , why]) =>
            why === "mark" ? `M${x(ms).toFixed(1)} ${y + 5}v4` : `M${x(ms).toFixed(1)} ${y + 1}v11`);
        for (let at = known; at < looks.length; at++) {
            if (count(at, n) > count(at - 1, n)) strokes.push(`M${x((at + 1) * interval_ms).toFixed(1)} ${y + 1}v11`);
        }
        svg.append(element("text", { x: LEFT - 6, y: y + 11, "text-anchor": "end" }, String(count(looks.length - 1, n))));
        svg.append(element("path", { d: strokes.join(""), class: `line ${colour(n)}` }));
    });
}

/** Moves the cursor of `svg` to look `at`. */
export function move(svg: SVGSVGElement, record: Shown, at: number): void {
    const wide = svg.viewBox.baseVal.width - LEFT - RIGHT;
    const x = LEFT + (wide * (at + 1)) / record.looks.length;
    const cursor = svg.querySelector(".cursor");
    for (const end of ["x1", "x2"]) cursor?.setAttribute(end, String(x));
}

/** The look that is pointed at. */
export function pointed(svg: SVGSVGElement, record: Shown, clientX: number): number {
    const { left, width } = svg.getBoundingClientRect();
    const share = ((clientX - left) * svg.viewBox.baseVal.width / width - LEFT) / (svg.viewBox.baseVal.width - LEFT - RIGHT);
    return Math.max(0, Math.min(record.looks.length - 1, Math.round(share * record.looks.length - 1)));
}

/** Look `at` in words. */
export function tell(about: Explained, record: Shown, at: number): string {
    const look = record.looks[at];
    if (!look) return "";
    const time = ((at + 1) * record.interval_ms / 1000).toFixed(2);
    const loads = about.loads.map((load, n) => {
        const { waiting, delay_ms, dropped, marked } = look.loads[n]!;
        const more = [`${waiting} ${waiting === 1 ? "packet waits" : "packets wait"}`];
        if (delay_ms !== null) more.push(told(delay_ms, "ms"));
        if (dropped > 0) more.push(`${dropped} dropped so far`);
        if (marked > 0) more.push(`${marked} marked`);
        return `${load.name}: ${more.join(", ")}`;
    });
    const own = about.strips.filter((strip) => Array.isArray(strip.of)).map((strip) => {
        const values = series(strip, about.loads, { ...record, looks: [look] });
        return `${strip.title} ${values.map(({ values: [value] }) => told(value ?? 0, strip.unit)).join(", ")}`;
    });
    return `at ${time} s: ${[...own, ...loads].join(" · ")}`;
}

/** DRR++'s lists at look `at`. */
export function lists(about: Explained, record: Shown, at: number): HTMLElement {
    const look = record.looks[at]!;
    const place = document.createElement("div");
    place.className = "lists";
    const isIn = (seen: Seen, list: string): boolean => {
        if (seen.waiting === 0) return list === "empty";
        return seen.queue?.is_sparse ? list === "new" : list === "old";
    };
    for (const [list, title] of [["new", "New (sparse): go first"], ["old", "Old (bulk): take turns"], ["empty", "Empty"]] as const) {
        const column = document.createElement("div");
        const heading = document.createElement("h4");
        heading.textContent = title;
        const items = document.createElement("ul");
        about.loads.forEach((load, n) => {
            const seen = look.loads[n]!;
            if (!isIn(seen, list)) return;
            const item = document.createElement("li");
            item.className = `queue queue-${n}`;
            const deficit = seen.queue ? `, deficit ${seen.queue.deficit} bytes` : "";
            item.textContent = `${load.name}: ${seen.waiting} waiting${deficit}`;
            items.append(item);
        });
        column.append(heading, items);
        place.append(column);
    }
    return place;
}

/** SFB's bins at look `at`: a row a level, darker the likelier a drop. */
export function bins(record: Shown, at: number, width: number): SVGSVGElement {
    const all = record.looks[at]?.bins ?? [];
    const levels = all.length / BINS;
    const cell = Math.min(34, Math.floor((width - 64) / BINS));
    const svg = element("svg", { viewBox: `0 0 ${64 + cell * BINS} ${20 * levels + 20}`, width: 64 + cell * BINS, height: 20 * levels + 20, role: "img" });
    const likely = all.filter(([, p]) => p > 0.5).length;
    svg.setAttribute("aria-label", `${likely} of ${all.length} bins drop more than half`);
    svg.append(element("text", { x: 0, y: 13, class: "title" }, "Bins: packets; darker is likelier to be dropped"));
    all.forEach(([packets, p], n) => {
        const [x, y] = [64 + (n % BINS) * cell, 20 + 20 * Math.floor(n / BINS)];
        if (n % BINS === 0) svg.append(element("text", { x: 0, y: y + 14 }, `level ${n / BINS + 1}`));
        svg.append(element("rect", { x, y, width: cell - 2, height: 18, class: "bin", "fill-opacity": (0.06 + 0.94 * p).toFixed(2) }));
        if (packets > 0) svg.append(element("text", { x: x + (cell - 2) / 2, y: y + 13, "text-anchor": "middle", class: p > 0.45 ? "on-dark" : "" }, String(packets)));
    });
    return svg;
}

/** The share of arrivals that is dropped by the packets that stand. */
export function chances(shares: Float64Array, width: number): SVGSVGElement {
    const [top, height] = [TITLE, 140];
    const wide = width - LEFT - RIGHT;
    const svg = element("svg", { viewBox: `0 0 ${width} ${top + height + 24}`, width, height: top + height + 24, role: "img" });
    const last = shares.length - 1;
    const first = shares.findIndex((share) => share > 0);
    const all = shares.findIndex((share) => share > 0.95);
    svg.setAttribute("aria-label", `Share of arrivals dropped: none up to ${first - 1} standing packets, all from ${all < 0 ? "more than shown" : all}`);
    svg.append(element("text", { x: 0, y: top - 6, class: "title" }, "Share of arrivals dropped, %, by packets that stand"));
    const x = (n: number) => LEFT + (wide * n) / last;
    const y = (share: number) => top + height * (1 - share);
    for (const tick of [0, 25, 50, 75, 100]) {
        svg.append(element("line", { x1: LEFT, x2: LEFT + wide, y1: y(tick / 100), y2: y(tick / 100), class: "grid" }));
        svg.append(element("text", { x: LEFT - 6, y: y(tick / 100) + 4, "text-anchor": "end" }, String(tick)));
    }
    for (const tick of ticks(last, Math.max(2, Math.floor(wide / 80)))) {
        // The last one's text must not leave the drawing.
        const at = tick === last ? { x: width, "text-anchor": "end" } : { x: x(tick), "text-anchor": "middle" };
        svg.append(element("text", { ...at, y: top + height + 16 }, String(tick)));
    }
    const points = Array.from(shares, (share, n): [number, number] => [x(n), y(share)]);
    svg.append(element("path", { d: path(points), class: "line curve-0" }));
    return svg;
}
