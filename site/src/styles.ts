// One colour, dash and marker for each discipline, on every page: the lab's own table
// (crates/lab/src/figures), read as its `styles.rs` reads it, which says the rules.
import table from "../../crates/lab/src/figures/styles.json";

/** Numbers of a colour and a dash: how flows are drawn. */
export interface Stroke {
    colour: number;
    dash: number;
}

/** And of a marker: a discipline. */
export interface Style extends Stroke {
    marker: number;
}

/** Colours, dashes and markers: as many each. */
const EACH = table.dashes.length;

/** Lengths of dashes and gaps. */
export function dash({ dash }: Pick<Stroke, "dash">): number[] {
    const lengths = table.dashes[dash % EACH]!;
    return lengths ? lengths.split(" ").map(Number) : [];
}

/** The marker's outline at a place, as SVG has paths. */
export function marker({ marker }: Style, x = 0, y = 0): string {
    return `M${x.toFixed(1)} ${y.toFixed(1)}${table.markers[marker]}`;
}

function nth(n: number): Style {
    return { colour: n % EACH, dash: (n + Math.floor(n / EACH)) % EACH, marker: Math.floor(n / (EACH * EACH)) % EACH };
}

const isSame = (a: Style, b: Style) => a.colour === b.colour && a.dash === b.dash && a.marker === b.marker;

const owners = table.disciplines.map(({ names, style: [colour, dash, marker] }) => ({ names, style: { colour: colour!, dash: dash!, marker: marker! } }));

const all = Array.from({ length: EACH ** 3 }, (_, n) => nth(n)).filter((style) => !owners.some((owner) => isSame(owner.style, style)));

/** The style of each of `names`; beyond 512 of them styles recur. */
export function styles(names: string[]): Style[] {
    const own = names.map(owned);
    const given: (Style | null)[] = names.map(() => null);
    const taken: Style[] = [];
    const take = (n: number, style: Style) => {
        given[n] = style;
        taken.push(style);
        return style;
    };
    for (const isWhole of [true, false]) {
        own.forEach((one, n) => {
            if (one?.isWhole === isWhole && !taken.some((style) => isSame(style, one.style))) take(n, one.style);
        });
    }
    return given.map((style, n) => style ?? take(n, next(taken, own[n]?.style.colour) ?? nth(n)));
}

/** A free style, as unlike those in `taken` as there is; in `colour`, if that has any left. */
function next(taken: Style[], colour: number | undefined): Style | null {
    const free = all.filter((style) => !taken.some((one) => isSame(one, style)));
    const own = free.filter((style) => style.colour === colour);
    let best: { style: Style; alike: number[] } | null = null;
    for (const style of own.length > 0 ? own : free) {
        const count = (same: (one: Style) => boolean) => taken.filter(same).length;
        const alike = [
            count((one) => one.dash === style.dash && one.marker === style.marker),
            count((one) => one.colour === style.colour),
            count((one) => one.colour === style.colour && one.dash === style.dash),
            count((one) => one.colour === style.colour && one.marker === style.marker),
        ];
        if (!best || isLess(alike, best.alike)) best = { style, alike };
    }
    return best?.style ?? null;
}

function isLess(a: number[], b: number[]): boolean {
    const n = a.findIndex((value, n) => value !== b[n]);
    return n >= 0 && a[n]! < b[n]!;
}

function owned(name: string): { style: Style; isWhole: boolean } | null {
    // Of a name that has the words of both ways those of the first count.
    const whole = name.toLowerCase().replace(/^up: /, "").trim();
    const first = whole.split(/\s+/)[0] ?? "";
    const of = (words: string) => owners.find(({ names }) => names.includes(words));
    const owner = of(whole);
    if (owner) return { style: owner.style, isWhole: true };
    const other = of(first);
    return other ? { style: other.style, isWhole: false } : null;
}
