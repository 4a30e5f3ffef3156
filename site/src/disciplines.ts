// Each discipline explained: sentences, a figure to play with, its words, its sources. The address
// says which, and the figure's settings.
import { addressed, leftOut } from "./address";
import { disciplines, chances as measured, exhibit, initSync } from "lab-wasm";
import { bins, chances, lists, move, pointed, strips, tell, type Shown } from "./exhibit";
import { EXPLAINED, type Explained, type Setting } from "./explained";
import { swatch } from "./dom";
import { inWords } from "./fault";
import { load } from "./load";
import type { Fault } from "./messages";
import { printed } from "./printed";

interface Known {
    name: string;
    about: string;
    words: [string, string, string][];
}

const $ = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector)!;

/** Numbers that the reader chose: settings by their key, loads by their place. */
type Chosen = Map<string, number>;

class Page {
    private about: Explained = EXPLAINED[0]!;
    private chosen: Chosen = new Map();
    /** What the address says and nobody understands. */
    private odd: string[] = [];
    private shown: Shown | null = null;
    private drawing: SVGSVGElement | null = null;
    private readonly at = $<HTMLInputElement>("#at");
    private readonly known = JSON.parse(disciplines()) as Known[];

    constructor() {
        const choice = $("#choice");
        choice.replaceChildren(...EXPLAINED.map(({ id, title }) => {
            const link = document.createElement("a");
            link.href = `#${id}`;
            link.textContent = title;
            return link;
        }));
        window.addEventListener("hashchange", () => this.go());
        printed(() => undefined);
        $("#settings").addEventListener("submit", (event) => event.preventDefault());
        this.at.addEventListener("input", () => this.look());
        const place = $("#strips");
        const point = (event: PointerEvent) => {
            if (!this.drawing || !this.shown) return;
            this.at.value = String(pointed(this.drawing, this.shown, event.clientX));
            this.look();
        };
        place.addEventListener("pointerdown", point);
        place.addEventListener("pointermove", (event) => event.buttons === 1 && point(event));
        new ResizeObserver(() => this.draw()).observe(place);
        this.go();
        // For tests: every discipline of the core is on a page.
        const missing = this.known.filter(({ name }) => !EXPLAINED.some(({ names }) => names.includes(name)));
        document.documentElement.dataset.missing = missing.map(({ name }) => name).join(" ");
    }

