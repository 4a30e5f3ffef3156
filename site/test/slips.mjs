// Slips of people, and browsers that lack something: it is said what is wrong, and nothing is lost.
import assert from "node:assert/strict";
import { open, says, visit } from "./browser.mjs";

async function fields(browser, address) {
    const page = await open(browser, address, { runs: 8 });
    const wrong = page.locator("#qdisc-1-wrong");
    await page.locator("#qdisc-1").fill("caek bandwidth {rate}");
    await wrong.waitFor({ state: "visible" });
    await says(page, "#qdisc-1-wrong", /caek.*not a queue discipline; did you mean `cake`\?$/);
    // The first one's repetitions do not hide it.
    await says(page, "#status", /8 runs/);
    await says(page, "#remark", /cannot be simulated/);
    await page.locator("#qdisc-1").fill("noqueue");
    await says(page, "#qdisc-1-wrong", /without a queue there is nothing to manage$/);
    await page.locator("#qdisc-1").fill("cake bandwidth");
    await says(page, "#qdisc-1-wrong", /must be followed by a RATE such as 20mbit$/);
    await page.locator("#qdisc-1").fill("cake bandwidth {rate}");
    await wrong.waitFor({ state: "hidden" });
    await page.locator("#qdisc-1").fill(`${await page.locator("#qdisc-0").inputValue()} `);
    await says(page, "#qdisc-1-wrong", /^`.*` is there twice; expected each discipline once$/);
    await says(page, "#status", /8 runs/);
    await page.locator("#qdisc-1").fill("cake bandwidth {rate}");
    await wrong.waitFor({ state: "hidden" });
    await page.locator("#down").fill("0");
    await says(page, "#down-wrong", /0\.25 to 1000/);
    await page.locator("#down").fill("");
    await says(page, "#down-wrong", /^expected a number$/);
    await page.getByLabel("Repetitions", { exact: true }).fill("3");
    await says(page, "#remark", /until the field in red is right/);
    assert.doesNotMatch(await page.evaluate(() => location.hash), /runs/);
    await page.locator("#down").fill("15");
    await page.locator("#down-wrong").waitFor({ state: "hidden" });
    await says(page, "#status", /3 runs/);
    await says(page, "#remark", /^$/);
    await page.context().close();
}

async function scenario(browser, address) {
    const page = await open(browser, address);
    const toml = page.locator("#toml");
    await page.locator("#own summary").click();
    const text = await toml.inputValue();
    assert.match(text, /down = "20mbit"/);
    // What is emptied to be written anew stays empty until one leaves it.
    await toml.fill("");
    assert.equal(await toml.inputValue(), "");
    const own = text.replace("20mbit", "21mbit");
    await toml.pressSequentially(own.slice(0, 60), { delay: 0 });
    assert.equal(await toml.inputValue(), own.slice(0, 60));
    await toml.fill(own);
    await says(page, "#verdict", /Calls stay clear/);
    assert.match(await page.evaluate(() => decodeURIComponent(location.hash)), /down\+=\+"21mbit"/);
    await toml.fill("");
    await toml.blur();
    assert.equal(await toml.inputValue(), text, "the fields' own");
    await toml.fill(text.replace("duration", "durations"));
    await page.locator("#toml-wrong").waitFor({ state: "visible" });
    await says(page, "#toml-wrong", /line 3, column 1.*durations/);
    await says(page, "#remark", /cannot be simulated/);
    await page.locator("#back").click();
    await page.locator("#toml-wrong").waitFor({ state: "hidden" });
    // What can be chosen again says what is there.
    const chosen = (selector) => page.locator(selector).evaluate((select) => select.selectedOptions[0]?.text);
    await page.locator("#example").selectOption("upload");
    await toml.press("End");
    await toml.press("Enter");
    assert.equal(await chosen("#example"), undefined, "another text is no example");
    await page.locator("#back").click();
    assert.equal(await chosen("#example"), "of the fields");
    await page.locator("#known").selectOption({ label: "Satellite, 50/5 Mbit/s" });
    assert.equal(await page.locator("#rtt").inputValue(), "600");
    await page.locator("#rtt").fill("60");
    assert.equal(await chosen("#known"), "as below");
    await page.locator("#rtt").fill("600");
    assert.equal(await chosen("#known"), "Satellite, 50/5 Mbit/s");
    await page.context().close();
}

