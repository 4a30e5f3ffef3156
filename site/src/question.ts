// What the page asks: a line, what runs on it, and the disciplines. It is all in the address.

export interface Question {
    /** Mbit/s. */
    down: number;
    up: number;
    /** Milliseconds. */
    rtt: number;
    /** The modem's or provider's buffer in packets: `{buffer}` in a discipline's words. */
    buffer: number;
    /** Hosts at home, which flows take in turn. */
    hosts: number;
    /** Flows. */
    uploads: number;
    downloads: number;
    calls: number;
    games: number;
    films: number;
    /** Web connections a second. */
    browsing: number;
    /** Peers of a swarm that is seeded. */
    swarm: number;
    /** Simulated seconds. */
    seconds: number;
    /** Repetitions, each with a seed of its own. */
    runs: number;
    /** Congestion control of uploads and downloads. */
    cc: string;
    disciplines: string[];
    /** A scenario's own text in place of all above but `runs` and `disciplines`; empty if none. */
    text: string;
}

export type NumberKey = {
    [K in keyof Question]: Question[K] extends number ? K : never;
}[keyof Question];

export interface Field {
    key: NumberKey;
    label: string;
    unit: string;
    min: number;
    max: number;
    step: number;
    /** A slider by factors and not by differences. */
    log?: true;
    group: "line" | "traffic" | "simulation";
}

export const FIELDS: Field[] = [
    { key: "down", label: "Download rate", unit: "Mbit/s", min: 0.25, max: 1000, step: 0.01, log: true, group: "line" },
    { key: "up", label: "Upload rate", unit: "Mbit/s", min: 0.25, max: 1000, step: 0.01, log: true, group: "line" },
    { key: "rtt", label: "Round-trip time", unit: "ms", min: 1, max: 800, step: 1, log: true, group: "line" },
    { key: "buffer", label: "Buffer of the line", unit: "packets", min: 10, max: 10000, step: 1, log: true, group: "line" },
    { key: "hosts", label: "Hosts at home", unit: "", min: 1, max: 20, step: 1, group: "line" },
    { key: "uploads", label: "Uploads", unit: "flows", min: 0, max: 50, step: 1, group: "traffic" },
    { key: "downloads", label: "Downloads", unit: "flows", min: 0, max: 50, step: 1, group: "traffic" },
    { key: "calls", label: "Calls", unit: "", min: 0, max: 5, step: 1, group: "traffic" },
    { key: "games", label: "Games", unit: "", min: 0, max: 5, step: 1, group: "traffic" },
    { key: "films", label: "Films (video)", unit: "", min: 0, max: 5, step: 1, group: "traffic" },
    { key: "browsing", label: "Browsing", unit: "pages/s", min: 0, max: 10, step: 0.5, group: "traffic" },
    { key: "swarm", label: "Swarm that is seeded", unit: "peers", min: 0, max: 50, step: 1, group: "traffic" },
    { key: "seconds", label: "Simulated time", unit: "s", min: 10, max: 300, step: 5, group: "simulation" },
    { key: "runs", label: "Repetitions", unit: "", min: 1, max: 50, step: 1, group: "simulation" },
];

export const CONTROLS = ["cubic", "reno", "bbr"];
export const MOST_DISCIPLINES = 6;

/** Disciplines to choose from; any other words of tc may be written. */
export const PRESETS: [string, string][] = [
    ["pfifo limit {buffer}", "the line's own buffer"],
    ["cake bandwidth {rate}", "CAKE"],
    ["fq_codel", "FQ-CoDel"],
    ["cake bandwidth {rate} diffserv4", "CAKE with four tiers"],
    ["codel", "CoDel"],
    ["pie", "PIE"],
    ["fq_pie", "FQ-PIE"],
    ["dualpi2", "DualPI2"],
    ["sfq", "SFQ"],
];

/** Lines that many have: down, up, RTT, buffer. */
export const LINES: [string, number, number, number, number][] = [
    ["DSL, 20/3 Mbit/s", 20, 3, 50, 1000],
    ["Cable, 100/10 Mbit/s", 100, 10, 30, 1000],
    ["Fibre, 300/100 Mbit/s", 300, 100, 15, 1000],
    ["Mobile, 30/8 Mbit/s", 30, 8, 60, 2000],
    ["Satellite, 50/5 Mbit/s", 50, 5, 600, 2000],
];

export function usual(): Question {
    return {
        down: 20, up: 3, rtt: 50, buffer: 1000, hosts: 3,
        uploads: 1, downloads: 2, calls: 1, games: 0, films: 0, browsing: 0, swarm: 0,
        seconds: 30, runs: 8, cc: "cubic",
        disciplines: [PRESETS[0]![0], PRESETS[1]![0]],
        text: "",
    };
}

/** What is wrong with a number, in words; null if nothing is. */
export function objection(field: Field, value: number): string | null {
    if (!Number.isFinite(value)) return "a number";
    if (value < field.min || value > field.max) return `${field.min} to ${field.max} ${field.unit}`.trim();
    if (field.step >= 1 && !Number.isInteger(value)) return "a whole number";
    return null;
}

/** The address's part after the #: only what is not as usual. */
export function toAddress(question: Question): string {
    const parts = new URLSearchParams();
    const normal = usual();
    for (const { key } of FIELDS) {
        if (question[key] !== normal[key]) parts.set(key, String(question[key]));
    }
    if (question.cc !== normal.cc) parts.set("cc", question.cc);
    if (question.disciplines.join("\n") !== normal.disciplines.join("\n")) {
        for (const words of question.disciplines) parts.append("qdisc", words);
    }
    if (question.text) parts.set("toml", question.text);
    return parts.toString();
}

