// Figures that come drawn, with a legend of buttons: series are switched, values shown under the
// pointer and by arrow keys. The lab draws them (crates/lab/src/figures/svg.rs): a series is a group
// `s N`; of curves a `desc` has both axes, from pixels to values.

/** Values beside the pointer. */
class Tip {
    private readonly box = document.createElement("div");

    constructor() {
        this.box.className = "tip";
        this.box.hidden = true;
        document.body.append(this.box);
    }

    show(event: PointerEvent, text: string): void {
        const { box } = this;
        box.textContent = text;
        box.hidden = !text;
        const beside = event.clientX + 16;
        const fits = beside + box.offsetWidth + 8 < innerWidth;
        box.style.left = `${Math.max(4, fits ? beside : event.clientX - box.offsetWidth - 16)}px`;
        box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8))}px`;
    }

    hide(): void {
        this.box.hidden = true;
    }
}

/** An axis: least and greatest value, their pixels, 1 if it is logarithmic. */
type Axis = [number, number, number, number, number];

function digits(value: number): string {
    if (value === 0) return "0";
    return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function valueAt(pixel: number, [low, high, from, to, log]: Axis): number {
    const value = low + ((pixel - from) / (to - from)) * (high - low);
    return log ? 10 ** value : value;
}

/** Points come in order of time, but distributions and sweeps may be short: all are looked at. */
function nearest(points: SVGPointList, x: number): DOMPoint | null {
    let best: DOMPoint | null = null;
    for (const point of Array.from(points)) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
    return best;
}

/** The figure of a drawing, or all those under one legend. */
const whole = (part: Element) => part.closest(".together, figure")!;

function legend(button: HTMLButtonElement): void {
    const figure = whole(button);
    const parts = figure.querySelectorAll(`.s${button.dataset.n}`);
    button.addEventListener("click", () => {
        const isOn = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!isOn));
        for (const part of parts) part.classList.toggle("off", isOn);
    });
    const light = (isOn: boolean) => {
        figure.classList.toggle("faint", isOn);
        for (const part of parts) part.classList.toggle("lit", isOn);
    };
    button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && light(true));
    button.addEventListener("pointerleave", () => light(false));
}

class Drawing {
    private readonly axes: { x: Axis; y: Axis } | null = null;
    private readonly cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    private place = -1;

    constructor(private readonly svg: SVGSVGElement, private readonly tip: Tip) {
        const numbers = svg.querySelector("desc")?.textContent?.split(" ").map(Number);
        if (numbers) {
            this.axes = { x: numbers.slice(0, 5) as Axis, y: numbers.slice(5) as Axis };
            this.cursor.setAttribute("class", "cursor off");
            this.cursor.setAttribute("y1", String(this.axes.y[2]));
            this.cursor.setAttribute("y2", String(this.axes.y[3]));
            svg.append(this.cursor);
        }
        svg.addEventListener("pointermove", (event) => (this.axes ? this.along(event, this.axes) : this.part(event)));
        svg.addEventListener("keydown", (event) => this.key(event));
        svg.addEventListener("blur", () => tip.hide());
        svg.addEventListener("pointerleave", () => {
            tip.hide();
            this.cursor.classList.add("off");
        });
    }

    /** Runs have their title themselves, a box its group. */
    private part(event: PointerEvent): void {
        const part = (event.target as Element).closest<SVGElement>("[data-tip], :has(> title)");
        const title = part?.querySelector(":scope > title");
        // The browser's own tip would stand beside ours.
        if (part && title) {
            part.dataset.tip = title.textContent ?? "";
            title.remove();
        }
        this.tip.show(event, part?.dataset.tip ?? "");
    }

    /** Of curves the nearest points. */
    private along(event: PointerEvent, axes: { x: Axis; y: Axis }): void {
        const matrix = this.svg.getScreenCTM();
        if (!matrix) return;
        const x = (event.clientX - matrix.e) / matrix.a;
        const names = whole(this.svg).querySelectorAll(".legend button");
        const rows: string[] = [];
        let at: number | null = null;
        for (const group of this.svg.querySelectorAll("g.s:not(.off)")) {
            const best = nearest(group.querySelector("polyline")!.points, x);
            if (!best) continue;
            at = at === null || Math.abs(best.x - x) < Math.abs(at - x) ? best.x : at;
            const n = Number([...group.classList].find((name) => /^s\d/.test(name))!.slice(1));
            rows.push(`${names[n]?.textContent}: ${digits(valueAt(best.y, axes.y))} ${this.svg.dataset.y}`);
        }
        this.cursor.classList.toggle("off", at === null);
        if (at === null) return this.tip.hide();
        for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, String(at));
        this.tip.show(event, [`${digits(valueAt(at, axes.x))} ${this.svg.dataset.x}`, ...rows].join("\n"));
    }

    /** The same by arrow keys: from part to part, or along the axis. */
    private key(event: KeyboardEvent): void {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        const go = (target: Element, clientX: number, clientY: number) =>
            target.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
        const matrix = this.svg.getScreenCTM();
        if (this.axes && matrix) {
            this.place = Math.max(0, Math.min(50, (this.place < 0 ? 25 : this.place) + step));
            const [, , from, to] = this.axes.x;
            const box = this.svg.getBoundingClientRect();
            go(this.svg, matrix.e + matrix.a * (from + ((to - from) * this.place) / 50), box.y + box.height / 2);
            return;
        }
        const parts = this.svg.querySelectorAll("g.s:not(.off) > g, g.s:not(.off) > [data-tip]");
        if (!parts.length) return;
        this.place = (this.place + step + parts.length) % parts.length;
        const part = parts[this.place]!;
        const box = part.getBoundingClientRect();
        go(part, box.x + box.width / 2, box.y + box.height / 2);
    }
}

/** Brings the drawn figures of the page to life. */
export function enliven(): void {
    document.querySelectorAll<HTMLButtonElement>(".legend button").forEach(legend);
    const tip = new Tip();
    document.querySelectorAll<SVGSVGElement>(".draw svg").forEach((svg) => new Drawing(svg, tip));
}
