// Runs one scenario after the other. One instance of the module, kept warm.
import { initSync, Lab } from "lab-wasm";
import type { Curve, Reply, Request } from "./messages";

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
    const picture = lab(text, name).run(words, BigInt(seed));
    const curves: Curve[] = [];
    for (let n = 0; n < picture.curves(); n++) {
        const kind = picture.kind(n) as Curve["kind"];
        curves.push({ kind, name: picture.name(n), points: picture.points(n) });
    }
    const shown = { summary: picture.summary(), interval: picture.interval(), curves };
    picture.free();
    return { kind: "shown", shown };
}

addEventListener("message", (event: MessageEvent<Request>) => {
    if (event.data.kind === "module") {
        initSync({ module: event.data.module });
        return;
    }
    let reply: Reply;
    try {
        reply = run(event.data);
    } catch (error) {
        // The module throws its errors as text; anything else has broken it.
        const isOurs = typeof error === "string";
        reply = { kind: isOurs ? "wrong" : "broken", why: isOurs ? error : String(error) };
    }
    const transfer = reply.kind === "shown" ? reply.shown.curves.map((c) => c.points.buffer) : [];
    postMessage(reply, { transfer: transfer as ArrayBuffer[] });
});
