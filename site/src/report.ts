// The pages that commands write: a result that is in the page becomes what the lab shows of its own;
// figures that come drawn come to life. `simnel sim` and `simnel compare` put their results in.
import { bands, legend, table, tell, type Case } from "./answer";
import { Charts } from "./charts";
import { element } from "./dom";
import { DotPlot } from "./dots";
import { enliven } from "./drawn";
import { figures, shownOf, type Figure } from "./figures";
import type { Shown, Summary } from "./messages";
import { printed } from "./printed";

/** What a command found out (crates/lab/src/report/result.rs). */
interface Result {
    question: string;
    /** Why not all runs are there; empty if they are. */
    partial: string;
    /** The disciplines as prose calls them, and in tc's words. */
    names: string[];
    words: string[];
    cases: (Case & { interval_s: number })[];
    /** Sentences beyond those that the figures give; what decides is seen at once, the first above all. */
    said: { text: string; decides: boolean }[];
    scenario: string;
}

/** Light and dark: the system's choice until the button says otherwise. */
function theme(changed: () => void): void {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const tell = () => {
        root.dataset.scheme = isDark() ? "dark" : "light";
        changed();
    };
    document.querySelector("#theme")?.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        tell();
    });
    system.addEventListener("change", tell);
    printed(tell);
    tell();
}

/** Draws the result, and gives what is to be done when colours change. */
function show(main: HTMLElement, result: Result): () => void {
    const { names, cases, words } = result;
    const verdict = element("div", { id: "verdict" });
    tell(verdict, names, cases);
    const [first, ...more] = result.said;
    const plain = element("div", { className: "plots" });
    const other = element("div", { className: "plots" });
    for (const each of cases) {
        const parts = plots(each, names, cases.length > 1);
        // Where there is much, one figure a workload: its delays, if it has any.
        const [now, later] = cases.length > 1 ? [parts.slice(0, 1), parts.slice(1)] : [parts, []];
        plain.append(...now);
        other.append(...later);
    }
    const answer = element("section", {}, element("h2", {}, "What it does"), verdict);
    if (first) answer.append(element("p", {}, first.text));
    const list = (decides: boolean) => more.filter((sentence) => sentence.decides === decides)
        .map(({ text }) => element("li", {}, text));
    const [seen, folded] = [list(true), list(false)];
    if (seen.length > 0) {
        answer.append(element("p", {}, "Where one is better than another, in means of the runs:"), element("ul", {}, ...seen));
    }
    if (folded.length > 0) {
        const title = element("summary", {}, "What does not decide between the first and the next");
        answer.append(element("details", {}, title, element("ul", {}, ...folded)));
    }
    main.append(
        ...(result.partial ? [element("p", { className: "note" }, `Partial: ${result.partial}`)] : []),
        ...(result.question ? [element("p", { className: "lead" }, result.question)] : []),
        answer,
        element("section", {}, element("p", { className: "legend" }, ...legend(names)), plain),
    );
    const [only] = cases;
    const runs = only && cases.length === 1 ? curves(only) : [];
    const place = element("div", { id: "charts" });
    let charts: Charts | null = null;
    if (runs.some((each) => each.some((shown) => shown.curves.length > 0))) {
        const drawn = Math.max(...runs.map((each) => each.length));
        const told = drawn > 1 ? bands(drawn, names, only!.runs) : null;
        const means = told === null ? [] : [element("p", { className: "small" }, `Medians of ${drawn} runs, ${told}.`)];
        main.append(element("section", {}, element("h2", {}, "Curves"), ...means, place));
        charts = new Charts(place);
    }
    const all = element("details", {}, element("summary", {}, "All figures"), other);
    for (const each of cases) {
        const figures = element("table");
        if (each.name) figures.append(element("caption", {}, each.name));
        table(figures, names, each.runs);
        const wide = element("div", { className: "wide", tabIndex: 0 }, figures);
        wide.setAttribute("role", "region");
        wide.setAttribute("aria-label", `All figures ${each.name}`.trim());
        all.append(wide);
    }
    all.append(element("p", { className: "small" },
        `Medians of the runs, with the least and the greatest. A dot is a run. In the words of tc: ${words.join("; ")}.`));
    main.append(all);
    if (result.scenario) {
        main.append(element("details", {}, element("summary", {}, "The scenario"), element("pre", { tabIndex: 0 }, result.scenario)));
    }
    return () => {
        charts?.draw(names, runs);
        charts?.finish();
    };
}

/** A plot a unit, delays first. */
function plots({ name, runs }: Case, names: string[], isNamed: boolean): HTMLElement[] {
    const first = runs.flat()[0];
    const all = first ? figures(first).filter((figure) => !figure.isMinor && !figure.id.startsWith("line")) : [];
    const titles: [Figure["unit"], string][] = [["ms", "Delays"], ["Mbit/s", "Rates"]];
    return titles.flatMap(([unit, title]) => {
        const of = all.filter((figure) => figure.unit === unit && runs.flat().some((run) => (figure.of(run) ?? 0) > 0));
        return of.length > 0 ? [new DotPlot(isNamed ? name : title, of, names, runs).figure] : [];
    });
}

/** Only the first runs have come with their series. */
function curves({ runs, interval_s }: Result["cases"][number]): Shown[][] {
    const has = (summary: Summary) => summary.groups.some((group) => group.series_mbps.length > 0);
    return runs.map((each) => each.filter(has).map((summary) => shownOf(summary, interval_s)));
}

const main = document.querySelector("main");
const text = document.querySelector("#result")?.textContent;
const repaint = main && text ? show(main, JSON.parse(text) as Result) : () => undefined;
theme(repaint);
enliven();
