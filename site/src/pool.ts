// Workers: as many at work as there are cores, and spare ones that are warm.
//
// A run cannot be interrupted from outside, so what its signal aborts is cancelled by ending the
// worker; a spare one takes its place at once, and new spare ones are made behind the first picture.
// A task whose worker breaks is given once to another one. A worker that ends without a word is noticed
// by the lock that it holds, where the browser grants locks (on HTTPS and localhost). One that neither
// ends nor answers is noticed by its silence: a scenario's run tells each second that simulated time
// goes on, so that one which takes long is never taken for it.
import type { Ask, Fault, Job, Reply, Request, Shown } from "./messages";

/** Nobody wants the result any more. */
export class Cancelled extends Error {}

/** Wrong text or words. */
export class Wrong extends Error {
    constructor(readonly fault: Fault) {
        super(fault.what);
    }
}

/** The simulation broke off, twice: the worker's fault, not the question's. */
export class Broken extends Error {
    constructor(readonly why: string) {
        super(`the simulation broke off: ${why}`);
    }
}

interface Task {
    request: Request;
    /** Has broken a worker. */
    isAgain?: true;
    /** Seconds since its worker was heard. */
    silent: number;
    resolve: (reply: Reply) => void;
    reject: (error: Error) => void;
}

const MOST_CORES = 8;
/** Of the page's own clock, which stands still where a machine sleeps, as workers do. */
const TICK_MS = 1000;
/** Seconds of silence after which a worker hangs. A scenario is heard each second, and each minute where the
 * machine is busy beyond use; a paper's runs are not heard before their end, 8 s at most on two cores. */
const PATIENCE_S = { run: 60, papers: 600 };

export class Pool {
    readonly cores = Math.max(1, Math.min(navigator.hardwareConcurrency || 2, MOST_CORES));
    private readonly module: WebAssembly.Module;
    private idle: Worker[] = [];
    /** Those that have begun, and are watched: others have their task when they are. */
    private readonly ready = new WeakSet<Worker>();
    private busy = new Map<Worker, Task>();
    private waiting: Task[] = [];
    /** Ticks while something runs. */
    private clock: number | undefined;

    constructor(module: WebAssembly.Module) {
        this.module = module;
        this.refill();
    }

    async run(job: Job, signal?: AbortSignal): Promise<Shown> {
        const reply = await this.send({ kind: "run", ...job }, signal);
        if (reply.kind !== "shown") throw new Error("the simulator answered something else");
        return reply.shown;
    }

    /** About a published experiment. */
    async ask(ask: Ask, signal?: AbortSignal): Promise<string> {
        const reply = await this.send(ask, signal);
        if (reply.kind !== "said") throw new Error("the simulator answered something else");
        return reply.said;
    }

    private send(request: Request, signal?: AbortSignal): Promise<Reply> {
        return new Promise((resolve, reject) => {
            if (signal?.aborted) return reject(new Cancelled());
            const task: Task = { request, silent: 0, resolve, reject };
            signal?.addEventListener("abort", () => this.cancel(task));
            this.waiting.push(task);
            this.next();
        });
    }

    /** Forgets a task that is not done. */
    private cancel(task: Task): void {
        this.waiting = this.waiting.filter((other) => other !== task);
        for (const [worker, at] of this.busy) {
            if (at !== task) continue;
            worker.terminate();
            this.busy.delete(worker);
        }
        task.reject(new Cancelled());
        // The same signal may have more to end: what waits begins behind it.
        queueMicrotask(() => this.next());
    }

    private next(): void {
        while (this.waiting.length > 0 && this.busy.size < this.cores) {
            const task = this.waiting.shift()!;
            const worker = this.idle.pop() ?? this.start();
            this.busy.set(worker, task);
            task.silent = 0;
            this.clock ??= window.setInterval(() => this.tick(), TICK_MS);
            if (this.ready.has(worker)) worker.postMessage(task.request);
        }
    }

    /** Whose worker has been silent for too long is given to another one. */
    private tick(): void {
        for (const [worker, task] of [...this.busy]) {
            const patience = PATIENCE_S[task.request.kind === "run" ? "run" : "papers"];
            task.silent += TICK_MS / 1000;
            if (task.silent < patience) continue;
            this.done(worker, { kind: "broken", why: `the worker was silent for ${patience} s` });
        }
        if (this.busy.size > 0) return;
        window.clearInterval(this.clock);
        this.clock = undefined;
    }

    /** Makes spare workers, where nobody waits for a first picture. */
    refill(): void {
        while (this.idle.length < 2 * this.cores) this.idle.push(this.start());
    }

    private start(): Worker {
        const worker = new Worker("worker.js", { type: "module" });
        const life = crypto.getRandomValues(new Uint32Array(4)).join("-");
        worker.postMessage({ kind: "module", module: this.module, life } satisfies Request);
        worker.onmessage = (event: MessageEvent<Reply>) => {
            const task = this.busy.get(worker);
            if (task) task.silent = 0;
            if (event.data.kind === "alive") this.begun(worker, life);
            else if (event.data.kind !== "beat") this.done(worker, event.data);
        };
        worker.onerror = (event) => {
            event.preventDefault();
            this.done(worker, { kind: "broken", why: event.message || "the worker cannot start" });
        };
        return worker;
    }

    /** A worker holds its lock, which is free when the worker is no more. */
    private begun(worker: Worker, life: string): void {
        this.ready.add(worker);
        navigator.locks?.request(life, () => {
            this.done(worker, { kind: "broken", why: "the worker ended without a word" });
        }).catch(() => undefined);
        const task = this.busy.get(worker);
        if (task) worker.postMessage(task.request);
    }

    private done(worker: Worker, reply: Reply): void {
        const task = this.busy.get(worker);
        this.busy.delete(worker);
        if (reply.kind === "broken") {
            worker.terminate();
            this.idle = this.idle.filter((other) => other !== worker);
        } else if (task) {
            this.idle.push(worker);
        }
        if (task) {
            if (reply.kind === "wrong") task.reject(wrong(reply.why));
            else if (reply.kind !== "broken") task.resolve(reply);
            else if (task.isAgain) task.reject(new Broken(reply.why));
            else this.waiting.unshift(Object.assign(task, { isAgain: true }));
            this.next();
        }
    }
}

/** Of scenarios errors are JSON, of experiments text. */
function wrong(why: string): Error {
    return why.startsWith("{") ? new Wrong(JSON.parse(why) as Fault) : new Error(why);
}