async function addresses(browser, address) {
    const page = await open(browser, address, { hash: "#down=abc&up=7&uplaods=3&cc=nonsense" });
    await says(page, "#remark", /left out: down=abc, uplaods=3, cc=nonsense\.$/);
    assert.equal(await page.locator("#up").inputValue(), "7");
    const many = [1, 2, 3, 4, 5, 6, 7].map((limit) => `qdisc=pfifo+limit+${limit}00`).join("&");
    const full = await open(browser, address, { hash: `#runs=1&seconds=10&${many}` });
    await says(full, "#remark", /left out: qdisc=pfifo limit 700 \(more than 6 disciplines\)\.$/);
    await full.context().close();
    await page.locator("#up").fill("6");
    await says(page, "#remark", /^$/);
    for (const [hash, odd] of [["codle", "codle"], ["codel&target=abc&interval=&targte=5", "target=abc, interval=, targte=5"]]) {
        await page.goto(`${address}disciplines.html#${hash}`);
        await says(page, "#status", new RegExp(`left out: ${odd}\\.$`));
    }
    await page.locator("#set-target").press("ArrowRight");
    await says(page, "#status", /^$/);
    await page.context().close();
}

/** Who changes something twice does not wait for what the first change asked. */
async function haste(browser, address) {
    // Minutes of work, and a moment's.
    const hashes = ["#down=1000&up=1000&rtt=5&uploads=50&downloads=50&seconds=300&runs=2", "#down=10&up=2&seconds=10&runs=2"];
    const page = await open(browser, address, { runs: 8 });
    await page.evaluate(async (hashes) => {
        for (const hash of hashes) {
            const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
            location.hash = hash;
            await changed;
        }
    }, hashes);
    await says(page, "#status", /2 runs/);
    await page.context().close();
    const fresh = await visit(browser);
    await fresh.goto(address + hashes[0]);
    await says(fresh, "#status", /Simulating/);
    assert.equal(await fresh.locator("#verdict").textContent(), "", "nothing is said before there is anything");
    await fresh.context().close();
}

/** A browser that lets the address be changed no more for a while, as Safari does while one drags. */
async function refused(browser, address) {
    const page = await visit(browser);
    await page.addInitScript(() => {
        const change = history.replaceState.bind(history);
        history.replaceState = (...to) => {
            if (window.isTooOften) throw new DOMException("more than 100 times per 30 seconds", "SecurityError");
            change(...to);
        };
    });
    await page.goto(`${address}#runs=1&seconds=10`);
    await says(page, "#status", /^1 run$/);
    await page.evaluate(() => { window.isTooOften = true; });
    await page.locator("#down").fill("11");
    await page.locator("#down").fill("12");
    await says(page, "#asked", /Download rate: 12 Mbit/);
    await page.evaluate(() => { window.isTooOften = false; });
    await page.waitForFunction(() => location.hash === "#down=12&seconds=10&runs=1");
    await page.goto(`${address}disciplines.html#codel`);
    await page.waitForSelector("#set-target");
    await page.evaluate(() => { window.isTooOften = true; });
    await page.locator("#set-target").press("ArrowRight");
    await page.evaluate(() => { window.isTooOften = false; });
    await page.waitForFunction(() => location.hash.startsWith("#codel&target="));
    await page.context().close();
}

/** Asks before each run what is to happen to its worker, and does that. */
const SLIPS = `addEventListener("message", (event) => {
    if (event.data.kind !== "run") return;
    const request = new XMLHttpRequest();
    request.open("GET", "slip?" + new URLSearchParams({ seed: event.data.seed, words: event.data.words }), false);
    request.send();
    if (request.responseText === "") return;
    event.stopImmediatePropagation();
    if (request.responseText === "close") self.close();
    else if (request.responseText === "hang") for (;;);
    else throw new Error("injected");
});`;

/** A page whose workers ask `runs.slip` before each run of a seed and of words; `runs.asked` says how often they did. */
async function slipping(browser, address) {
    const worker = await (await fetch(`${address}worker.js`)).text();
    const runs = { asked: 0, slip: () => "" };
    const page = await visit(browser, { serviceWorkers: "block" }, () => undefined);
    await page.route("**/worker.js", (route) => route.fulfill({ contentType: "text/javascript", body: SLIPS + worker }));
    await page.route("**/slip?*", (route) => {
        runs.asked += 1;
        const of = new URL(route.request().url()).searchParams;
        return route.fulfill({ contentType: "text/plain", body: runs.slip(Number(of.get("seed")), of.get("words")) });
    });
    return { page, runs };
}

