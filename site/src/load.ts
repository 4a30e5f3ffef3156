// The simulator, for every page that runs it.

/** Fails with the reason why there is none here. */
export async function load(): Promise<WebAssembly.Module> {
    if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") {
        throw new Error("this browser has no WebAssembly or no workers, a newer one is needed");
    }
    const answer = await fetch("lab.wasm");
    if (!answer.ok) throw new Error(`lab.wasm: ${answer.status} ${answer.statusText}`);
    return WebAssembly.compile(await answer.arrayBuffer());
}
