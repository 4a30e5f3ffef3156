// Fields and sliders: what a person changes, and errors beside it.
import {
    CONTROLS, FIELDS, LINES, MOST_DISCIPLINES, PRESETS, objection, type Field, type Question,
} from "./question";
import { element, swatch } from "./dom";
import { styles } from "./styles";

/** Steps of a slider by factors. */
const STEPS = 200;

function toSlider(field: Field, value: number): number {
    if (!field.log) return value;
    return (Math.log(value / field.min) / Math.log(field.max / field.min)) * STEPS;
}

/** The value of a slider's place, with two digits. */
function fromSlider(field: Field, place: number): number {
    if (!field.log) return place;
    const value = field.min * (field.max / field.min) ** (place / STEPS);
    const rounded = Number(value.toPrecision(2));
    return field.step >= 1 ? Math.max(field.min, Math.round(rounded)) : rounded;
}

/** A place beside an input in which its error stands. */
function complaint(input: HTMLElement, id: string): (text: string) => void {
    const place = element("p", { className: "wrong", id, hidden: true });
    place.setAttribute("role", "alert");
    input.setAttribute("aria-describedby", id);
    input.parentElement?.append(place);
    return (text) => {
        place.textContent = text;
        place.hidden = !text;
        input.toggleAttribute("aria-invalid", Boolean(text));
        if (text) input.setAttribute("aria-invalid", "true");
    };
}

export class Form {
    private numbers = new Map<Field, { input: HTMLInputElement; slider: HTMLInputElement; complain: (text: string) => void }>();
    private rows: { input: HTMLInputElement; complain: (text: string) => void }[] = [];
    private readonly cc = element("select", { id: "cc" });
    private readonly known = document.querySelector<HTMLSelectElement>("#known")!;
    /** The text that the fields make. */
    private fields = "";
    private readonly text = document.querySelector<HTMLTextAreaElement>("#toml")!;
    private readonly complainText: (text: string) => void;
    private readonly list = document.querySelector<HTMLElement>("#disciplines")!;
    private readonly add = document.querySelector<HTMLButtonElement>("#add")!;
    private readonly back = document.querySelector<HTMLButtonElement>("#back")!;

    constructor(private question: Question, private readonly changed: () => void) {
        for (const field of FIELDS) this.number(field);
        this.control();
        this.lines();
        document.querySelector("#presets")!.append(
            ...PRESETS.map(([words, label]) => element("option", { value: words, label })));
        this.complainText = complaint(this.text, "toml-wrong");
        this.text.addEventListener("input", () => {
            this.question.text = this.text.value.trim() ? this.text.value : "";
            this.own();
            this.changed();
        });
        this.text.addEventListener("blur", () => {
            if (!this.question.text) this.text.value = this.fields;
        });
        this.back.addEventListener("click", () => {
            this.question.text = "";
            this.own();
            this.changed();
        });
        this.add.addEventListener("click", () => {
            const unused = PRESETS.map(([words]) => words).find((words) => !this.question.disciplines.includes(words));
            this.question.disciplines.push(unused ?? "fq_codel");
            this.disciplines();
            this.rows.at(-1)?.input.focus();
            this.changed();
        });
        this.show(question);
    }

    /** Another question: of an address, or of an example. */
    show(question: Question): void {
        this.question = question;
        for (const [field, { input, slider, complain }] of this.numbers) {
            input.value = String(question[field.key]);
            slider.value = String(toSlider(field, question[field.key]));
            complain("");
        }
        this.cc.value = question.cc;
        this.line();
        this.disciplines();
        this.own();
    }

    /** True if every number can be used. */
    isRight(): boolean {
        if (this.question.text) return true;
        return [...this.numbers].every(([field, { input }]) => objection(field, input.valueAsNumber) === null);
    }

    /** What is wrong with discipline `n`; empty if nothing is. */
    complainWords(n: number, text: string): void {
        this.rows[n]?.complain(text);
    }

    /** What is wrong with the scenario; empty if nothing is. */
    complainScenario(text: string): void {
        this.complainText(text);
        if (text) document.querySelector<HTMLDetailsElement>("#own")!.open = true;
    }

    /** The text that the fields make. An empty place that is written into is left empty. */
    made(text: string): void {
        this.fields = text;
        if (!this.question.text && document.activeElement !== this.text) this.text.value = text;
    }

