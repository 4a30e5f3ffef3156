// The address's part after the #, which changes with the fields.

/** Until a browser lets it be changed again. */
const LATER_MS = 2000;
let later: number | undefined;

/** Browsers refuse what changes it too often (Safari: more than 100 times in 30 s, a slider's way
 * of two seconds). The last change is made then as soon as it may be. */
export function addressed(hash: string): void {
    window.clearTimeout(later);
    try {
        history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    } catch {
        later = window.setTimeout(() => addressed(hash), LATER_MS);
    }
}

/** What is said of parts that nobody understands. */
export function leftOut(odd: string[]): string {
    return odd.length > 0 ? `Of what the address says, this was left out: ${odd.join(", ")}.` : "";
}
