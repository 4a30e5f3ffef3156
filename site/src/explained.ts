// What the pages of disciplines say: sentences, figures, sources. One template shows it all
// (disciplines.ts); words come from the core.

/** A setting that the figure lets one change: `{key}` in the words. */
export interface Setting {
    key: string;
    label: string;
    unit: string;
    min: number;
    max: number;
    step: number;
    value: number;
}

/** One flow of packets at a rate of its own (the core's `exhibit::Load`). */
export interface Load {
    name: string;
    mbps: number;
    /** The slider's end. */
    most?: number;
    bytes?: number;
    burst?: number;
    from_s?: number;
    until_s?: number;
    dscp?: number;
    ecn?: number;
    class?: number;
}

/** A row of the figure over time. */
export interface Strip {
    title: string;
    unit: string;
    /** A value of each load, or of the discipline: a key of its statistics or of its inside. */
    of: "delay" | "waiting" | "rate" | "p_drop" | { key: string; scale?: number }[];
    /** A setting that is drawn as a level. */
    level?: string;
    labels?: string[];
}

/** What is shown of the chosen moment. */
export type Moment = "lists" | "bins" | "none";

export interface Source {
    what: string;
    href?: string;
}

export interface Explained {
    /** In the address. */
    id: string;
    title: string;
    /** Names in `tc`'s language; the first one's words are listed. */
    names: string[];
    sentences: [string, string, string];
    words: string;
    /** Mbit/s of the line; zero where the discipline is the shaper. */
    line: number;
    seconds: number;
    settings: Setting[];
    loads: Load[];
    strips: Strip[];
    moment: Moment;
    /** Draws the chance of a drop by the packets that stand, so many at most. */
    chances?: number;
    /** What to try. */
    hint: string;
    sources: Source[];
}

const doi = (what: string, doi: string): Source => ({ what, href: `https://doi.org/${doi}` });
const rfc = (number: number, what: string): Source => ({
    what: `RFC ${number}: ${what}`, href: `https://www.rfc-editor.org/rfc/rfc${number}`,
});
const man = (name: string): Source => ({ what: `man tc-${name}` });

const SOURCE = {
    codel: doi("Nichols, Jacobson: Controlling Queue Delay. ACM Queue 10(5), 2012", "10.1145/2208917.2209336"),
    cake: doi("Høiland-Jørgensen, Täht, Morton: Piece of CAKE. LANMAN 2018", "10.1109/LANMAN.2018.8475045"),
    pie: doi("Pan et al.: PIE, a lightweight control scheme to address the bufferbloat problem. HPSR 2013", "10.1109/HPSR.2013.6602305"),
    drr: doi("Shreedhar, Varghese: Efficient fair queuing using deficit round-robin. IEEE/ACM Trans. Networking 4(3), 1996", "10.1109/90.502236"),
    drrpp: doi("MacGregor, Shi: Deficits for bursty latency-critical flows: DRR++. ICON 2000", "10.1109/ICON.2000.875803"),
    red: doi("Floyd, Jacobson: Random early detection gateways for congestion avoidance. IEEE/ACM Trans. Networking 1(4), 1993", "10.1109/90.251892"),
    blue: doi("Feng, Shin, Kandlur, Saha: The BLUE active queue management algorithms. IEEE/ACM Trans. Networking 10(4), 2002", "10.1109/TNET.2002.801399"),
    lds: { what: "Menth, Mehl, Veith: Deficit Round Robin with Limited Deficit Savings (DRR-LDS) for Fairness among TCP Users, section 3" },
};

const delay: Strip = { title: "Delay", unit: "ms", of: "delay" };
const waiting: Strip = { title: "Packets that wait", unit: "packets", of: "waiting" };
const rate: Strip = { title: "Sent", unit: "Mbit/s", of: "rate" };

const ms = (key: string, label: string, value: number, max: number, step = 1): Setting =>
    ({ key, label, unit: "ms", min: step, max, step, value });