    private number(field: Field): void {
        const input = element("input", {
            type: "number", id: field.key, min: String(field.min), max: String(field.max), step: "any", required: true,
        });
        const slider = element("input", {
            type: "range", min: field.log ? "0" : String(field.min), max: String(field.log ? STEPS : field.max),
            step: String(field.log ? 1 : field.step), tabIndex: -1,
        });
        slider.setAttribute("aria-label", `${field.label}, slider`);
        const label = element("label", { htmlFor: field.key }, field.label);
        const unit = element("span", { className: "unit" }, field.unit);
        const row = element("div", { className: "field" }, label, input, unit, slider);
        document.querySelector(`#${field.group}`)!.append(row);
        const complain = complaint(input, `${field.key}-wrong`);
        const take = (value: number) => {
            const wrong = objection(field, value);
            complain(wrong === null ? "" : `expected ${wrong}`);
            if (wrong !== null) return;
            this.question[field.key] = value;
            this.line();
            this.changed();
        };
        input.addEventListener("input", () => {
            const value = input.valueAsNumber;
            if (objection(field, value) === null) slider.value = String(toSlider(field, value));
            take(value);
        });
        slider.addEventListener("input", () => {
            const value = fromSlider(field, slider.valueAsNumber);
            input.value = String(value);
            take(value);
        });
        this.numbers.set(field, { input, slider, complain });
    }

    private control(): void {
        this.cc.append(...CONTROLS.map((name) => element("option", { value: name }, name)));
        const label = element("label", { htmlFor: "cc" }, "Congestion control");
        document.querySelector("#simulation")!.append(element("div", { className: "field" }, label, this.cc));
        this.cc.addEventListener("change", () => {
            this.question.cc = this.cc.value;
            this.changed();
        });
    }

    private lines(): void {
        this.known.append(...LINES.map(([name], n) => element("option", { value: String(n) }, name)));
        this.known.addEventListener("change", () => {
            const line = LINES[Number(this.known.value)];
            if (!line || this.known.value === "") return;
            const [, down, up, rtt, buffer] = line;
            Object.assign(this.question, { down, up, rtt, buffer });
            this.show(this.question);
            this.changed();
        });
    }

    /** Says which known line the fields describe. */
    private line(): void {
        const { down, up, rtt, buffer } = this.question;
        const n = LINES.findIndex(([, ...line]) => line.join() === [down, up, rtt, buffer].join());
        this.known.value = n < 0 ? "" : String(n);
    }

    private disciplines(): void {
        const { disciplines } = this.question;
        const taken = styles(disciplines);
        this.list.replaceChildren();
        this.rows = disciplines.map((words, n) => {
            const input = element("input", { id: `qdisc-${n}`, value: words, spellcheck: false, autocomplete: "off" });
            input.setAttribute("list", "presets");
            const label = element("label", { htmlFor: input.id }, swatch(taken[n]!), n === 0 && disciplines.length > 1 ? "compared with" : `discipline ${n + 1}`);
            const remove = element("button", { type: "button", className: "remove" }, "remove");
            remove.setAttribute("aria-label", `remove discipline ${n + 1}`);
            remove.disabled = disciplines.length === 1;
            const row = element("div", { className: "discipline" }, label, input, remove);
            this.list.append(row);
            const complain = complaint(input, `qdisc-${n}-wrong`);
            input.addEventListener("input", () => {
                this.question.disciplines[n] = input.value.trim();
                this.recolour();
                this.changed();
            });
            remove.addEventListener("click", () => {
                this.question.disciplines.splice(n, 1);
                this.disciplines();
                this.rows[Math.max(0, n - 1)]?.input.focus();
                this.changed();
            });
            return { input, complain };
        });
        this.add.disabled = disciplines.length >= MOST_DISCIPLINES;
    }

    /** Other words may be another discipline's, with a colour of its own. */
    private recolour(): void {
        const wanted = styles(this.question.disciplines);
        this.list.querySelectorAll(".swatch").forEach((old, n) => old.replaceWith(swatch(wanted[n]!)));
    }

    /** Fields that do not count are not there to be changed. */
    private own(): void {
        const isOwn = this.question.text !== "";
        for (const id of ["line", "traffic"]) document.querySelector<HTMLFieldSetElement>(`#${id}`)!.disabled = isOwn;
        this.cc.disabled = isOwn;
        for (const [field, { input, slider }] of this.numbers) {
            if (field.key === "seconds") input.disabled = slider.disabled = isOwn;
        }
        this.back.hidden = !isOwn;
        if (isOwn && this.text.value !== this.question.text) this.text.value = this.question.text;
        if (!isOwn) this.complainText("");
    }
}
