// Play with a line: a change is simulated at once with one seed, drawn, and then repeated in the
// background until there are as many runs as asked for.
import { addressed, leftOut } from "./address";
import { bands, legend, table, tell } from "./answer";
import { Charts } from "./charts";
import { inWords } from "./fault";
import { Form } from "./form";
import { load } from "./load";
import type { Job, Shown, Summary } from "./messages";
import { Broken, Cancelled, Pool, Wrong } from "./pool";
import { printed } from "./printed";
import { asked, fromAddress, toAddress, toCommand, toToml, usual, words } from "./question";
import { Watch } from "./watch";
import evening from "../../scenarios/evening.toml";
import hosts from "../../scenarios/hosts.toml";
import iot from "../../scenarios/iot.toml";
import l4s from "../../scenarios/l4s.toml";
import rrul from "../../scenarios/rrul.toml";
import upload from "../../scenarios/upload.toml";

const EXAMPLES: Record<string, string> = { evening, hosts, iot, l4s, rrul, upload };
/** What `simnel sim` says of such runs (crates/lab/src/report/text.rs). */
const ALIKE = "The seeds make no difference here: all repetitions are the same run.";
/** A first picture that takes longer does not hold up the next change. */
const PATIENCE_MS = 400;

const $ = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector)!;
const status = $("#status");

/** What was asked of one discipline, as far as it is. */
interface Asked {
    words: string;
    job: (seed: number) => Job;
    /** Of the first seed; null until it has come. */
    first: Shown | Error | null;
    /** The runs that are shown, and the later seeds of those that are not. */
    runs: Shown[];
    missing: number[];
}

/** A question with all its seeds. */
interface Repetitions {
    text: string;
    most: number;
    asked: Asked[];
}

/** Another worker may do what broke some; wrong words stay wrong. */
function isOpen({ first }: Asked): boolean {
    return first === null || first instanceof Broken;
}

/** Those that are shown. */
function there({ asked }: Repetitions): Asked[] {
    return asked.filter(({ runs }) => runs.length > 0);
}

/** Later seeds that one of those that are shown lacks. */
function missing(repetitions: Repetitions): number[] {
    return [...new Set(there(repetitions).flatMap((each) => each.missing))].sort((a, b) => a - b);
}

/** Seeds of which there is all that is shown. */
function done(repetitions: Repetitions): number {
    return there(repetitions).length > 0 ? repetitions.most - missing(repetitions).length : 0;
}

/** The same disciplines twice are refused, as `simnel sim` refuses them. */
function eachOnce(results: (Shown | Error)[]): (Shown | Error)[] {
    const seen = new Set<string>();
    return results.map((result) => {
        if (!isShown(result)) return result;
        const { qdisc_up: up, qdisc_down: down } = summary(result);
        const [one, other] = [up, down].map((each) => each.trim().replace(/\s+/g, " "));
        const both = `${one}\n${other}`;
        if (!seen.has(both)) {
            seen.add(both);
            return result;
        }
        const what = `\`${one}\` is there twice; expected each discipline once`;
        return new Wrong({ of: "words", what, expected: "", place: null });
    });
}

class Lab {
    private question = usual();
    /** What the address says and nobody understands. */
    private odd: string[] = [];
    private readonly form: Form;
    private readonly charts = new Charts($("#charts"));
    /** Since when the first picture of a change is on its way; null if none is. */
    private since: number | null = null;
    private isStale = false;
    /** Runs while a change waits for the first picture of one before. */
    private patience: number | undefined;
    /** Ends what runs for the picture: nothing of it is shown any more. */
    private wanted = new AbortController();
    /** Ends what runs to be watched. */
    private watched = new AbortController();
    /** What `go on` goes on with; null until something is asked. */
    private repetitions: Repetitions | null = null;
    private readonly stop = $<HTMLButtonElement>("#stop");
    private readonly example = $<HTMLSelectElement>("#example");
    /** Null until there is a first picture. */
    private shown: { names: string[]; runs: Shown[][] } | null = null;
    /** The text of what is shown. */
    private text = "";
    private readonly watch = new Watch((n) => this.pool.run({
        text: this.text, name: "line", words: this.shown?.names[n], seed: 1, isFilm: true,
    }, this.watched.signal));

