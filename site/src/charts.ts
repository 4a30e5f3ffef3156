// Curves over time: one chart a kind of traffic, one colour and dash a discipline on all of them.
import uPlot from "uplot";
import { swatch } from "./dom";
import { spread, told } from "./figures";
import type { Curve, Shown } from "./messages";
import { dash, marker, styles, type Style } from "./styles";

/** Markers along a curve. */
const MARKS = 6;
/** A logarithmic axis has no zero: what is below is drawn here, in milliseconds. */
const LEAST_MS = 0.1;

const UNITS = { delay: "ms", goodput: "Mbit/s", queue: "packets", share: "ms" };
const TITLES = {
    delay: (name: string) => `Added delay: ${name}`,
    goodput: (name: string) => `Goodput: ${name}`,
    queue: (name: string) => `Queue ${name}`,
    share: (name: string) => `Delay by share of packets: ${name}`,
};

/** Delays span decades. */
const isDelay = (kind: Curve["kind"]) => kind === "delay" || kind === "share";

/** A curve of several runs: median, least and greatest. */
interface Band {
    middle: (number | null)[];
    low: (number | null)[];
    high: (number | null)[];
}

function band(curves: Float64Array[], length: number, floor: number): Band {
    const all: Band = { middle: [], low: [], high: [] };
    for (let at = 0; at < length; at++) {
        const values: number[] = [];
        for (const curve of curves) {
            const value = curve[at];
            if (value !== undefined && !Number.isNaN(value)) values.push(Math.max(value, floor));
        }
        const of = spread(values);
        all.middle.push(of?.median ?? null);
        all.low.push(of?.low ?? null);
        all.high.push(of?.high ?? null);
    }
    return all;
}

/** The greatest of the medians (`which` is 1), or of the greatest (3), of all disciplines. */
function greatest(data: uPlot.AlignedData, which: 1 | 3): number {
    const curves = data.filter((_, n) => n > 0 && n % 3 === which % 3);
    return curves.flatMap((values) => Array.from(values)).reduce((a: number, b) => Math.max(a, b ?? 0), 0);
}

