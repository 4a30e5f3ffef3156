// What the page says of a run is true of it: who loses packets does not hear clearly, what one
// discipline lets nobody see another shows, and figures that read alike are said once.
import assert from "node:assert/strict";
import { open, says, visit } from "./browser.mjs";

const CAKE = "qdisc=cake+bandwidth+%7Brate%7D";

/** Nothing here is drawn by lot but PIE's drops. */
export const SEEDLESS = `duration = "10s"
[line]
up = "3mbit"
down = "20mbit"
[[traffic]]
kind = "bulk"
direction = "up"
`;

/** Where seeds make no difference there is no chance to be stated. */
async function alike(browser, address) {
    const page = await visit(browser);
    const ask = (...qdiscs) => page.goto(`${address}#${new URLSearchParams([["runs", "3"], ["toml", SEEDLESS], ...qdiscs.map((words) => ["qdisc", words])])}`);
    await ask("pfifo limit 100", "fq_codel");
    await says(page, "#status", /^3 runs\. The seeds make no difference here: all repetitions are the same run\.$/);
    await ask("pfifo limit 100", "pie");
    await says(page, "#status", /^3 runs: .*: another run lies between with a chance of 50 %; seeds make no difference to pfifo limit 100$/);
    await page.context().close();
}

/** A line that brings nothing gives no discipline less than another one. */
async function nothing(browser, address) {
    const page = await visit(browser);
    const dead = SEEDLESS.replace("[[traffic]]", 'loss = "100%"\n[[traffic]]') + '[[traffic]]\nkind = "dash"\n';
    await page.goto(`${address}#${new URLSearchParams([["runs", "1"], ["toml", dead]])}`);
    await says(page, "#verdict", /Upload keeps its rate: 0 Mbit\/s → 0 Mbit\/s/);
    await says(page, "#verdict", /The film is as sharp: 0 Mbit\/s → 0 Mbit\/s/);
    await page.context().close();
}

export async function telling(browser, address) {
    // A short queue adds no delay, and loses a third of a call.
    const short = await open(browser, address, { hash: `#uploads=20&runs=1&buffer=10&qdisc=pfifo+limit+%7Bbuffer%7D&${CAKE}` });
    const verdict = await short.locator("#verdict").innerText();
    assert.match(verdict, /Calls get better, and still suffer: \d+ ms and \d\d % lost → \d+ ms and [\d.]+ % lost/);
    assert.doesNotMatch(verdict, /Calls (are|stay) clear/);
    await short.locator("[aria-label='remove discipline 2']").click();
    await says(short, "#verdict", /Calls suffer: \d+ ms and \d\d % lost/);
    await short.context().close();
    // Less delay of the few that arrive is no better call.
    const full = await open(browser, address, { hash: `#down=0.25&up=0.25&rtt=800&uploads=50&downloads=50&calls=5&games=5&films=5&browsing=10&swarm=50&seconds=10&runs=1` });
    await says(full, "#verdict", /Calls suffer with both: [\d.]+ s and 8\d % lost → [\d.]+ s and 9\d % lost/);
    await full.context().close();
    const twice = await open(browser, address, { hash: "#runs=1&qdisc=cake&qdisc=+cake&qdisc=fq_codel" });
    const command = await twice.evaluate(() => new Promise((copied) => {
        Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => copied(text) } });
        document.querySelector("#copy-command").click();
    }));
    const live = "# simnel up eth0 download 20mbit upload 3mbit";
    assert.match(command, new RegExp("simnel sim line.toml --qdisc 'cake' --qdisc 'fq_codel' --seed 1..1\n"
        + `# One of them on a real line, .*\n${live} cake\n${live} fq_codel\n$`));
    await twice.context().close();
    const none = await open(browser, address, { hash: `#runs=2&games=1&qdisc=pfifo+limit+0&${CAKE}`, runs: 2 });
    await says(none, "#verdict", /Calls stay clear: nothing arrives → [\d.]+ ms/);
    await says(none, "#charts", /Added delay: call up.*pfifo limit 0: median none/);
    await none.locator("#all summary").click();
    await says(none, "#figures", /game up: lost/);
    const cells = await none.locator("#figures tbody td").allTextContents();
    assert.deepEqual(cells.filter((cell) => /^(.+) \1 to \1$/.test(cell)), [], "runs that read alike are said once");
    assert.equal(await none.locator("#figures th", { hasText: "game up: quality" }).count(), 0, "a game has none");
    await none.context().close();
    const bursts = await open(browser, address, { hash: "#downloads=2&seconds=20", runs: 8 });
    await says(bursts, "#charts", /Goodput: download down, Mbit\/s; bursts of single runs, up to \d+ Mbit\/s, are cut/);
    await says(bursts, "#status", /^8 runs: .*, bands the least and the greatest: another run lies between with a chance of 78 %$/);
    await bursts.context().close();
    await alike(browser, address);
    await nothing(browser, address);
    console.log("loss counts as delay does, and each discipline has its curves");
}
