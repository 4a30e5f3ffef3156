"use strict";
// Light and dark: the system's choice until a button says otherwise.
const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
// Legends switch their series.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!on));
    const figure = button.closest("figure");
    for (const part of figure.querySelectorAll(".s" + button.dataset.n)) part.classList.toggle("off", on);
  });
}
// Values under the pointer: of bars and boxes their title, of lines the nearest points.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
const show = (event, text) => {
  tip.textContent = text;
  tip.hidden = !text;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
};
const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 100 ? v.toFixed(0) : v.toPrecision(3));
const value = (pixel, [low, high, from, to, log]) => {
  const v = low + ((pixel - from) / (to - from)) * (high - low);
  return log ? 10 ** v : v;
};
for (const svg of document.querySelectorAll("figure svg")) {
  const scale = svg.querySelector("desc");
  const numbers = scale && scale.textContent.split(" ").map(Number);
  svg.addEventListener("pointermove", (event) => {
    if (!numbers) {
      const part = event.target.closest("rect, g:has(> title)");
      const title = part && part.querySelector("title");
      show(event, title ? title.textContent : "");
      return;
    }
    const matrix = svg.getScreenCTM();
    const x = (event.clientX - matrix.e) / matrix.a;
    const rows = [];
    let at = null;
    svg.querySelectorAll("g.s:not(.off)").forEach((group) => {
      const points = group.querySelector("polyline").points;
      let best = null;
      for (const point of points) if (!best || Math.abs(point.x - x) < Math.abs(best.x - x)) best = point;
      if (!best) return;
      at = at === null || Math.abs(best.x - x) < Math.abs(at - x) ? best.x : at;
      const n = [...group.classList].find((name) => /^s\d/.test(name)).slice(1);
      const name = svg.closest("figure").querySelector(`.legend [data-n="${n}"]`).textContent;
      rows.push(`${name}: ${digits(value(best.y, numbers.slice(5)))}`);
    });
    show(event, at === null ? "" : [digits(value(at, numbers)), ...rows].join("\n"));
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
}