    /** What the address says. */
    private go(): void {
        const [id, ...rest] = location.hash.replace(/^#/, "").split("&");
        const about = EXPLAINED.find((each) => each.id === id) ?? EXPLAINED.find((each) => each.names.includes(id ?? ""));
        this.about = about ?? EXPLAINED[0]!;
        this.chosen = new Map();
        this.odd = id && !about ? [id] : [];
        for (const [key, text] of new URLSearchParams(rest.join("&"))) {
            const value = text.trim() === "" ? NaN : Number(text);
            const control = controls(this.about).find((each) => each.key === key);
            if (control && value >= control.min && value <= control.max) this.chosen.set(key, value);
            else this.odd.push(`${key}=${text}`);
        }
        this.tell();
        this.run();
    }

    /** All that does not change with the settings. */
    private tell(): void {
        const { about } = this;
        document.title = `${about.title} – Simnel`;
        $("#title").textContent = about.title;
        $("#sentences").textContent = about.sentences.join(" ");
        $("#hint").textContent = about.hint;
        for (const link of $("#choice").querySelectorAll("a")) {
            if (link.hash === `#${about.id}`) link.setAttribute("aria-current", "page");
            else link.removeAttribute("aria-current");
        }
        $("#settings").replaceChildren(...controls(about).map((control) => {
            const field = document.createElement("div");
            field.className = "slider";
            const label = document.createElement("label");
            const said = document.createElement("output");
            const input = document.createElement("input");
            Object.assign(input, { type: "range", id: `set-${control.key}`, min: control.min, max: control.max, step: control.step });
            input.value = String(this.chosen.get(control.key) ?? control.value);
            // The slider has steps, an address any number.
            if (this.chosen.has(control.key)) this.chosen.set(control.key, Number(input.value));
            label.htmlFor = said.htmlFor.value = input.id;
            label.textContent = control.label;
            const say = () => {
                said.textContent = `${input.value} ${control.unit}`.trim();
                input.setAttribute("aria-valuetext", said.textContent);
            };
            say();
            input.addEventListener("input", () => {
                say();
                this.odd = [];
                this.chosen.set(control.key, Number(input.value));
                const parts = new URLSearchParams([...this.chosen].map(([key, value]) => [key, String(value)]));
                addressed(`${about.id}&${parts}`);
                this.run();
            });
            field.append(label, said, input);
            return field;
        }));
        const more = about.strips.flatMap(({ labels = [] }) => labels);
        $("#legend").replaceChildren(...[...about.loads.map(({ name }) => name), ...more].flatMap((name, n) => {
            const item = document.createElement("span");
            item.append(swatch({ colour: n, dash: n }), name);
            return [item, " "];
        }));
        const known = this.known.find(({ name }) => name === about.names[0]);
        const rows = (known?.words ?? []).map(([word, argument, meaning]) => {
            const row = document.createElement("tr");
            const head = document.createElement("th");
            head.scope = "row";
            head.append(document.createElement("code"));
            head.firstElementChild!.textContent = `${word} ${argument}`.trim();
            row.append(head);
            row.insertCell().textContent = meaning;
            return row;
        });
        $<HTMLTableElement>("#keywords").tBodies[0]!.replaceChildren(...rows);
        $("#words-title").textContent = `Its words: ${about.names[0]}`;
        const sources = about.sources.map(({ what, href }) => {
            const item = document.createElement("li");
            if (href) {
                const link = document.createElement("a");
                Object.assign(link, { href, textContent: what });
                item.append(link);
            } else item.textContent = what;
            return item;
        });
        $("#sources").replaceChildren(...sources);
        $("#sources-title").parentElement!.hidden = sources.length === 0;
    }

    private words(): string {
        return this.about.words.replace(/\{(\w+)\}/g, (_, key: string) => String(this.value(key)));
    }

    private value(key: string): number {
        const setting = controls(this.about).find((each) => each.key === key);
        return this.chosen.get(key) ?? setting?.value ?? 0;
    }

    private run(): void {
        const { about } = this;
        const words = this.words();
        $("#words").textContent = words;
        const line = new URLSearchParams([["qdisc", "pfifo limit {buffer}"], ["qdisc", onALine(about, words)]]);
        $<HTMLAnchorElement>("#try").href = `index.html#${line}`;
        const loads = about.loads.map(({ name: _, most: __, ...load }, n) => ({ ...load, mbps: this.value(`load${n}`) }));
        try {
            const text = JSON.stringify({ words, line_mbps: about.line, seconds: about.seconds, loads });
            this.shown = JSON.parse(exhibit(text)) as Shown;
            $("#status").textContent = leftOut(this.odd);
        } catch (error) {
            this.shown = null;
            $("#status").textContent = `This cannot be shown: ${fault(error)}`;
        }
        this.at.max = String((this.shown?.looks.length ?? 1) - 1);
        this.draw();
    }

    private draw(): void {
        const { about, shown } = this;
        const place = $("#strips");
        if (!shown) return place.replaceChildren();
        const width = Math.max(240, Math.floor(place.clientWidth));
        const levels = Object.fromEntries(about.settings.map(({ key }) => [key, this.value(key)]));
        this.drawing = strips(about, levels, shown, width);
        place.replaceChildren(this.drawing);
        const curve = about.chances ? [chances(measured(this.words(), about.chances), width)] : [];
        $("#chances").replaceChildren(...curve);
        this.look();
        document.documentElement.dataset.drawn = about.id;
    }

    /** The chosen moment. */
    private look(): void {
        const { about, shown, drawing } = this;
        if (!shown || !drawing) return;
        const at = Math.min(Number(this.at.value), shown.looks.length - 1);
        move(drawing, shown, at);
        const said = tell(about, shown, at);
        $("#told").textContent = said;
        this.at.setAttribute("aria-valuetext", said);
        const inside = {
            lists: () => [lists(about, shown, at)],
            bins: () => [bins(shown, at, drawing.viewBox.baseVal.width)],
            none: () => [],
        }[about.moment]();
        $("#moment").replaceChildren(...inside);
    }
}

/** Settings of the discipline, and the rate of each load. */
function controls({ settings, loads }: Explained): Setting[] {
    const rates = loads.map(({ name, mbps, most = 20 }, n) => ({
        key: `load${n}`, label: `Load: ${name}`, unit: "Mbit/s", min: 0, max: most, step: most > 6 ? 0.2 : 0.1, value: mbps,
    }));
    return [...settings, ...rates];
}

/** The words for the page on which lines are played with. */
function onALine({ id }: Explained, words: string): string {
    const shapers: Record<string, string> = { cake: "cake bandwidth {rate} diffserv4", tbf: "tbf rate {rate} burst 30kb latency 50ms", htb: "htb rate {rate} fq_codel", line: "pfifo" };
    return shapers[id] ?? words;
}

function fault(error: unknown): string {
    try {
        return inWords(JSON.parse(String(error)) as Fault);
    } catch {
        return error instanceof Error ? error.message : String(error);
    }
}

async function start(): Promise<void> {
    try {
        initSync({ module: await load() });
        new Page();
    } catch (error) {
        $("#status").textContent = `The figures cannot be loaded: ${error instanceof Error ? error.message : error}`;
    }
}

void start();
