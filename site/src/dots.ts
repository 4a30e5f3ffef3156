// Runs as dots on a line for each discipline, with their median and its value: what differs, and how
// much of that is chance. Delays on a logarithmic axis.
import { legend } from "./answer";
import { digits, middle, spread, told, type Figure } from "./figures";
import type { Summary } from "./messages";
import { marker, styles } from "./styles";
import { element, ticks } from "./svg";

/** Heights of a figure's name, of a discipline's line, of the axis; room for a median's value, and for
 * how many it is of. */
const [NAME, LANE, AXIS, VALUE, COUNT] = [18, 15, 22, 74, 40];
const EDGE = 8;

/** A figure's name, its runs and their median in words, a discipline each. */
interface Row {
    name: string;
    lanes: number[][];
    medians: string[];
}

/** Figures of one unit, over the runs of each discipline. */
export class DotPlot {
    private width = 0;
    private readonly rows: Row[];
    private readonly unit: Figure["unit"];
    /** Room for a median's value. */
    private readonly value: number;
    private readonly svg = element("svg", { class: "dots", role: "img", tabindex: 0 });
    readonly figure = document.createElement("figure");

    constructor(caption: string, figures: Figure[], private readonly names: string[], runs: Summary[][]) {
        const values = (figure: Figure, each: Summary[]) => each.map(figure.of).filter((one): one is number => one !== null);
        this.rows = figures.map((figure) => {
            const lanes = runs.map((each) => values(figure, each));
            const { count } = figure;
            const name = count ? `${figure.label}, of those that did` : figure.label;
            return { name, lanes, medians: lanes.map((lane, n) => {
                const many = count ? (middle(runs[n]!, count) ?? 0) : null;
                return inWords(lane, figure.unit) + (many === null ? "" : ` of ${digits(many)}`);
            }) };
        });
        this.unit = figures[0]!.unit;
        this.value = VALUE + (figures.some(({ count }) => count) ? COUNT : 0);
        const title = document.createElement("figcaption");
        title.textContent = caption;
        const key = document.createElement("p");
        key.className = "legend paper";
        key.append(...legend(names));
        this.figure.append(title, key, this.svg);
        const told = this.rows.map(({ name, medians }) =>
            `${name}: ${medians.map((median, n) => `${names[n]} ${median}`).join(", ")}`);
        this.svg.setAttribute("aria-label", `${caption}, medians. ${told.join("; ")}`);
        new ResizeObserver(() => this.draw()).observe(this.figure);
    }

    private draw(): void {
        const width = Math.floor(this.figure.clientWidth);
        if (width === 0 || width === this.width) return;
        this.width = width;
        const { rows, svg, unit } = this;
        const lanes = this.names.length;
        const row = NAME + lanes * LANE;
        const floor = rows.length * row + 4;
        svg.setAttribute("viewBox", `0 0 ${width} ${floor + AXIS}`);
        svg.setAttribute("height", String(floor + AXIS));
        svg.replaceChildren();
        const axis = new Axis(rows.flatMap((each) => each.lanes.flat()), unit, EDGE, width - this.value);
        for (const value of axis.marks) {
            const x = axis.at(value).toFixed(1);
            svg.append(element("line", { x1: x, x2: x, y1: NAME, y2: floor, class: "grid" }));
            // The first one's text must not leave the drawing.
            const isFirst = axis.at(value) < 3 * EDGE;
            const text = { x: isFirst ? 0 : x, y: floor + 15, "text-anchor": isFirst ? "start" : "middle" };
            svg.append(element("text", text, told(value, unit)));
        }
        const taken = styles(this.names);
        rows.forEach(({ name, lanes, medians }, n) => {
            const top = n * row;
            svg.append(element("text", { x: 0, y: top + NAME - 5, class: "name" }, name));
            lanes.forEach((lane, at) => {
                const y = top + NAME + (at + 0.5) * LANE;
                const style = taken[at]!;
                const group = element("g", { class: `c${style.colour}` });
                for (const value of lane) {
                    group.append(element("path", { d: marker(style), transform: `translate(${axis.at(value).toFixed(1)} ${y}) scale(1.3)`, class: "dot" }));
                }
                const median = spread(lane)?.median;
                if (median !== undefined) {
                    const x = axis.at(median).toFixed(1);
                    group.append(element("line", { x1: x, x2: x, y1: y - 6, y2: y + 6, class: "median" }));
                }
                svg.append(group, element("text", { x: width, y: y + 4, "text-anchor": "end" }, medians[at]!));
            });
        });
    }
}

function inWords(values: number[], unit: string): string {
    const of = spread(values);
    return of ? told(of.median, unit) : "–";
}

/** Delays span decades, and have no zero there: what is below is drawn at its edge. */
const LEAST_MS = 0.1;

class Axis {
    readonly marks: number[];
    private readonly low: number;
    private readonly high: number;

    constructor(values: number[], private readonly unit: string, private readonly from: number, private readonly to: number) {
        const most = Math.max(...values, unit === "ms" ? LEAST_MS : 0);
        if (unit === "ms") {
            const least = Math.max(LEAST_MS, Math.min(...values, most));
            this.low = Math.floor(Math.log10(least) + 1e-9);
            this.high = Math.max(this.low + 1, Math.ceil(Math.log10(most) - 1e-9));
            this.marks = Array.from({ length: this.high - this.low + 1 }, (_, n) => Number((10 ** (this.low + n)).toPrecision(1)));
        } else {
            this.low = 0;
            this.high = most || 1;
            // The last mark's text must not stand on the medians'.
            this.marks = ticks(this.high, Math.max(2, Math.floor((to - from) / 90)));
        }
    }

    at(value: number): number {
        const scaled = this.unit === "ms" ? Math.log10(Math.max(value, LEAST_MS)) : value;
        const share = (scaled - this.low) / (this.high - this.low);
        return this.from + Math.max(0, Math.min(1, share)) * (this.to - this.from);
    }
}