const packets = (key: string, label: string, value: number, max: number): Setting =>
    ({ key, label, unit: "packets", min: 5, max, step: 5, value });
const mbit = (key: string, label: string, value: number, max: number): Setting =>
    ({ key, label, unit: "Mbit/s", min: 1, max, step: 0.5, value });

/** Two that fill the line, and a call. */
const THREE: Load[] = [
    { name: "upload 1", mbps: 5.4, most: 20 },
    { name: "upload 2", mbps: 5.4, most: 20, from_s: 0.5 },
    { name: "call", mbps: 0.1, most: 4, bytes: 214 },
];

export const EXPLAINED: Explained[] = [
    {
        id: "cake", title: "CAKE: shaper and tiers", names: ["cake"],
        sentences: [
            "CAKE is a shaper: it sends a little slower than the line, so that the queue stands here and not in the modem.",
            "Packets go to tiers by the mark of their traffic class; each tier has priority up to a share of the rate, its threshold, and no more.",
            "Within a tier hosts share, then flows, each flow in a queue of its own under COBALT.",
        ],
        words: "cake bandwidth {bandwidth}mbit diffserv4", line: 0, seconds: 4,
        settings: [mbit("bandwidth", "Rate of the shaper", 10, 20)],
        loads: [
            { name: "backup (CS1)", mbps: 8, most: 20, dscp: 8 },
            { name: "download", mbps: 8, most: 20, from_s: 0.5 },
            { name: "video (AF41)", mbps: 4, most: 20, dscp: 34, from_s: 1 },
            { name: "voice (EF)", mbps: 0.5, most: 20, bytes: 214, dscp: 46, from_s: 1.5 },
        ],
        strips: [rate, delay, waiting], moment: "lists",
        hint: "Raise voice above a quarter of the rate, its threshold: who claims priority for too much loses it.",
        sources: [SOURCE.cake, man("cake")],
    },
    {
        id: "cobalt", title: "COBALT: CoDel and BLUE", names: ["cobalt"],
        sentences: [
            "COBALT is CAKE's active queue management: CoDel for senders that answer to drops, BLUE for those that do not.",
            "Its CoDel counts down in the steps in which it counted up, and so does not begin anew after each success.",
            "When the queue overflows, BLUE's probability rises; it drops at random until the queue is empty again, and then falls slowly.",
        ],
        words: "cobalt limit {limit} target {target}ms interval {interval}ms", line: 10, seconds: 6,
        settings: [packets("limit", "Limit", 100, 400), ms("target", "Target", 5, 50), ms("interval", "Interval", 100, 500, 10)],
        loads: [{ name: "flood", mbps: 14, most: 30, until_s: 4 }, { name: "later", mbps: 2, most: 30, from_s: 4 }],
        strips: [
            { ...delay, level: "target" }, waiting,
            { title: "CoDel's count", unit: "", of: [{ key: "count" }] },
            { title: "BLUE's probability", unit: "%", of: [{ key: "p_drop", scale: 100 }] },
        ],
        moment: "none",
        hint: "With 11 Mbit/s CoDel is enough, and BLUE never wakes.",
        sources: [{ ...SOURCE.cake, what: `${SOURCE.cake.what}, section II.C` }, rfc(8289, "CoDel")],
    },
    {
        id: "codel", title: "CoDel: the control law", names: ["codel"],
        sentences: [
            "CoDel looks at how long packets have waited, and not at how many there are.",
            "Once every packet of a whole interval has waited longer than target, the queue stands, and CoDel drops one as it leaves.",
            "The next drop follows after interval ÷ √count, count being the drops so far, until the delay is below target.",
        ],
        words: "codel target {target}ms interval {interval}ms", line: 10, seconds: 4,
        settings: [ms("target", "Target", 5, 50), ms("interval", "Interval", 100, 500, 10)],
        loads: [{ name: "flow", mbps: 10.6, most: 20, until_s: 3 }],
        strips: [{ ...delay, level: "target" }, { title: "Count", unit: "", of: [{ key: "count" }] }, waiting],
        moment: "none",
        hint: "Drops come 100, 71, 58, 50 ms after each other: interval ÷ √1, √2, √3, √4. Double the interval, and all of them double.",
        sources: [{ ...SOURCE.codel }, rfc(8289, "Controlled Delay Active Queue Management, section 5")],
    },
    {
        id: "fq_codel", title: "FQ-CoDel: DRR++ and its lists", names: ["fq_codel"],
        sentences: [
            "Each flow has a queue of its own, found by a hash, and each queue its own CoDel.",
            "Deficit round robin shares the line by bytes: a queue sends while its deficit is above zero, then earns a quantum and goes to the end.",
            "DRR++ has two lists: a flow that was idle stands in the list of new (sparse) ones, which goes first until its quantum is spent.",
        ],
        words: "fq_codel quantum {quantum} limit 1000", line: 10, seconds: 2,
        settings: [{ key: "quantum", label: "Quantum", unit: "bytes", min: 314, max: 9014, step: 50, value: 1514 }],
        loads: THREE, strips: [delay, rate, waiting], moment: "lists",
        hint: "Raise the call's rate: at a third of the line it is no longer sparse, and waits as the others do.",
        sources: [rfc(8290, "FlowQueue-CoDel"), SOURCE.drr, SOURCE.drrpp],
    },
    {
        id: "savings", title: "Savings: DRR-LDS", names: ["fq_codel"],
        sentences: [
            "In deficit round robin a flow loses its deficit when its queue runs empty, and who sends in bursts gets less than a fair share.",
            "With savings, an empty queue goes on collecting up to a limit while others are served.",
            "A flow with savings is eligible: its next burst is sent at once, packet by packet, until they are spent.",
        ],
        words: "fq_codel savings {savings}kb", line: 10, seconds: 3,
        settings: [{ key: "savings", label: "Savings", unit: "kB", min: 2, max: 100, step: 1, value: 40 }],
        loads: [
            { name: "upload", mbps: 12, most: 20 },
            { name: "pictures, 20 packets at once", mbps: 2, most: 6, burst: 20 },
        ],
        strips: [delay, waiting, rate], moment: "lists",
        hint: "Savings of 2 kB are almost none: a burst then waits for its turns. With 40 kB it is through at once.",
        sources: [SOURCE.lds],
    },
    {
        id: "drr", title: "DRR: deficit round robin", names: ["drr"],
        sentences: [
            "Queues take turns; in each turn a queue earns a quantum of bytes.",
            "A packet is sent once its queue has saved up for it, so that large packets do not buy a larger share.",
            "When the buffer is full, the longest queue gives up its oldest packet.",
        ],
        words: "drr flow quantum {quantum} buffer {buffer}", line: 10, seconds: 2,
        settings: [
            { key: "quantum", label: "Quantum", unit: "bytes", min: 314, max: 9014, step: 50, value: 1514 },
            packets("buffer", "Buffer", 100, 500),
        ],
        loads: [
            { name: "large packets", mbps: 8, most: 20 },
            { name: "small packets", mbps: 8, most: 20, bytes: 314 },
            { name: "call", mbps: 0.1, most: 4, bytes: 214 },
        ],
        strips: [rate, delay, waiting], moment: "none",
        hint: "Packets of 314 bytes and of 1,514 get the same rate, whatever the quantum.",
        sources: [SOURCE.drr, SOURCE.lds, man("drr")],
    },
    {
        id: "pie", title: "PIE: a probability that follows delay", names: ["pie"],
        sentences: [
            "PIE drops arrivals at random, with one probability for all of them.",
            "Each tupdate the probability moves by alpha × (delay − target) + beta × (delay − delay before): a proportional-integral controller.",
            "Small probabilities move in small steps, and a burst passes untouched while an allowance lasts.",
        ],
        words: "pie target {target}ms tupdate {tupdate}ms", line: 10, seconds: 12,
        settings: [ms("target", "Target", 15, 100), ms("tupdate", "Update time", 15, 100)],
        loads: [{ name: "flow", mbps: 12, most: 30, until_s: 9 }, { name: "later", mbps: 4, most: 30, from_s: 9 }],
        strips: [{ ...delay, level: "target" }, { title: "Probability of a drop", unit: "%", of: [{ key: "prob", scale: 100 }] }, waiting],
        moment: "none",
        hint: "A sixth of 12 Mbit/s must go. The probability settles above that: after a drop the next is held off (derandomisation), so fewer fall than it says.",
        sources: [SOURCE.pie, rfc(8033, "Proportional Integral Controller Enhanced, section 4.2")],
    },
    {
        id: "fq_pie", title: "FQ-PIE", names: ["fq_pie"],
        sentences: [
            "The queues and the scheduler are those of FQ-CoDel: a queue a flow, DRR++ between them.",
            "Each queue has a probability of its own, which PIE's controller moves by the delay in that queue.",
            "A flow that sends no more than its share is never dropped.",
        ],
        words: "fq_pie target {target}ms", line: 10, seconds: 6,
        settings: [ms("target", "Target", 15, 100)],
        loads: THREE, strips: [{ ...delay, level: "target" }, rate, waiting], moment: "lists",
        hint: "Two flows of 5.4 Mbit/s share 10; lower one to 4, and neither loses packets; raise the other, and it alone does.",
        sources: [SOURCE.pie, man("fq_pie")],
    },
    {
        id: "dualpi2", title: "DualPI2: two queues, coupled", names: ["dualpi2"],
        sentences: [
            "Packets of senders that answer each mark (L4S, the codepoint ECT(1)) have a queue of their own, marked above 1 ms.",
            "All others stand in the classic queue, whose probability a PI controller moves and then squares.",
            "The base probability times a factor of two also marks the L4S queue, so that both kinds of sender share the line.",
        ],
        words: "dualpi2 target {target}ms", line: 10, seconds: 6,
        settings: [ms("target", "Target of the classic queue", 15, 100)],
        loads: [
            { name: "classic", mbps: 9, most: 20 },
            { name: "L4S", mbps: 3, most: 20, ecn: 1, from_s: 2 },
        ],
        strips: [{ ...delay, level: "target" }, { title: "Base probability", unit: "%", of: [{ key: "prob", scale: 100 }] }, rate],
        moment: "none",
        hint: "The base probability is near a half, so its square drops a quarter of the classic packets. The L4S flow here does not answer its marks.",
        sources: [rfc(9332, "Dual-Queue Coupled AQM, section 2"), doi("De Schepper et al.: PI2. CoNEXT 2016", "10.1145/2999572.2999578")],
    },
    {
        id: "red", title: "RED: a chance by the average queue", names: ["red"],
        sentences: [
            "RED (random early detection) follows the average length of its queue, so that a short burst changes little.",
            "Below min nothing is dropped; from there to max the chance rises in a line to the highest probability; above max all is dropped.",
            "Drops are spaced evenly, by counting the packets since the last one.",
        ],
        words: "red limit 400kb min {min}kb max {max}kb avpkt 1000 probability {probability} bandwidth 10mbit", line: 10, seconds: 6,
        settings: [
            { key: "min", label: "min", unit: "kB", min: 5, max: 60, step: 1, value: 20 },
            { key: "max", label: "max", unit: "kB", min: 70, max: 150, step: 1, value: 80 },
            { key: "probability", label: "Highest probability", unit: "", min: 0.01, max: 0.5, step: 0.01, value: 0.1 },
        ],
        loads: [{ name: "flow", mbps: 10.6, most: 15, until_s: 4 }, { name: "burst of 40 packets", mbps: 0, most: 2, burst: 40 }],
        strips: [{ title: "Average queue", unit: "kB", of: [{ key: "average_kb" }] }, waiting, delay],
        moment: "none", chances: 120,
        hint: "The second curve is measured on the code itself: so many of 3,000 arrivals were dropped while so many packets stood. Spaced evenly, drops come nearly twice as often as the probability says: 18 of 100 at max for 0.1.",
        sources: [SOURCE.red, { what: "Floyd, Gummadi, Shenker: Adaptive RED, 2001" }, man("red")],
    },
    {
        id: "blue", title: "BLUE: learning from overflow and idleness", names: ["blue"],
        sentences: [
            "BLUE has one probability for all arrivals, and no model of the queue.",
            "It rises by a step when the queue overflows, or stands above a threshold, and falls by a smaller one when the line is idle.",
            "Between two steps a freeze time passes, in which the last one can take effect.",
        ],
        words: "blue limit {limit} increment {increment} decrement {decrement} freeze {freeze}ms", line: 10, seconds: 10,
        settings: [
            packets("limit", "Limit", 50, 300),
            { key: "increment", label: "Step up", unit: "", min: 0.005, max: 0.1, step: 0.005, value: 0.02 },
            { key: "decrement", label: "Step down", unit: "", min: 0.0005, max: 0.05, step: 0.0005, value: 0.01 },
            ms("freeze", "Freeze time", 100, 500, 10),
        ],
        loads: [{ name: "flow", mbps: 13, most: 30, until_s: 8 }, { name: "later", mbps: 4, most: 30, from_s: 8 }],
        strips: [{ title: "Probability of a drop", unit: "%", of: [{ key: "prob", scale: 100 }] }, waiting, delay],
        moment: "none",
        hint: "13 Mbit/s on a line of 10: the probability rises until three thirteenths are dropped, and the queue empties.",
        sources: [SOURCE.blue],
    },
    {
        id: "sfb", title: "SFB: BLUE in many bins", names: ["sfb"],
        sentences: [
            "Stochastic fair BLUE hashes each flow into one bin in each of eight levels of sixteen; a bin learns as BLUE does.",
            "A packet is dropped with the least probability of its bins: who answers shares no bin with the greedy on at least one level.",
            "A flow all of whose bins say one does not answer, and goes to the penalty box, a slow token bucket.",
        ],
        words: "sfb increment {increment} decrement 0.0005 target {target} max {max} penalty_rate {penalty}", line: 10, seconds: 5,
        settings: [
            { key: "increment", label: "Step up", unit: "", min: 0.0005, max: 0.02, step: 0.0005, value: 0.002 },
            packets("target", "Packets in a bin at which it rises", 20, 60),
            packets("max", "Packets in a bin at most", 65, 120),
            { key: "penalty", label: "Penalty box", unit: "packets/s", min: 10, max: 500, step: 10, value: 10 },
        ],
        loads: [
            { name: "flood", mbps: 12, most: 30 },
            { name: "flow 1", mbps: 2, most: 12 },
            { name: "flow 2", mbps: 2, most: 12 },
        ],
        strips: [rate, { title: "Highest and mean probability of a bin", unit: "%", of: [{ key: "maxprob", scale: 100 }, { key: "avgprob", scale: 100 }], labels: ["highest", "mean"] }, waiting],
        moment: "bins",
        hint: "Move the moment: the flood's eight bins fill up, one in each level, and all others stay pale.",
        sources: [doi("Feng, Kandlur, Saha, Shin: Stochastic fair BLUE. INFOCOM 2001", "10.1109/INFCOM.2001.916648"), man("sfb")],
    },
    {
        id: "sfq", title: "SFQ: stochastic fairness", names: ["sfq"],
        sentences: [
            "Flows are hashed to slots that take turns, a packet or a quantum at a time.",
            "When the queue is full, the slot with most packets loses one.",
            "With perturb the hash changes now and then, so that flows that share a slot do not share it for ever.",
        ],
        words: "sfq limit {limit}", line: 10, seconds: 2,
        settings: [packets("limit", "Limit", 125, 125)],
        loads: THREE, strips: [rate, delay, waiting], moment: "none",
        hint: "The queue is full all the time: fair, but without active queue management a long delay stays for the uploads.",
        sources: [doi("McKenney: Stochastic fairness queueing. INFOCOM 1990", "10.1109/INFCOM.1990.91316"), man("sfq")],
    },
    {
        id: "tbf", title: "TBF: the token bucket", names: ["tbf"],
        sentences: [
            "Tokens, one for each byte, flow into a bucket at the rate; a packet leaves when there are enough of them.",
            "A full bucket lets a burst pass at once; after it packets leave at the rate.",
            "Any discipline can stand behind it, and decides which packet is the next.",
        ],
        words: "tbf rate {rate}mbit burst {burst}kb latency 500ms", line: 0, seconds: 3,
        settings: [mbit("rate", "Rate", 5, 20), { key: "burst", label: "Burst", unit: "kB", min: 2, max: 100, step: 1, value: 30 }],
        loads: [{ name: "bursts of 40 packets", mbps: 1, most: 10, burst: 40 }],
        strips: [waiting, rate, delay], moment: "none",
        hint: "Of a burst of 60 kB half passes at once with a bucket of 30 kB; make it 60.",
        sources: [man("tbf")],
    },
    {
        id: "htb", title: "HTB: borrowing in a hierarchy", names: ["htb"],
        sentences: [
            "Each class has a rate of its own by right, and a ceil that it never exceeds.",
            "What others leave it borrows from its parent, by turns of its quantum.",
            "Among those that borrow, a lower priority goes first.",
        ],
        words: "htb class 1:1 rate 10mbit class 1:10 parent 1:1 rate {first}mbit ceil {ceil}mbit class 1:20 parent 1:1 rate {second}mbit ceil 10mbit",
        line: 0, seconds: 3,
        settings: [mbit("first", "Rate of the first", 2, 9), mbit("ceil", "Ceil of the first", 10, 10), mbit("second", "Rate of the second", 6, 9)],
        loads: [
            { name: "first", mbps: 12, most: 20, class: 0x10 },
            { name: "second", mbps: 12, most: 20, class: 0x20, from_s: 1, until_s: 2 },
        ],
        strips: [rate, waiting, delay], moment: "none",
        hint: "Alone the first borrows all; when the second comes, each has its rate and a part of what is left.",
        sources: [{ what: "Devera: HTB, 2002" }, man("htb")],
    },
    {
        id: "fifo", title: "A FIFO: no management at all", names: ["pfifo", "bfifo", "pfifo_head_drop"],
        sentences: [
            "First in, first out: one queue for all, a drop only when it is full.",
            "A sender that fills it makes all others wait for the whole of it.",
            "This is what modems and providers mostly have, and what bufferbloat is made of.",
        ],
        words: "pfifo limit {limit}", line: 10, seconds: 2,
        settings: [packets("limit", "Limit", 200, 1000)],
        loads: THREE.map((load) => ({ ...load, mbps: load.bytes ? load.mbps : 8 })), strips: [delay, rate, waiting], moment: "none",
        hint: "The call sends 100 kbit/s, and waits as long as the uploads do.",
        sources: [man("pfifo")],
    },
    {
        id: "line", title: "A line, and delay", names: ["line", "delay"],
        sentences: [
            "The discipline line is a line: a rate with its framing, a queue, and the time that a bit is on its way.",
            "The discipline delay holds each packet for a while, with jitter if told to.",
            "Both are for experiments, before or behind what is looked at.",
        ],
        words: "line rate {rate}mbit delay {delay}ms", line: 0, seconds: 1,
        settings: [mbit("rate", "Rate", 10, 20), ms("delay", "Delay", 10, 100)],
        loads: [{ name: "flow", mbps: 8, most: 20 }],
        strips: [delay, rate, waiting], moment: "none",
        hint: "Packets that are on their way count as waiting here.",
        sources: [],
    },
];