/** Workers break: a run is given to another one once, and what is missing then is told. */
async function breaking(browser, address) {
    const { page, runs } = await slipping(browser, address);
    for (const how of ["throw", "close"]) {
        runs.asked = 0;
        runs.slip = () => (runs.asked === 1 ? how : "");
        await page.goto(address);
        await says(page, "#status", /^8 runs: lines are medians/);
        assert.equal(runs.asked, 17, "of two disciplines eight each, and one again");
    }
    const go = page.locator("#stop");
    for (const [how, why] of [["throw", /; 1 broke off: .*injected$/], ["close", /; 1 broke off: .* without a word$/]]) {
        runs.slip = (seed) => (seed === 3 ? how : "");
        await page.reload();
        await says(page, "#status", new RegExp(`^7 of 8 runs${why.source}`));
        await says(page, "#verdict", /Calls stay clear/);
        runs.slip = () => "";
        assert.equal(await go.textContent(), "go on");
        await go.click();
        await says(page, "#status", /^8 runs/);
        await go.waitFor({ state: "hidden" });
    }
    // The first seed as well: of one discipline, with all that the others have done, and of all.
    runs.asked = 0;
    runs.slip = (seed, words) => (seed === 1 && words.startsWith("cake") ? "throw" : "");
    await page.reload();
    await says(page, "#status", /^8 of 8 runs; 1 broke off: .*injected$/);
    await says(page, "#remark", /^the simulation broke off: .*injected$/);
    assert.equal(await page.locator("#legend").innerText(), "pfifo limit 1000");
    runs.slip = () => "";
    await go.click();
    await says(page, "#status", /^8 runs: lines are medians/);
    await says(page, "#verdict", /Calls stay clear/);
    assert.equal(runs.asked, 18, "nothing is done again that was done");
    runs.slip = () => "throw";
    await page.reload();
    await says(page, "#remark", /^the simulation broke off: .*injected$/);
    await says(page, "#status", /^0 of 8 runs; 2 broke off: .*injected$/);
    runs.slip = () => "";
    await go.click();
    await says(page, "#status", /^8 runs: lines are medians/);
    await says(page, "#remark", /^$/);
    await page.context().close();
}

/** Workers hang: that is noticed by their silence, on a clock that is the test's. It goes on by itself,
 * too, so that only half of the patience is spent where nothing must happen. */
async function hanging(browser, address) {
    const { page, runs } = await slipping(browser, address);
    await page.clock.install();
    await page.addInitScript(() => {
        window.workers = { beats: 0, ended: new Set() };
        window.Worker = class extends Worker {
            constructor(...all) {
                super(...all);
                this.addEventListener("message", ({ data }) => (window.workers.beats += Number(data.kind === "beat")));
            }

            terminate() {
                window.workers.ended.add(this);
                super.terminate();
            }
        };
    });
    const ended = () => page.evaluate(() => window.workers.ended.size);
    // What a hanging worker has asked is never told as an event.
    const asked = async (times) => {
        while (runs.asked < times) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    // Once: another one does it.
    runs.slip = () => (runs.asked === 1 ? "hang" : "");
    await page.goto(`${address}#runs=1&qdisc=fq_codel`);
    await asked(1);
    await page.clock.runFor(30_000);
    assert.equal(await ended(), 0, "it may still answer");
    await page.clock.runFor(30_000);
    await says(page, "#status", /^1 run$/);
    assert.equal(runs.asked, 2);
    // Again and again: it is told.
    runs.asked = 0;
    runs.slip = (seed) => (seed === 3 ? "hang" : "");
    await page.goto(`${address}#runs=3&qdisc=cake`);
    for (const times of [3, 4]) {
        await asked(times);
        await says(page, "#status", /^2 of 3 runs$/);
        await page.clock.runFor(60_000);
    }
    await says(page, "#status", /^2 of 3 runs; 1 broke off: the worker was silent for 60 s$/);
    runs.slip = () => "";
    await page.locator("#stop").click();
    await says(page, "#status", /^3 runs/);
    // A run that takes minutes is heard, and while the machine sleeps nobody is waited for.
    await page.goto(`${address}#down=1000&up=1000&rtt=5&uploads=50&downloads=50&seconds=300&runs=1&qdisc=fq_codel`);
    const before = await ended();
    for (let half = 1; half <= 4; half++) {
        const beats = await page.evaluate(() => window.workers.beats);
        await page.waitForFunction((beats) => window.workers.beats > beats, beats);
        await page.clock.runFor(30_000);
        await page.clock.fastForward(3_600_000);
    }
    assert.equal(await ended(), before, "an honest run goes on");
    assert.equal(await page.locator("#status").textContent(), "Simulating…");
    await page.context().close();
}

async function old(browser, address) {
    const page = await visit(browser);
    await page.addInitScript(() => { delete window.WebAssembly; });
    for (const name of ["", "disciplines.html"]) {
        await page.goto(address + name);
        await says(page, "#status", /cannot be loaded: this browser has no WebAssembly/);
    }
    await page.goto(`${address}papers.html`);
    await page.locator("section > button.again").first().click();
    await says(page, "section > .setup[role=status]", /cannot be run here: this browser has no WebAssembly/);
    await page.context().close();
}

export async function slips(browser, address) {
    await fields(browser, address);
    await scenario(browser, address);
    await addresses(browser, address);
    await haste(browser, address);
    await refused(browser, address);
    await breaking(browser, address);
    await hanging(browser, address);
    await old(browser, address);
    console.log("wrong words, numbers, scenarios and addresses are told; nobody waits for what is past; what breaks is told");
}
