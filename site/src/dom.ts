// Elements of pages.
import { dash, marker, type Stroke, type Style } from "./styles";
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

/** The line with which a flow or, with its marker, a discipline is drawn. */
export function swatch(style: Stroke | Style): SVGSVGElement {
    const dashes = dash(style).join(" ") || "none";
    const line = svg.element("line", { x1: 0, x2: 30, y1: 4, y2: 4, "stroke-dasharray": dashes });
    const outer = { viewBox: "0 0 30 8", class: `swatch c${style.colour}`, "aria-hidden": "true" };
    const mark = "marker" in style ? [svg.element("path", { d: marker(style, 15, 4), stroke: "none" })] : [];
    return svg.element("svg", outer, line, ...mark);
}
