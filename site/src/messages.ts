// What goes between the page and its workers, and what is in a summary (`simnel sim --json`).

/** One run: a scenario's text, a discipline for both directions (none: the text's own), a seed. */
export interface Job {
    text: string;
    name: string;
    words: string | undefined;
    seed: number;
    /** Frames are wanted as well. */
    isFilm?: true;
}

/** About a published experiment: how many arms it has, one run of one, verdicts of what all measured. */
export type Ask =
    | { kind: "arms"; id: string }
    | { kind: "measure"; id: string; arm: number; seed: number }
    | { kind: "judge"; id: string; runs: string };

/** A claim, judged by runs of the page. */
export interface Judged {
    id: string;
    claim: string;
    stated: string;
    simulated: string;
    holds: boolean | null;
}

export type Request =
    | { kind: "module"; module: WebAssembly.Module; life: string }
    | ({ kind: "run" } & Job)
    | Ask;

/** A series: milliseconds, Mbit/s or packets, one number an interval, NaN where there is none. Of a
 * share a number a percent: the delay that so many of the packets do not exceed. */
export interface Curve {
    kind: "delay" | "goodput" | "queue" | "share";
    name: string;
    points: Float64Array;
}

export interface Shown {
    /** The line of `simnel sim --json`. */
    summary: string;
    /** Seconds from point to point. */
    interval: number;
    curves: Curve[];
    film?: Film;
}

/** What a row of a film is about: a flow, or all of one kind of traffic. */
export interface Row {
    name: string;
    number: number | null;
    direction: "up" | "down";
    has_windows: boolean;
    /** The tier of its packets, up and down. */
    tiers: [number | null, number | null];
}

/** What the frames of a run tell of. */
export interface Head {
    interval_s: number;
    rows: Row[];
    /** Names of the tiers, up and down. */
    tiers: [string[], string[]];
    has_queues: [boolean, boolean];
}

/** A run, frame by frame. */
export interface Film {
    head: Head;
    /** For each frame, direction and row: packets in sparse queues, in others, dropped, marked. */
    cells: Uint32Array;
    /** For each frame and row: congestion windows in segments. */
    windows: Uint32Array;
}

export type Reply =
    | { kind: "alive" }
    | { kind: "beat" }
    | { kind: "shown"; shown: Shown }
    | { kind: "said"; said: string }
    | { kind: "wrong"; why: string }
    | { kind: "broken"; why: string };

/** What is wrong with a scenario or a discipline's words. */
export interface Fault {
    of: "scenario" | "words";
    what: string;
    expected: string;
    place: [number, number] | null;
}

/** Null in its place where nothing was timed. */
export interface Times {
    n: number;
    mean: number;
    p50: number;
    p95: number;
    p99: number;
    max: number;
}

/** A cumulative distribution: milliseconds, share that is not above, both ascending. */
export type Cdf = [number, number][];

/** Delays of what waits for answers, milliseconds beyond propagation. */
export interface Delays {
    added_ms: Times | null;
    added_cdf: Cdf;
    /** Means of what was sent, interval by interval; null where nothing arrived. */
    added_series_ms: (number | null)[];
}

export type Application =
    | { kind: "transfers"; finished: number; completion_ms: Times | null }
    | ({ kind: "ping"; sent: number; received: number } & Delays)
    | ({ kind: "datagrams"; sent: number; received: number; loss: number; mos: number | null } & Delays)
    | { kind: "web"; pages: number; load_ms: Times | null }
    | { kind: "dash"; chosen_mbps: number; stalls: number; stalled_s: number; startup_s: number | null }
    | { kind: "messages"; sent: number; received: number; latency_ms: Times | null }
    | { kind: "bursts"; completed: number; completion_ms: Times | null };

export interface Group {
    name: string;
    direction: "up" | "down";
    flows: number;
    goodput_mbps: number;
    /** Mbit/s, interval by interval. */
    series_mbps: number[];
    sojourn_cdf: Cdf;
    application?: Application;
}

export interface Line {
    direction: "up" | "down";
    mbps: number;
    utilisation: number | null;
    longest_queue: number;
    drops: number;
    marks: number;
}

export interface Summary {
    qdisc_up: string;
    qdisc_down: string;
    seed: number;
    /** Of all that happened: runs that are the same packet by packet have the same. */
    hash: string;
    simulated_s: number;
    lines: Line[];
    groups: Group[];
    bottleneck_packets: number;
}