export function style(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Markers along curve `n`, at other places for each. */
function mark(plot: uPlot, n: number, look: Style): void {
    const { ctx, bbox, data } = plot;
    const [times, values] = [data[0], data[n]!];
    const outline = new Path2D(marker(look));
    const scale = devicePixelRatio || 1;
    ctx.save();
    ctx.fillStyle = style(`--curve-${look.colour}`);
    const share = (k: number) => (k + 0.2 + (((n - 1) / 3 * 0.382) % 1) * 0.6) / MARKS;
    for (let k = 0; k < MARKS; k++) {
        const at = Math.round(share(k) * (times.length - 1));
        const [time, value] = [times[at], values[at]];
        if (time === undefined || value === null || value === undefined) continue;
        const [x, y] = [plot.valToPos(time, "x", true), plot.valToPos(value, "y", true)];
        if (y < bbox.top || y > bbox.top + bbox.height) continue;
        ctx.setTransform(scale, 0, 0, scale, x, y);
        ctx.fill(outline);
    }
    ctx.restore();
}

class Chart {
    readonly figure = document.createElement("figure");
    private readonly caption = document.createElement("figcaption");
    private readonly readout = document.createElement("p");
    private readonly area = document.createElement("div");
    private plot: uPlot | null = null;
    private shape = "";
    private names: string[] = [];

    constructor(private readonly kind: Curve["kind"], private readonly name: string) {
        this.caption.textContent = this.title();
        this.readout.className = "readout";
        this.area.tabIndex = 0;
        this.area.setAttribute("role", "img");
        this.area.setAttribute("aria-label", this.caption.textContent);
        this.area.addEventListener("keydown", (event) => this.move(event));
        this.figure.append(this.caption, this.area, this.readout);
    }

    draw(data: uPlot.AlignedData, names: string[], width: number): void {
        this.names = names;
        const highest = isDelay(this.kind) ? 0 : greatest(data, 3);
        const isCut = highest > this.end(data);
        this.caption.textContent = this.title() + (isCut ? `; bursts of single runs, up to ${told(highest, UNITS[this.kind])}, are cut` : "");
        const shape = `${JSON.stringify(styles(names))} ${document.documentElement.dataset.scheme}`;
        if (!this.plot || shape !== this.shape) {
            this.plot?.destroy();
            this.plot = new uPlot(this.options(width), data, this.area);
            this.shape = shape;
        } else {
            this.plot.setData(data);
        }
        const middles = names.map((name, n) => {
            const values = (data[1 + 3 * n] as (number | null)[]).filter((value): value is number => value !== null);
            return `${name}: median ${values.length ? this.told(spread(values)!.median) : "none"}`;
        });
        this.area.setAttribute("aria-label", `${this.caption.textContent}, ${this.kind === "share" ? "not exceeded" : "over time"}. ${middles.join("; ")}`);
        this.tell([], middles);
    }

    resize(width: number): void {
        if (this.plot && this.plot.width !== width) this.plot.setSize({ width, height: 190 });
    }

    remove(): void {
        this.plot?.destroy();
        this.figure.remove();
    }

    private title(): string {
        return `${TITLES[this.kind](this.name)}, ${UNITS[this.kind]}`;
    }

    /** Where a linear axis ends: bursts of single runs, where a gap in TCP's order closes, would make all else flat. */
    private end(data: uPlot.AlignedData): number {
        const most = this.kind === "queue" ? greatest(data, 3) : 1.2 * greatest(data, 1);
        return Math.max(most, 1) * 1.05;
    }

    private options(width: number): uPlot.Options {
        const { kind } = this;
        const grid = { stroke: style("--grid"), width: 1 };
        const axis = { stroke: style("--text"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
        const series: uPlot.Series[] = [{}];
        const bands: uPlot.Band[] = [];
        const looks = styles(this.names);
        for (const look of looks) {
            const stroke = style(`--curve-${look.colour}`);
            series.push({ stroke, width: 2, dash: dash(look), points: { show: false }, spanGaps: true });
            const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
            series.push({ ...edge }, { ...edge });
            const last = series.length - 1;
            bands.push({ series: [last, last - 1], fill: `${stroke}33` });
        }
        const range: uPlot.Scale.Range = (plot) => [0, this.end(plot.data)];
        // Whole decades, and one at least.
        const decades: uPlot.Scale.Range = (_, low, high) => {
            const first = 10 ** Math.floor(Math.log10(low || LEAST_MS));
            return [first, Math.max(10 ** Math.ceil(Math.log10(high || LEAST_MS)), 10 * first)];
        };
        return {
            width,
            height: 190,
            series,
            bands,
            scales: { x: { time: false }, y: isDelay(kind) ? { distr: 3, range: decades } : { range } },
            axes: [
                { ...axis, size: 30, values: (_, ticks) => ticks.map((tick) => `${tick} ${kind === "share" ? "%" : "s"}`) },
                { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : this.tick(tick))) },
            ],
            legend: { show: false },
            cursor: { sync: { key: kind === "share" ? kind : "time" }, drag: { x: false, y: false }, points: { show: false } },
            hooks: {
                setCursor: [(plot) => this.read(plot)],
                drawSeries: [(plot, n) => n % 3 === 1 && mark(plot, n, looks[(n - 1) / 3]!)],
            },
        };
    }

    private tick(value: number): string {
        if (!isDelay(this.kind)) return String(Number(value.toPrecision(3)));
        return told(value, "ms").replace(" ", " ");
    }

    /** A value as it is read: of what lies on the axis' end nothing more is known. */
    private told(value: number): string {
        const isLeast = isDelay(this.kind) && value <= LEAST_MS;
        return `${told(value, UNITS[this.kind])}${isLeast ? " or less" : ""}`;
    }

    private read(plot: uPlot): void {
        const at = plot.cursor.idx;
        const time = at === null || at === undefined ? undefined : plot.data[0][at];
        if (at === null || at === undefined || time === undefined) return;
        const values = this.names.map((name, n) => {
            const value = plot.data[1 + 3 * n]![at];
            return `${name} ${value === null || value === undefined ? "none" : this.told(value)}`;
        });
        const place = this.kind === "share" ? `${time} % of packets, at most` : `at ${time.toFixed(1)} s`;
        this.tell([`${place}: `], values);
    }

    /** Values of all disciplines, each with the line that it has: on paper no other legend may be near. */
    private tell(before: string[], values: string[]): void {
        const looks = styles(this.names);
        const parts = values.flatMap((value, n) => [...(n > 0 ? [" · "] : []), swatch(looks[n]!), value]);
        this.readout.replaceChildren(...before, ...parts);
    }

    /** The cursor by arrow keys. */
    private move(event: KeyboardEvent): void {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!this.plot || step === undefined) return;
        event.preventDefault();
        const last = this.plot.data[0].length - 1;
        const at = Math.max(0, Math.min(last, (this.plot.cursor.idx ?? 0) + step));
        const left = this.plot.valToPos(this.plot.data[0][at]!, "x");
        this.plot.setCursor({ left, top: 10 });
    }
}