    constructor(private readonly pool: Pool) {
        this.form = new Form(this.question, () => this.choose());
        window.addEventListener("hashchange", () => this.go());
        $("#form").addEventListener("submit", (event) => event.preventDefault());
        for (const name of Object.keys(EXAMPLES)) this.example.add(new Option(name));
        this.example.addEventListener("change", () => {
            this.question.text = EXAMPLES[this.example.value] ?? "";
            this.form.show(this.question);
            this.choose();
        });
        $("#all").addEventListener("toggle", () => void this.redraw());
        this.stop.addEventListener("click", () => (this.wanted.signal.aborted ? void this.goOn() : this.halt()));
        copies("#copy-command", () => toCommand(this.question));
        copies("#copy-toml", () => toToml(this.question));
        copies("#copy-link", () => location.href);
        const scheme = matchMedia("(prefers-color-scheme: dark)");
        const repaint = () => {
            const { dataset } = document.documentElement;
            dataset.scheme = dataset.theme ?? (scheme.matches ? "dark" : "light");
            void this.redraw();
            this.watch.repaint();
        };
        scheme.addEventListener("change", repaint);
        printed(() => {
            repaint();
            this.charts.finish();
        });
        repaint();
        this.read();
    }

    /** Another address was entered. */
    private go(): void {
        if (location.hash.slice(1) !== toAddress(this.question)) this.read();
    }

    /** Asks what the address does. */
    private read(): void {
        ({ question: this.question, odd: this.odd } = fromAddress(location.hash));
        this.form.show(this.question);
        this.change();
    }

    /** Somebody has changed something: what the address said is past. */
    private choose(): void {
        this.odd = [];
        this.change();
    }

    /** The question is another one. */
    private change(): void {
        const { text } = this.question;
        // The text of nobody's fields and of no example has no name.
        const known = Object.values(EXAMPLES).indexOf(text);
        this.example.selectedIndex = text === "" ? 0 : known < 0 ? -1 : 1 + known;
        if (!this.form.isRight()) return remark("Nothing else is simulated until the field in red is right.");
        addressed(toAddress(this.question));
        this.form.made(toToml(this.question));
        const now = performance.now();
        if (this.since !== null && now - this.since < PATIENCE_MS) {
            // Who drags a slider sees what was, not nothing at all.
            this.isStale = true;
            this.patience ??= window.setTimeout(() => void this.ask(), this.since + PATIENCE_MS - now);
            return;
        }
        void this.ask();
    }

    /** Keeps what there is. */
    private halt(): void {
        this.pause();
        window.clearTimeout(this.patience);
        this.patience = undefined;
        this.since = null;
        const { repetitions } = this;
        const count = repetitions ? done(repetitions) : 0;
        say(repetitions && count > 0 ? `${count} of ${repetitions.most} runs: stopped` : "Stopped before there was a picture.");
    }

    /** Ends what runs, and offers to go on. */
    private pause(): void {
        this.wanted.abort();
        this.pool.refill();
        this.stop.textContent = "go on";
    }

    private goOn(): Promise<void> {
        // Whoever has changed something meanwhile asks something else.
        return this.repetitions && !this.isStale ? this.carryOn(this.repetitions) : this.ask();
    }

    /** The signal of what begins now; what was before is over. */
    private renewed(): AbortSignal {
        this.wanted.abort();
        this.wanted = new AbortController();
        this.stop.textContent = "stop";
        this.stop.hidden = false;
        return this.wanted.signal;
    }

