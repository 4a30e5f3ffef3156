"use strict";
// Light and dark: the system's choice until the button says otherwise.
const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
// Legends switch their series; under the pointer they make it stand out.
for (const button of document.querySelectorAll(".legend button")) {
  const figure = button.closest(".together, figure");
  const parts = figure.querySelectorAll(".s" + button.dataset.n);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!on));
    for (const part of parts) part.classList.toggle("off", on);
  });
  const light = (on) => {
    figure.classList.toggle("faint", on);
    for (const part of parts) part.classList.toggle("lit", on);
  };
  button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && light(true));
  button.addEventListener("pointerleave", () => light(false));
}
// Values under the pointer: of bars and boxes their title, of lines the nearest points.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
const show = (event, text) => {
  tip.textContent = text;
  tip.hidden = !text;
  const beside = event.clientX + 16;
  const fits = beside + tip.offsetWidth + 8 < innerWidth;
  tip.style.left = Math.max(4, fits ? beside : event.clientX - tip.offsetWidth - 16) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
};
const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 100 ? v.toFixed(0) : v.toPrecision(3));
const value = (pixel, [low, high, from, to, log]) => {
  const v = low + ((pixel - from) / (to - from)) * (high - low);
  return log ? 10 ** v : v;
};
// Points come in order of time, but distributions and sweeps may be short: look at all of them.
const nearest = (points, x) => {
  let best = null;
  for (const point of points) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
  return best;
};
for (const svg of document.querySelectorAll("figure svg")) {
  const scale = svg.querySelector("desc");
  const numbers = scale && scale.textContent.split(" ").map(Number);
  let cursor = null;
  if (numbers) {
    cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor off");
    cursor.setAttribute("y1", numbers[7]);
    cursor.setAttribute("y2", numbers[8]);
    svg.append(cursor);
  }
  const legend = svg.closest(".together, figure").querySelectorAll(".legend button");
  svg.addEventListener("pointermove", (event) => {
    if (!numbers) {
      // A bar has its title itself, a box its group.
      const part = event.target.closest("[data-tip], :has(> title)");
      const title = part && part.querySelector(":scope > title");
      // The browser's own tip would stand beside ours.
      if (title) {
        part.dataset.tip = title.textContent;
        title.remove();
      }
      show(event, part ? part.dataset.tip : "");
      return;
    }
    const matrix = svg.getScreenCTM();
    const x = (event.clientX - matrix.e) / matrix.a;
    const rows = [];
    let at = null;
    svg.querySelectorAll("g.s:not(.off)").forEach((group) => {
      const best = nearest(group.querySelector("polyline").points, x);
      if (!best) return;
      at = at === null || Math.abs(best.x - x) < Math.abs(at - x) ? best.x : at;
      const n = [...group.classList].find((name) => /^s\d/.test(name)).slice(1);
      rows.push(`${legend[n].textContent}: ${digits(value(best.y, numbers.slice(5)))} ${svg.dataset.y}`);
    });
    cursor.classList.toggle("off", at === null);
    if (at !== null) for (const end of ["x1", "x2"]) cursor.setAttribute(end, at);
    show(event, at === null ? "" : [`${digits(value(at, numbers))} ${svg.dataset.x}`, ...rows].join("\n"));
  });
  // The same by arrow keys: from part to part, or along the axis.
  let place = -1;
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const go = (target, clientX, clientY) =>
      target.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
    if (numbers) {
      place = Math.max(0, Math.min(50, (place < 0 ? 25 : place) + step));
      const matrix = svg.getScreenCTM();
      const [from, to] = [numbers[2], numbers[3]];
      go(svg, matrix.e + matrix.a * (from + ((to - from) * place) / 50), box.y + box.height / 2);
      return;
    }
    const parts = svg.querySelectorAll("g.s:not(.off) > g, g.s:not(.off) > [data-tip]");
    if (!parts.length) return;
    place = (place + step + parts.length) % parts.length;
    const part = parts[place].getBoundingClientRect();
    go(parts[place], part.x + part.width / 2, part.y + part.height / 2);
  });
  svg.addEventListener("blur", () => (tip.hidden = true));
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (cursor) cursor.classList.add("off");
  });
}
