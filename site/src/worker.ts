// Runs one scenario after the other. One instance of the module, kept warm.
import { arms, initSync, judge, Lab, measure, type Picture } from "lab-wasm";
import { overTime } from "./figures";
import type { Ask, Head, Reply, Request, Shown, Summary } from "./messages";

/** Beats are told no more often. */
const PULSE_MS = 1000;

let told = 0;
/** Hears that simulated time goes on, and tells the page: it waits for a run as long as that takes. */
const watcher = {
    beat(): void {
        const now = performance.now();
        if (now - told < PULSE_MS) return;
        told = now;
        postMessage({ kind: "beat" } satisfies Reply);
    },
};

let parsed: { key: string; lab: Lab } | null = null;

function lab(text: string, name: string): Lab {
    const key = `${name}\n${text}`;
    if (parsed?.key !== key) {
        parsed?.lab.free();
        parsed = null;
        parsed = { key, lab: new Lab(text, name) };
    }
    return parsed.lab;
}

function run(request: Extract<Request, { kind: "run" }>): Reply {
    const { text, name, words, seed } = request;
    if (request.isFilm) {
        const made = lab(text, name).film(words, BigInt(seed), watcher);
        const film = { head: JSON.parse(made.head()) as Head, cells: made.cells(), windows: made.windows() };
        const shown = { ...read(made.picture()), film };
        made.free();
        return { kind: "shown", shown };
    }
    return { kind: "shown", shown: read(lab(text, name).run(words, BigInt(seed), watcher)) };
}

function say(ask: Ask): Reply {
    switch (ask.kind) {
        case "arms": return { kind: "said", said: String(arms(ask.id)) };
        case "measure": return { kind: "said", said: measure(ask.id, ask.arm, BigInt(ask.seed)) };
        case "judge": return { kind: "said", said: judge(ask.id, ask.runs) };
    }
}

function read(picture: Picture): Shown {
    const summary = picture.summary();
    const curves = overTime(JSON.parse(summary) as Summary);
    (["up", "down"] as const).forEach((name, way) => {
        const points = picture.queue(way);
        if (points.length > 0) curves.push({ kind: "queue", name, points });
    });
    const shown = { summary, interval: picture.interval(), curves };
    picture.free();
    return shown;
}

function buffers({ curves, film }: Shown): ArrayBufferLike[] {
    return [...curves.map((c) => c.points.buffer), ...(film ? [film.cells.buffer, film.windows.buffer] : [])];
}

/** Holds a lock as long as this worker lives, where the browser has locks, and says that it lives. */
function begin(life: string): void {
    const say = () => postMessage({ kind: "alive" } satisfies Reply);
    if (!navigator.locks) return say();
    // A browser that has locks may refuse them, where it keeps no data of a site.
    navigator.locks.request(life, () => {
        say();
        return new Promise(() => undefined);
    }).catch(say);
}

addEventListener("message", (event: MessageEvent<Request>) => {
    if (event.data.kind === "module") {
        initSync({ module: event.data.module });
        begin(event.data.life);
        return;
    }
    let reply: Reply;
    try {
        reply = event.data.kind === "run" ? run(event.data) : say(event.data);
    } catch (error) {
        // The module throws its errors as text; anything else has broken it.
        const isOurs = typeof error === "string";
        reply = { kind: isOurs ? "wrong" : "broken", why: isOurs ? error : String(error) };
    }
    const transfer = reply.kind === "shown" ? buffers(reply.shown) : [];
    postMessage(reply, { transfer: transfer as ArrayBuffer[] });
});