/** The question of an address, and what makes no sense in it: that is as usual. */
export function fromAddress(address: string): { question: Question; odd: string[] } {
    const question = usual();
    const disciplines: string[] = [];
    const take = (key: string, text: string): boolean => {
        const field = FIELDS.find((field) => field.key === key);
        if (field) {
            const value = text.trim() === "" ? NaN : Number(text);
            if (objection(field, value) !== null) return false;
            question[field.key] = value;
        } else if (key === "cc" && CONTROLS.includes(text)) question.cc = text;
        else if (key === "qdisc" && disciplines.length < MOST_DISCIPLINES) disciplines.push(text);
        else if (key === "toml") question.text = text;
        else return false;
        return true;
    };
    const parts = [...new URLSearchParams(address.replace(/^#/, ""))];
    const odd = parts.flatMap(([key, text]) => {
        if (take(key, text)) return [];
        const isOneTooMany = key === "qdisc";
        return [`${key}=${text}${isOneTooMany ? ` (more than ${MOST_DISCIPLINES} disciplines)` : ""}`];
    });
    if (disciplines.length > 0) question.disciplines = disciplines;
    return { question, odd };
}

/** A rate in tc's words. */
function rate(mbps: number): string {
    return Number.isInteger(mbps) ? `${mbps}mbit` : `${Math.round(mbps * 1000)}kbit`;
}

/** The discipline's words as the simulator reads them. */
export function words(question: Question, discipline: string): string {
    return discipline.replaceAll("{buffer}", String(question.buffer));
}

/** The scenario as a file (scenarios/README.md). */
export function toToml(question: Question): string {
    if (question.text) return question.text;
    const { seconds } = question;
    const head = [
        "# A line of the page: what does it do to a packet that only wants to get through?",
        "",
        `duration = "${seconds}s"`,
        `warmup = "${Math.min(5, Math.round(seconds / 6))}s"`,
        `interval = "${seconds > 100 ? 500 : 200}ms"`,
        "",
        "[line]",
        `up = "${rate(question.up)}"`,
        `down = "${rate(question.down)}"`,
        `rtt = "${question.rtt}ms"`,
        "",
        "[[host]]",
        'name = "home"',
        'side = "home"',
        `count = ${question.hosts}`,
    ];
    const traffic = (name: string, kind: string, ...more: string[]) =>
        ["", "[[traffic]]", `name = "${name}"`, `kind = "${kind}"`, ...more];
    const flows = (name: string, direction: string, count: number) =>
        count === 0 ? [] : traffic(name, "bulk", `direction = "${direction}"`, `count = ${count}`,
            `cc = "${question.cc}"`, 'stagger = "500ms"');
    return [
        ...head,
        ...flows("upload", "up", question.uploads),
        ...flows("download", "down", question.downloads),
        ...(question.calls ? traffic("call", "voip", `count = ${question.calls}`) : []),
        ...(question.games ? traffic("game", "cbr", 'direction = "both"', 'rate = "96kbit"', "size = 200",
            `count = ${question.games}`) : []),
        ...(question.films ? traffic("film", "dash", `count = ${question.films}`) : []),
        ...(question.browsing ? traffic("browsing", "web", `rate = ${question.browsing}`) : []),
        ...(question.swarm ? traffic("swarm", "bittorrent", `count = ${question.swarm}`, 'stagger = "2s"') : []),
        ...traffic("probe", "ping"),
        "",
    ].join("\n");
}

function quoted(text: string): string {
    return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The same question for paper, where there are no fields: line, traffic and simulation. */
export function asked(question: Question): string {
    if (question.text !== "") return "A scenario of its own, as text.";
    const all = FIELDS.filter(({ key, group }) => group !== "traffic" || question[key] > 0);
    const values = all.map(({ key, label, unit }) => `${label}: ${question[key]} ${unit}`.trim());
    return `${values.join("; ")}; ${question.cc}.`;
}

/** The disciplines on a line that is there, as comments: what does not shape stands below htb then, so
 * that only rates which `simnel up` has itself are left out. */
function live(question: Question, disciplines: string[]): string[] {
    if (question.text !== "") return [];
    const without = disciplines.map((each) => each.replace(/^(\S+) (bandwidth|rate) \{rate\}/, "$1").trim().replace(/\s+/g, " "));
    const rates = `download ${rate(question.down)} upload ${rate(question.up)}`;
    const lines = without.filter((each) => !each.includes("{")).map((each) => `# simnel up eth0 ${rates} ${each}`);
    const head = "# One of them on a real line, as root: eth0 leads to the Internet, rates are a little below the line's.";
    return lines.length > 0 ? [head, ...lines] : [];
}

/** The same question for a shell. */
export function toCommand(question: Question): string {
    const text = toToml(question);
    // `simnel sim` takes each once.
    const once = new Set(question.disciplines.map((each) => words(question, each).trim().replace(/\s+/g, " ")));
    const disciplines = [...once].map((each) => `--qdisc ${quoted(each)}`);
    let end = "END";
    while (text.split("\n").includes(end)) end += "D";
    return [
        `cat >line.toml <<'${end}'`,
        text.trimEnd(),
        end,
        `simnel sim line.toml ${disciplines.join(" ")} --seed 1..${question.runs}`,
        ...live(question, [...once]),
        "",
    ].join("\n");
}
