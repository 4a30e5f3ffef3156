// Watch the queue: one run of one discipline as an animation. Above, what waits at one moment, a row
// a flow, by tier; below, the whole run on one axis of time: packets, windows, delays.
import { style } from "./charts";
import { fullName, told } from "./figures";
import type { Film, Row, Shown, Summary } from "./messages";
import { dash } from "./styles";

/** Seconds for which a drop or a mark is seen to fall. */
const FALL_S = 0.5;
const ROW = 20;
const HEADING = 19;
const STRIP = 84;
/** Between strips: the title. */
const TITLE = 20;
const AXIS = 20;
/** The least delay that is drawn, and the least end of the axis, in milliseconds; it is logarithmic. */
const DELAYS = [0.1, 10_000] as const;
const COLORS = 6;

const $ = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector)!;

/** A row of the picture. */
interface Line {
    row: number;
    label: string;
    color: string;
    dashes: number[];
    /** Its colour is another row's as well: bars have a gap along their middle. */
    isSplit: boolean;
    tier: number;
}

/** What is drawn of a film in one direction: all that does not depend on the moment. */
interface Scene {
    shown: Shown;
    film: Film;
    way: number;
    frames: number;
    lines: Line[];
    /** Most packets of a row, or of all of them where they share a queue. */
    most: number;
    /** Packets of all rows, frame by frame. */
    totals: Float64Array;
    seconds: number;
}

export class Watch {
    private readonly details = $<HTMLDetailsElement>("#watch");
    private readonly qdisc = $<HTMLSelectElement>("#watch-qdisc");
    private readonly way = $<HTMLSelectElement>("#watch-way");
    private readonly speed = $<HTMLSelectElement>("#watch-speed");
    private readonly button = $<HTMLButtonElement>("#watch-play");
    private readonly slider = $<HTMLInputElement>("#watch-at");
    private readonly canvas = $<HTMLCanvasElement>("#watch-picture");
    private readonly told = $("#watch-told");
    private scene: Scene | null = null;
    /** Seconds of simulated time. */
    private at = 0;
    /** When the last step was; null while nothing plays. */
    private last: number | null = null;
    /** The strips below, drawn once; dropped when they have changed. */
    private strips: HTMLCanvasElement | null = null;
    private asked = 0;

    /** `film` runs discipline number n with frames; it fails where nobody wants them any more. */
    constructor(private readonly film: (n: number) => Promise<Shown>) {
        this.details.addEventListener("toggle", () => (this.details.open ? void this.ask() : this.stop()));
        this.qdisc.addEventListener("change", () => void this.ask());
        this.way.addEventListener("change", () => this.stage());
        this.button.addEventListener("click", () => this.toggle());
        this.slider.addEventListener("input", () => {
            this.stop();
            this.seek(Number(this.slider.value));
        });
        const places: HTMLElement[] = [this.canvas, this.slider];
        for (const place of places) place.addEventListener("keydown", (event) => this.key(event));
        this.canvas.addEventListener("pointerdown", (event) => this.point(event));
        this.canvas.addEventListener("pointermove", (event) => event.buttons === 1 && this.point(event));
        new ResizeObserver(() => this.repaint()).observe(this.canvas);
    }

    /** Other disciplines, or another question: what was watched is no more. */
    renew(names: string[]): void {
        const chosen = Math.min(Math.max(0, this.qdisc.selectedIndex), names.length - 1);
        // The last is what one wants to see: the first is what it is compared with.
        const fresh = this.qdisc.length === 0 ? names.length - 1 : chosen;
        this.qdisc.replaceChildren(...names.map((name, n) => new Option(name, String(n))));
        this.qdisc.selectedIndex = fresh;
        this.show(null);
        if (this.details.open) void this.ask();
    }

    /** Colours or the width are others. */
    repaint(): void {
        this.strips = null;
        if (this.scene && this.details.open) {
            for (const line of this.scene.lines) line.color = color(line.row, this.scene);
            this.draw();
        }
    }