    private async ask(): Promise<void> {
        this.isStale = false;
        window.clearTimeout(this.patience);
        this.patience = undefined;
        const question = structuredClone(this.question);
        const text = toToml(question);
        this.repetitions = {
            text,
            most: question.runs,
            asked: question.disciplines.map((each): Asked => ({
                words: words(question, each),
                job: (seed) => ({ text, name: "line", words: words(question, each), seed }),
                first: null,
                runs: [],
                missing: Array.from({ length: question.runs - 1 }, (_, n) => n + 2),
            })),
        };
        await this.carryOn(this.repetitions);
    }

    /** What is missing: the first seed, which is drawn at once, then all others. */
    private async carryOn(repetitions: Repetitions): Promise<void> {
        const signal = this.renewed();
        const isWhole = there(repetitions).length > 0 && !repetitions.asked.some(isOpen);
        if (!isWhole) await this.begin(signal, repetitions);
        if (signal.aborted) return;
        if (this.isStale) return this.ask();
        await this.repeat(signal, repetitions);
    }

    /** The first seed of those that lack it. */
    private async begin(signal: AbortSignal, repetitions: Repetitions): Promise<void> {
        const { asked, text } = repetitions;
        this.since = performance.now();
        performance.mark("change");
        this.watched.abort();
        this.watched = new AbortController();
        say("Simulating…");
        await Promise.all(asked.filter(isOpen).map(async (each) => {
            const result = await this.attempt(each.job(1), signal);
            // What had come before a stop is kept.
            if (!(result instanceof Cancelled)) each.first = result;
        }));
        if (signal.aborted) return;
        performance.measure("simulated", "change");
        this.since = null;
        const first = eachOnce(asked.map((each) => each.first!));
        this.complain(first);
        asked.forEach((each, n) => {
            const result = first[n]!;
            if (!isShown(result)) each.runs = [];
            else if (each.runs.length === 0) each.runs = [result];
        });
        const all = there(repetitions);
        this.shown = { names: all.map((each) => each.words), runs: all.map(({ runs }) => runs) };
        this.draw();
        // Nothing else is begun before the picture is there.
        await painted();
        performance.measure("first picture", "change");
        // What was stopped has its picture, what was changed has another one.
        if (this.repetitions !== repetitions) return;
        this.charts.finish();
        this.pool.refill();
        if (this.isStale) return;
        this.text = text;
        this.watch.renew(this.shown.names);
    }

    /** Further seeds, as many at once as there are cores. */
    private async repeat(signal: AbortSignal, repetitions: Repetitions): Promise<void> {
        const { asked, most } = repetitions;
        let drawn = performance.now();
        const broken = asked.flatMap(({ first }) => (first instanceof Broken ? [first as Error] : []));
        const all = there(repetitions);
        await Promise.all(missing(repetitions).map(async (seed) => {
            const lacking = all.filter((each) => each.missing.includes(seed));
            const more = await Promise.all(lacking.map(({ job }) => this.attempt(job(seed), signal)));
            if (signal.aborted) return;
            if (!more.every(isShown)) return void broken.push(more.find((each) => !isShown(each)) as Error);
            lacking.forEach((each, n) => {
                each.runs.push(more[n] as Shown);
                each.missing = each.missing.filter((other) => other !== seed);
            });
            say(`${done(repetitions)} of ${most} runs`);
            if (performance.now() - drawn > 250) {
                drawn = performance.now();
                void this.redraw();
            }
        }));
        if (signal.aborted) return;
        const count = done(repetitions);
        if (count > 1) await this.redraw();
        if (signal.aborted) return;
        if (count > 0) document.documentElement.dataset.runs = String(count);
        const [first] = broken;
        if (first) {
            this.pause();
            return say(`${count} of ${most} runs; ${broken.length} broke off: ${first instanceof Broken ? first.why : first.message}`);
        }
        if (count > 0) say(count === 1 ? "1 run" : `${count} runs${this.repeated(count)}`);
        this.stop.hidden = true;
    }

