// Elements of a drawing.
const SPACE = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number>;

export function element<K extends keyof SVGElementTagNameMap>(
    name: K, attributes: Attributes, ...inside: (Node | string)[]
): SVGElementTagNameMap[K] {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    made.append(...inside);
    return made;
}

/** Round steps of an axis from zero to `most`, about `count` of them. */
export function ticks(most: number, count: number): number[] {
    if (!(most > 0)) return [0];
    const rough = most / count;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * size).find((each) => each >= rough * 0.999) ?? 10 * size;
    return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, n) => Number((n * step).toPrecision(12)));
}

/** A line through points; a gap where there is none for `patience` of them. */
export function path(points: ([number, number] | null)[], patience = 1): string {
    let missing = patience;
    return points.map((point) => {
        const step = point ? `${missing < patience ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}` : "";
        missing = point ? 0 : missing + 1;
        return step;
    }).join("");
}