    private async ask(): Promise<void> {
        const mine = ++this.asked;
        const n = this.qdisc.selectedIndex;
        this.show(null);
        if (n < 0) return;
        this.told.textContent = "Simulating…";
        try {
            const shown = await this.film(n);
            if (mine === this.asked) this.show(shown);
        } catch {
            if (mine === this.asked) this.told.textContent = "There is nothing to be watched.";
        }
    }

    private show(shown: Shown | null): void {
        this.stop();
        this.scene = null;
        this.button.disabled = this.slider.disabled = !shown;
        if (!shown?.film) {
            this.told.textContent = "";
            this.canvas.width = 0;
            return;
        }
        this.stage(shown);
    }

    /** Makes ready what is drawn in the chosen direction. */
    private stage(shown = this.scene?.shown): void {
        if (!shown?.film) return;
        this.scene = scene(shown, shown.film, Number(this.way.value));
        this.slider.max = String(this.scene.frames - 1);
        this.repaint();
        this.seek(this.frame());
    }

    private frame(): number {
        const { scene } = this;
        if (!scene) return 0;
        return Math.min(scene.frames - 1, Math.floor(this.at / scene.film.head.interval_s + 1e-6));
    }

    private seek(frame: number): void {
        if (!this.scene) return;
        const last = this.scene.frames - 1;
        this.at = Math.max(0, Math.min(last, frame)) * this.scene.film.head.interval_s;
        this.draw();
    }