    /** What the curves of `n` runs are. */
    private repeated(n: number): string {
        const { names = [], runs = [] } = this.shown ?? {};
        const of = bands(n, names, runs.map((each) => each.map(summary)));
        return of === null ? `. ${ALIKE}` : `: lines are medians, ${of}`;
    }

    /** What a job showed, or why it did not. */
    private async attempt(job: Job, signal: AbortSignal): Promise<Shown | Error> {
        try {
            return await this.pool.run(job, signal);
        } catch (error) {
            return error instanceof Error ? error : new Error(String(error));
        }
    }

    private complain(results: (Shown | Error)[]): void {
        let scenario = "";
        let broken = "";
        results.forEach((result, n) => {
            let wrong = "";
            if (result instanceof Wrong) {
                if (result.fault.of === "words") wrong = inWords(result.fault);
                else scenario = inWords(result.fault);
            } else if (result instanceof Error) {
                broken = result.message;
            }
            this.form.complainWords(n, wrong);
        });
        this.form.complainScenario(scenario);
        const missing = results.every(isShown) ? "" : broken || "Something cannot be simulated: see the fields in red.";
        remark(`${missing} ${leftOut(this.odd)}`.trim());
        say(results.some(isShown) ? "1 run" : "");
        document.documentElement.dataset.runs = "1";
    }

    /** All of it, what is in sight first. */
    private async redraw(): Promise<void> {
        this.draw();
        await painted();
        this.charts.finish();
    }

    /** What is in sight. */
    private draw(): void {
        if (!this.shown) return;
        const { names, runs } = this.shown;
        this.charts.draw(names, runs);
        const summaries = runs.map((each) => each.map(summary));
        $("#legend").replaceChildren(...legend(names));
        $("#asked").textContent = asked(this.question);
        tell($("#verdict"), names, [{ name: "", runs: summaries }]);
        // Of what is folded away nothing is made.
        if ($<HTMLDetailsElement>("#all").open) table($("#figures"), names, summaries);
    }
}

/** Resolves when what was drawn is on the screen; soon if nobody looks. */
function painted(): Promise<void> {
    return new Promise((resolve) => {
        requestAnimationFrame(() => setTimeout(resolve));
        setTimeout(resolve, 250);
    });
}

function isShown(result: Shown | Error): result is Shown {
    return !(result instanceof Error);
}

const summaries = new WeakMap<Shown, Summary>();

/** Parsed once. */
function summary(shown: Shown): Summary {
    let parsed = summaries.get(shown);
    if (!parsed) {
        parsed = JSON.parse(shown.summary) as Summary;
        summaries.set(shown, parsed);
    }
    return parsed;
}

/** How far it is. */
function say(text: string): void {
    if (status.textContent !== text) status.textContent = text;
}

/** What must not be overlooked. */
function remark(text: string): void {
    $("#remark").textContent = text;
}

/** A button that copies, and says so; where the clipboard is out of reach, the text is shown. */
function copies(selector: string, text: () => string): void {
    const button = $<HTMLButtonElement>(selector);
    const label = button.textContent;
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(text());
            button.textContent = "copied";
            setTimeout(() => (button.textContent = label), 1500);
        } catch {
            window.prompt("The browser lets nothing be copied: do it from here", text());
        }
    });
}

/** For the console and for tests: one run, and the line that `simnel sim --json` prints. */
function open(pool: Pool): void {
    const run = async (text: string, name: string, qdisc?: string, seed = 1) =>
        (await pool.run({ text, name, words: qdisc, seed })).summary;
    Object.assign(window, { simnel: { run } });
}

async function start(): Promise<void> {
    try {
        const module = await load();
        // Runs of the console do not stop when a field changes.
        open(new Pool(module));
        new Lab(new Pool(module));
    } catch (error) {
        say(`The simulator cannot be loaded: ${error instanceof Error ? error.message : error}`);
        return;
    }
    if ("serviceWorker" in navigator && window.isSecureContext) {
        // Without it the page works as well, but not without a network.
        navigator.serviceWorker.register("offline.js").catch(() => undefined);
    }
}

void start();
