// Elements of pages.
import { dash } from "./colours";
import * as svg from "./svg";

export function element<K extends keyof HTMLElementTagNameMap>(
    name: K,
    properties: Partial<HTMLElementTagNameMap[K]> = {},
    ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

/** The line with which a discipline is drawn. */
export function swatch(slot: number): SVGSVGElement {
    const dashes = dash(slot).join(" ") || "none";
    const at = { x1: 0, x2: 30, y1: 4, y2: 4, class: `curve-${slot}`, "stroke-dasharray": dashes };
    const outer = { viewBox: "0 0 30 8", class: "swatch", "aria-hidden": "true" };
    return svg.element("svg", outer, svg.element("line", at));
}
