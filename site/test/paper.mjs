// What is printed: black on white also from a dark screen, nothing wider than the paper, and beside
// each figure the lines of its legend.
import assert from "node:assert/strict";
import { join } from "node:path";

/** A4 without margins, in CSS pixels, is 794 wide. */
const WIDTH = 700;

/** Looks at a page of a dark screen as a printer would. `most` is how many figures it has at least. */
export async function paper(page, name, most, out) {
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.setViewportSize({ width: WIDTH, height: 1000 });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const seen = await page.evaluate(look);
    assert.equal(seen.back, "rgb(255, 255, 255)", `${name}: paper is white`);
    assert.deepEqual(seen.pale, [], `${name}: text that nobody sees on paper`);
    assert.deepEqual(seen.cut, [], `${name}: wider than the paper`);
    assert.deepEqual(seen.without, [], `${name}: figures without the lines of a legend`);
    assert.ok(seen.figures >= most, `${name}: ${seen.figures} figures`);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await page.emulateMedia({ media: null, colorScheme: "dark" });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.pdf({ path: join(out, `${name}.pdf`), format: "A4", margin: { top: "1cm", bottom: "1cm", left: "1cm", right: "1cm" } });
}

/** In the page. */
function look() {
    const isSeen = (element) => element.checkVisibility();
    const said = (element) => `${element.tagName} ${element.id || element.getAttribute("class") || ""}: ${element.textContent.trim().slice(0, 40)}`;
    const light = (color) => {
        const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number);
        return alpha === 0 ? 0 : (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
    };
    const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const texts = [...document.body.querySelectorAll("*")].filter((element) => hasText(element) && isSeen(element));
    const ink = (element) => {
        const { color, fill } = getComputedStyle(element);
        return element instanceof SVGElement ? fill : color;
    };
    // On a dark cell of a figure text is light.
    const pale = texts.filter((element) => !element.matches(".on-dark, option, title, desc") && light(ink(element)) > 0.6);
    const hidden = (element) => element.closest(".tip, datalist, [aria-hidden]");
    const wide = [...document.body.querySelectorAll("*")].filter((element) => {
        const { right, width } = element.getBoundingClientRect();
        return width > 0 && right > innerWidth + 1 && isSeen(element) && !hidden(element) && !element.closest("svg svg, svg *");
    });
    const figures = [...document.querySelectorAll("figure")].filter(isSeen);
    const without = figures.filter((figure) => {
        const lines = [...(figure.closest(".together") ?? figure).querySelectorAll(".swatch")];
        return !lines.some(isSeen);
    });
    return {
        back: getComputedStyle(document.body).backgroundColor,
        pale: pale.map(said), cut: wide.map(said), without: without.map(said), figures: figures.length,
    };
}