    private toggle(): void {
        if (this.last !== null) return this.stop();
        if (!this.scene) return;
        if (this.frame() === this.scene.frames - 1) this.at = 0;
        this.last = performance.now();
        this.button.textContent = "pause";
        const step = (now: number) => {
            if (this.last === null || !this.scene) return;
            // Who looks elsewhere for a while misses nothing.
            const passed = Math.min(Math.max(0, now - this.last), 250) / 1000;
            this.last = now;
            this.at += passed * Number(this.speed.value);
            this.draw();
            if (this.frame() === this.scene.frames - 1) this.stop();
            else requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
    }

    private stop(): void {
        this.last = null;
        this.button.textContent = "play";
        this.tell();
    }

    private key(event: KeyboardEvent): void {
        const all = this.scene?.frames ?? 0;
        const step = {
            ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -50, PageUp: 50, Home: -all, End: all,
        }[event.key];
        if (event.key === " ") this.toggle();
        else if (step !== undefined) {
            this.stop();
            this.seek(this.frame() + step);
        } else return;
        event.preventDefault();
    }

    /** To the time that is pointed at. */
    private point(event: PointerEvent): void {
        if (!this.scene) return;
        const { left, width } = label(this.canvas.clientWidth);
        const share = (event.offsetX - left) / width;
        if (share < 0 || share > 1) return;
        this.stop();
        this.seek(Math.round((share * this.scene.seconds) / this.scene.film.head.interval_s));
    }

    private draw(): void {
        const { scene, canvas } = this;
        const context = canvas.getContext("2d");
        const width = canvas.clientWidth;
        if (!scene || !context || width === 0) return;
        const top = height(scene);
        const full = top + 3 * (STRIP + TITLE) + AXIS;
        const scale = devicePixelRatio || 1;
        const size = [Math.round(width * scale), Math.round(full * scale)] as const;
        if (canvas.width !== size[0] || canvas.height !== size[1]) {
            [canvas.width, canvas.height] = size;
            canvas.style.height = `${full}px`;
            this.strips = null;
        }
        if (!this.strips) {
            this.strips = document.createElement("canvas");
            [this.strips.width, this.strips.height] = size;
            const still = this.strips.getContext("2d");
            still?.setTransform(scale, 0, 0, scale, 0, 0);
            if (still) drawStrips(still, scene, top, width);
        }
        const frame = this.frame();
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.clearRect(0, 0, ...size);
        context.drawImage(this.strips, 0, 0);
        context.setTransform(scale, 0, 0, scale, 0, 0);
        drawQueues(context, scene, frame, width);
        const { left, width: wide } = label(width);
        const x = left + (wide * frame * scene.film.head.interval_s) / scene.seconds;
        context.fillStyle = style("--text");
        for (const strip of [0, 1, 2]) context.fillRect(x - 0.75, top + TITLE + strip * (STRIP + TITLE), 1.5, STRIP);
        this.slider.value = String(frame);
        this.tell();
    }

    /** The moment in words; while it plays, in few of them. */
    private tell(): void {
        const { scene } = this;
        if (!scene) return;
        const frame = this.frame();
        const time = (frame * scene.film.head.interval_s).toFixed(2);
        if (this.last !== null) {
            this.told.textContent = `at ${time} s`;
            return;
        }
        this.slider.setAttribute("aria-valuetext", `${time} s`);
        const rows = scene.lines.map((line) => {
            const [sparse, bulk] = cell(scene, frame, line.row);
            const waiting = sparse + bulk;
            if (waiting === 0) return "";
            const how = !scene.film.head.has_queues[scene.way] ? "" : sparse === 0 ? " (bulk)" : bulk === 0 ? " (sparse)" : "";
            return `${line.label}: ${waiting}${how}`;
        });
        const some = rows.filter((row) => row !== "").join("; ");
        const packets = scene.totals[frame]!;
        const sum = packets === 0 ? "nothing waits" : `${packets} ${packets === 1 ? "packet waits" : "packets wait"}. ${some}`;
        this.told.textContent = `at ${time} s: ${sum}`;
        this.canvas.setAttribute("aria-label", `What waits in the queue ${scene.way ? "down" : "up"}, ${this.told.textContent}`);
    }
}

function cell({ film, way }: Scene, frame: number, row: number): [number, number, number, number] {
    const rows = film.head.rows.length;
    const first = ((frame * 2 + way) * rows + row) * 4;
    const { cells } = film;
    return [cells[first]!, cells[first + 1]!, cells[first + 2]!, cells[first + 3]!];
}

function isPayload({ direction }: Row, way: number): boolean {
    return direction === (way ? "down" : "up");
}

/** What goes the other way is not the payload. */
function named(row: Row, way: number): string {
    const name = row.number === null ? row.name : `${row.name} ${row.number}`;
    if (isPayload(row, way)) return name;
    return row.has_windows ? `${name}, ACKs` : `${name}, answers`;
}

function color(row: number, { lines }: Scene): string {
    return style(`--curve-${Math.max(0, lines.findIndex((line) => line.row === row)) % COLORS}`);
}

function scene(shown: Shown, film: Film, way: number): Scene {
    const { head, windows } = film;
    const rows = head.rows.length;
    const frames = rows === 0 ? 1 : Math.max(1, windows.length / rows);
    const made: Scene = {
        shown, film, way, frames, lines: [], most: 1, totals: new Float64Array(frames),
        seconds: Math.max(head.interval_s, (frames - 1) * head.interval_s),
    };
    const mosts = head.rows.map((_, row) => {
        let most = 0;
        for (let frame = 0; frame < frames; frame++) {
            const [sparse, bulk] = cell(made, frame, row);
            most = Math.max(most, sparse + bulk);
            made.totals[frame]! += sparse + bulk;
        }
        return most;
    });
    const isShared = !head.has_queues[way];
    made.most = Math.max(1, ...(isShared ? made.totals : mosts));
    // The tier that goes first stands first.
    const seen = head.rows.map((row, n) => ({ row: n, tier: row.tiers[way] ?? -1, label: named(row, way) }))
        .filter(({ row }) => mosts[row]! > 0 || isPayload(head.rows[row]!, way) || cell(made, frames - 1, row)[2] > 0)
        .sort((a, b) => b.tier - a.tier || a.row - b.row);
    made.lines = seen.map((line, n) => ({ ...line, color: "", dashes: dash({ dash: Math.floor(n / COLORS) }), isSplit: n % (2 * COLORS) >= COLORS }));
    return made;
}

/** True if a curve is about packets of this way: a probe's go both ways. */
function concerns({ summary }: Shown, name: string, way: number): boolean {
    const { groups } = JSON.parse(summary) as Summary;
    const group = groups.find((group) => fullName(group) === name);
    return group?.application?.kind === "ping" || group?.direction === (way ? "down" : "up");
}

/** Where the labels end, and the room beside them. */
function label(width: number): { left: number; width: number } {
    const left = Math.min(170, Math.round(width * 0.32));
    return { left, width: width - left - 44 };
}

function hasTiers({ film, way, lines }: Scene): boolean {
    return film.head.tiers[way]!.length > 0 && lines.some((line) => line.tier >= 0);
}

/** Of what is above the strips. */
function height(scene: Scene): number {
    const { lines, film, way } = scene;
    const headings = hasTiers(scene) ? new Set(lines.map((line) => line.tier)).size : 0;
    const shared = film.head.has_queues[way] ? 0 : HEADING + 2 * ROW;
    return shared + headings * HEADING + Math.max(1, lines.length) * ROW + 10;
}

function write(context: CanvasRenderingContext2D, text: string, x: number, y: number, most: number): void {
    let shorter = text;
    while (shorter.length > 1 && context.measureText(shorter).width > most) shorter = shorter.slice(0, -1);
    context.fillText(shorter === text ? text : `${shorter.slice(0, -1)}…`, x, y);
}

/** A full bar in a row's colour. */
function bar(context: CanvasRenderingContext2D, { color, isSplit }: Line, x: number, y: number, wide: number, tall: number): void {
    context.fillStyle = color;
    const part = isSplit ? (tall - 2) / 2 : tall;
    context.fillRect(x, y, wide, part);
    if (isSplit) context.fillRect(x, y + part + 2, wide, part);
}

/** Packets from `x` on: squares where there is room for them. */
function packets(context: CanvasRenderingContext2D, line: Line, count: number, x: number, y: number, step: number, isHollow: boolean): void {
    if (count === 0) return;
    const tall = ROW - 8;
    context.lineWidth = 1.5;
    if (step < 4) {
        const wide = Math.max(3, count * step);
        if (isHollow) context.strokeRect(x + 0.75, y + 4.75, Math.max(1, wide - 1.5), tall - 1.5);
        else bar(context, line, x, y + 4, wide, tall);
        return;
    }
    const wide = Math.min(step - 1, tall);
    for (let n = 0; n < count; n++) {
        const left = x + n * step;
        if (isHollow) context.strokeRect(left + 0.75, y + 4.75, Math.max(1, wide - 1.5), tall - 1.5);
        else bar(context, line, left, y + 4, wide, tall);
    }
}

/** What waits at one moment. */
function drawQueues(context: CanvasRenderingContext2D, scene: Scene, frame: number, width: number): void {
    const { film, way, lines, most } = scene;
    const { left, width: room } = label(width);
    const step = Math.min(ROW - 7, room / most);
    const isShared = !film.head.has_queues[way];
    context.textBaseline = "middle";
    context.font = "12px system-ui, sans-serif";
    let y = 0;
    const heading = (text: string) => {
        context.font = "600 12px system-ui, sans-serif";
        context.fillStyle = style("--quiet");
        write(context, text, 0, y + HEADING / 2 + 1, width);
        context.font = "12px system-ui, sans-serif";
        y += HEADING;
    };
    if (isShared) {
        heading("One queue for all, by flow");
        let x = left;
        for (const line of lines) {
            const [sparse, bulk] = cell(scene, frame, line.row);
            bar(context, line, x, y + 2, (sparse + bulk) * step, 2 * ROW - 12);
            x += (sparse + bulk) * step;
        }
        context.fillStyle = style("--text");
        context.fillText(String(scene.totals[frame]), Math.max(left, x) + 5, y + ROW - 4);
        y += 2 * ROW;
    }
    let tier: number | null = null;
    const back = Math.max(1, Math.round(FALL_S / film.head.interval_s));
    for (const line of lines) {
        if (hasTiers(scene) && line.tier !== tier) heading(film.head.tiers[way]![line.tier] ?? "Others");
        tier = line.tier;
        const [sparse, bulk] = cell(scene, frame, line.row);
        context.fillStyle = style("--text");
        write(context, line.label, 14, y + ROW / 2, left - 20);
        context.strokeStyle = line.color;
        bar(context, line, 0, y + 4, 9, ROW - 8);
        packets(context, line, sparse, left, y, step, true);
        packets(context, line, bulk, left + sparse * step, y, step, false);
        const end = left + (sparse + bulk > 0 ? Math.max(3, (sparse + bulk) * step) : 0) + 5;
        context.fillStyle = style("--text");
        const count = sparse + bulk > 0 ? String(sparse + bulk) : "";
        context.fillText(count, end, y + ROW / 2);
        fallen(context, scene, line, frame, back, end + context.measureText(count).width + 4, y);
        y += ROW;
    }
    if (lines.length === 0) {
        context.fillStyle = style("--quiet");
        context.fillText("Nothing waits here in the whole run.", 0, y + ROW / 2);
    }
}

/** Drops and marks of the last moments, as they fall: their number, where the last of them is. */
function fallen(context: CanvasRenderingContext2D, scene: Scene, line: Line, frame: number, back: number, x: number, y: number): void {
    const count = (at: number, which: 2 | 3) => cell(scene, Math.max(0, at), line.row)[which];
    let right = x;
    for (const [which, sign, name] of [[2, "×", "--bad"], [3, "▲", "--accent"]] as const) {
        const number = count(frame, which) - count(frame - back, which);
        if (number === 0) continue;
        let since = 0;
        while (since < back && count(frame - since, which) === count(frame - since - 1, which)) since += 1;
        const text = number > 1 ? `${sign} ${number}` : sign;
        context.fillStyle = style(name);
        context.globalAlpha = 1 - (0.8 * since) / back;
        context.fillText(text, right, y + ROW / 2 + (ROW / 2) * (since / back));
        context.globalAlpha = 1;
        right += context.measureText(text).width + 6;
    }
}

/** The whole run: packets that wait, windows, delays. */
function drawStrips(context: CanvasRenderingContext2D, scene: Scene, top: number, width: number): void {
    const { film, frames, lines, way, seconds, shown } = scene;
    const { head } = film;
    const { left, width: room } = label(width);
    const x = (time: number) => left + (room * Math.min(time, seconds)) / seconds;
    context.font = "12px system-ui, sans-serif";
    let y = top;
    const strip = (title: string, ticks: [number, string][]) => {
        context.textBaseline = "middle";
        context.fillStyle = style("--text");
        write(context, title, 0, y + TITLE / 2, width);
        y += TITLE;
        context.textAlign = "right";
        for (const [share, text] of ticks) {
            const at = y + STRIP * (1 - share);
            context.fillStyle = style("--grid");
            context.fillRect(left, at - 0.5, room, 1);
            context.fillStyle = style("--quiet");
            context.fillText(text, left - 5, Math.min(y + STRIP - 6, Math.max(y + 6, at)));
        }
        context.textAlign = "left";
    };
    const curve = (points: number, time: (n: number) => number, share: (n: number) => number | null) => {
        context.beginPath();
        let isDown = false;
        for (let n = 0; n < points; n++) {
            const value = share(n);
            if (value === null) {
                isDown = false;
                continue;
            }
            const [px, py] = [x(time(n)), y + STRIP * (1 - Math.max(0, Math.min(1, value)))];
            if (isDown) context.lineTo(px, py);
            else context.moveTo(px, py);
            isDown = true;
        }
        context.stroke();
    };
    const moment = (frame: number) => frame * head.interval_s;

    const longest = Math.max(1, ...scene.totals);
    strip(`Packets waiting ${way ? "down" : "up"}; below them a row of drops and one of marks`, [[0, "0"], [1, String(longest)]]);
    // Those of each flow upon those of the flows before it.
    const below = new Float64Array(frames);
    for (const line of lines) {
        context.fillStyle = line.color;
        context.beginPath();
        context.moveTo(x(0), y + STRIP);
        const base = below.slice();
        for (let frame = 0; frame < frames; frame++) {
            const [sparse, bulk] = cell(scene, frame, line.row);
            below[frame]! += sparse + bulk;
            context.lineTo(x(moment(frame)), y + STRIP * (1 - below[frame]! / longest));
        }
        for (let frame = frames - 1; frame >= 0; frame--) {
            context.lineTo(x(moment(frame)), y + STRIP * (1 - base[frame]! / longest));
        }
        context.fill();
    }
    for (const [which, name, depth] of [[2, "--bad", 1], [3, "--accent", 5]] as const) {
        context.fillStyle = style(name);
        for (const line of lines) {
            for (let frame = 1; frame < frames; frame++) {
                if (cell(scene, frame, line.row)[which] > cell(scene, frame - 1, line.row)[which]) {
                    context.fillRect(x(moment(frame)) - 0.5, y + STRIP + depth, 1.5, 4);
                }
            }
        }
    }
    y += STRIP;

    const rows = head.rows.length;
    const senders = head.rows.flatMap((row, n) => (row.has_windows && isPayload(row, way) ? [n] : []));
    const window = (frame: number, row: number) => film.windows[frame * rows + row]!;
    let widest = 1;
    for (const row of senders) for (let frame = 0; frame < frames; frame++) widest = Math.max(widest, window(frame, row));
    const none = senders.length === 0 ? ": no TCP sends this way" : ", segments";
    strip(`Congestion windows${none}`, [[0, "0"], [1, String(widest)]]);
    context.lineWidth = 1.75;
    const stroke = (row: number) => {
        const line = lines.find((line) => line.row === row);
        context.strokeStyle = line?.color ?? style("--quiet");
        context.setLineDash(line?.dashes ?? [2, 2]);
    };
    for (const row of senders) {
        stroke(row);
        curve(frames, moment, (frame) => window(frame, row) / widest || null);
    }
    y += STRIP;

    const delays = shown.curves.filter(({ kind, name }) => kind === "delay" && concerns(shown, name, way));
    let longestMs: number = DELAYS[1];
    for (const { points } of delays) for (const ms of points) longestMs = Math.max(longestMs, ms || 0);
    const [least, most] = [Math.log10(DELAYS[0]), Math.ceil(Math.log10(longestMs))];
    const share = (ms: number) => (Math.log10(Math.max(ms, DELAYS[0])) - least) / (most - least);
    const titles = delays.map((curve) => curve.name).join(", ") || "no call, game or probe";
    const decades = Array.from({ length: most - 1 }, (_, n) => 10 ** n);
    strip(`Added delay: ${titles}`, decades.map((ms) => [share(ms), told(ms, "ms")]));
    for (const { name, points } of delays) {
        stroke(head.rows.findIndex((row) => fullName(row) === name));
        curve(points.length, (n) => (n + 0.5) * shown.interval, (n) => (Number.isNaN(points[n]!) ? null : share(points[n]!)));
    }
    context.setLineDash([]);
    y += STRIP;

    context.fillStyle = style("--quiet");
    const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((each) => (seconds / each) * 45 < room) ?? 2000;
    context.textAlign = "center";
    for (let time = 0; time <= seconds; time += apart) context.fillText(`${time} s`, x(time), y + AXIS / 2 + 2);
    context.textAlign = "left";
}
