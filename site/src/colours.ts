// One colour and dash for each discipline, on every page: the lab's own list
// (crates/lab/src/figures), read as its `colours.rs` reads it.
import owners from "../../crates/lab/src/figures/disciplines.json";

/** Dashes of the slots, beside the colours, for eyes that cannot tell these apart. */
const DASHES = [[], [9, 4], [2, 3], [12, 3, 2, 3], [5, 2], [1, 5], [7, 2, 1, 2], [3, 1]];

export function dash(slot: number): number[] {
    return DASHES[slot % DASHES.length]!;
}

/** The slot of each of `names`: that of its discipline, or the next free one; beyond eight names slots recur. */
export function slots(names: string[]): number[] {
    const free = DASHES.map((_, n) => n);
    const taken = names.map((name) => {
        const at = free.indexOf(owned(name));
        return at < 0 ? null : free.splice(at, 1)[0]!;
    });
    let more = 0;
    return taken.map((slot) => slot ?? free.shift() ?? more++ % DASHES.length);
}

function owned(name: string): number {
    // Of a name that has the words of both ways those of the first count.
    const full = name.toLowerCase().replace(/^up: /, "");
    const first = full.trim().split(/\s+/)[0] ?? "";
    const whole = owners.findIndex((names) => names.includes(full));
    return whole >= 0 ? whole : owners.findIndex((names) => names.includes(first));
}
