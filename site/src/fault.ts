// What is wrong with a scenario or with words, as a sentence.
import type { Fault } from "./messages";

/** What was expected is left out where it is said already, or asked. Of words only a form says more
 * than what is wrong, and forms have capitals: `RATE`. */
export function inWords({ of, what, expected, place }: Fault): string {
    const where = place ? `line ${place[0]}, column ${place[1]}: ` : "";
    const isSaid = what.includes(expected) || what.endsWith("?") || (of === "words" && !/[A-Z]{2}/.test(expected));
    return where + what + (isSaid ? "" : `; expected ${expected}`);
}