/** All charts of a question. */
export class Charts {
    private charts = new Map<string, Chart>();
    /** Out of sight, and not drawn yet. */
    private rest: (() => void)[] = [];

    constructor(private readonly place: HTMLElement) {
        new ResizeObserver(() => {
            const width = this.width();
            for (const chart of this.charts.values()) chart.resize(width);
        }).observe(place);
    }

    /** What is in sight of `runs` of each discipline, in the order of `names`. */
    draw(names: string[], runs: Shown[][]): void {
        const keys = new Map<string, Curve>();
        // Where nothing of a kind arrived under one discipline, it may under another.
        const most = runs.map((each) => each[0]?.curves ?? []).sort((a, b) => b.length - a.length);
        for (const curve of most.flat()) {
            const key = `${curve.kind} ${curve.name}`;
            if (!keys.has(key)) keys.set(key, curve);
        }
        for (const [key, chart] of this.charts) {
            if (!keys.has(key)) {
                chart.remove();
                this.charts.delete(key);
            }
        }
        let at = 0;
        for (const [key, { kind, name }] of keys) {
            let chart = this.charts.get(key);
            if (!chart) {
                chart = new Chart(kind, name);
                this.charts.set(key, chart);
            }
            const there = this.place.children[at++] ?? null;
            if (there !== chart.figure) this.place.insertBefore(chart.figure, there);
        }
        const width = this.width();
        this.rest = [];
        const places = [...keys].map(([key, { kind }]) => {
            const chart = this.charts.get(key)!;
            const { top, bottom } = chart.figure.getBoundingClientRect();
            const draw = () => chart.draw(aligned(runs, key, kind), names, width);
            return { draw, isSeen: bottom > 0 && top < innerHeight };
        });
        for (const { draw, isSeen } of places) {
            if (isSeen) draw();
            else this.rest.push(draw);
        }
    }

    /** Draws what is out of sight as well. */
    finish(): void {
        const rest = this.rest;
        this.rest = [];
        for (const draw of rest) draw();
    }

    private width(): number {
        const columns = getComputedStyle(this.place).gridTemplateColumns.split(" ");
        return Math.max(240, Math.floor(parseFloat(columns[0] ?? "") || this.place.clientWidth));
    }
}

function aligned(runs: Shown[][], key: string, kind: Curve["kind"]): uPlot.AlignedData {
    const of = (shown: Shown) => shown.curves.find((curve) => `${curve.kind} ${curve.name}` === key)?.points;
    const curves = runs.map((each) => each.map(of).filter((points) => points !== undefined));
    const length = Math.max(0, ...curves.flat().map((points) => points.length));
    const interval = kind === "share" ? 1 : (runs.flat()[0]?.interval ?? 1);
    const data: (number | null)[][] = [Array.from({ length }, (_, at) => at * interval)];
    for (const each of curves) {
        const { middle, low, high } = band(each, length, isDelay(kind) ? LEAST_MS : 0);
        data.push(middle, low, high);
    }
    return data as uPlot.AlignedData;
}
