//! The page in a real browser: headless Chromium, where there is one; says loudly if there is not.
//!
//! A copy of the page carries a script that does what a reader does: it switches series and themes,
//! and points at a figure. It tells the page around it what it saw, which Chromium prints.
//! Screenshots are decoded and looked at: colours of the series, light and dark, nothing blank.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use resvg::tiny_skia::Pixmap;
use serde_json::Value;
use simnel_lab::experiments::paper::arms::{Kind, Reading};
use simnel_lab::experiments::paper::{self, Options, Outcome, Watch};
use simnel_lab::figures::styles;
use simnel_lab::report;

/// A phone and a desk.
const WIDTHS: [u32; 2] = [390, 1280];
/// A browser on a busy machine may take so long.
const PATIENCE: Duration = Duration::from_secs(180);

/// Lines, dots and boxes; and another arm's column, which differs.
fn report(directory: &Path) -> Vec<Outcome> {
    let words = ["A1", "A6", "C2"].map(String::from);
    let experiments = paper::select(&words).expect("they exist");
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, step: &|| {} };
    let options = Options { repetitions: Some(1), keep: true, series: false };
    let outcomes = paper::run(&experiments, &options, &watch);
    let filtered = outcomes.iter().find(|outcome| outcome.experiment.id == "A6").expect("it ran");
    let mut live = Reading::new(Kind::Live, "A6");
    live.measures = filtered.measures.clone();
    let download = paper::Measure { arm: "none".into(), quantity: "down".into() };
    live.measures.derive(download, vec![1.0]);
    let judge = |claim: paper::Claim| claim.judge(&live.measures);
    live.verdicts = paper::claims("A6").into_iter().map(judge).collect();
    live.refused = vec![("x<y".into(), "a & b".into())];
    let page = directory.join("index.html");
    let text = report::write(&outcomes, &[live], &page, false).expect("a writable directory");
    std::fs::write(&page, text).expect("a page");
    outcomes
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|directory| names.map(|name| directory.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        eprintln!(
            "NOT RUN: the page was not opened, there is no Chromium (apt-get install chromium)"
        );
    }
    found
}

/// Runs the browser once; what it wrote to standard output, and its log.
fn browse(program: &Path, directory: &Path, width: u32, page: &Path, more: &[&str]) -> [String; 2] {
    let profile = tempfile::tempdir_in(directory).expect("a directory");
    let (dom, log) = (profile.path().join("dom"), profile.path().join("log"));
    let file = |path: &Path| Stdio::from(fs::File::create(path).expect("a file"));
    let mut browser = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--no-first-run", "--enable-logging=stderr", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},3000"))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(file(&dom))
        .stderr(file(&log))
        .spawn()
        .expect("Chromium starts");
    let deadline = Instant::now() + PATIENCE;
    while browser.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            browser.kill().expect("a child");
            panic!("Chromium did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    [dom, log].map(|path| String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned())
}

const LISTEN: &str = r#"<script>
window.seen = [];
addEventListener("error", (event) => seen.push(event.message));
const before = console.error;
console.error = (...words) => { seen.push(words.join(" ")); before(...words); };
</script>"#;

const READ: &str = r##"<script>
addEventListener("load", () => {
  const shown = (part) => getComputedStyle(part).display !== "none";
  const result = { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth };
  const figures = [...document.querySelectorAll("figure")];
  result.figures = figures.length;
  result.drawn = figures.filter((figure) => {
    const box = figure.querySelector("svg").getBoundingClientRect();
    const visible = figure.checkVisibility();
    return !visible || (box.width > 200 && box.height > 100);
  }).length;
  result.toggles = 0;
  result.stuck = 0;
  for (const button of document.querySelectorAll(".legend button")) {
    const parts = [...button.closest("figure").querySelectorAll(".s" + button.dataset.n)];
    button.click();
    const off = parts.every((part) => !shown(part));
    const said = button.getAttribute("aria-pressed") === "false";
    button.click();
    if (parts.length && off && said && parts.every(shown)) result.toggles++; else result.stuck++;
  }
  const ground = () => getComputedStyle(document.body).backgroundColor;
  const theme = document.getElementById("theme");
  result.grounds = [ground()];
  for (let n = 0; n < 2; n++) { theme.click(); result.grounds.push(ground()); }
  result.tips = figures.filter((figure) => figure.checkVisibility()).map((figure) => {
    const svg = figure.querySelector("svg");
    const at = svg.querySelector("desc") ? svg : svg.querySelector(".s rect");
    const box = at.getBoundingClientRect();
    const [clientX, clientY] = [box.x + box.width / 2, box.y + box.height / 2];
    at.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
    const tip = document.querySelector(".tip");
    const edge = tip.getBoundingClientRect();
    return tip.hidden || edge.right > innerWidth ? "" : tip.textContent;
  });
  result.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  result.anchors = [...document.querySelectorAll("nav a")].every((link) =>
    document.querySelector(link.getAttribute("href")));
  result.errors = seen;
  parent.postMessage(JSON.stringify(result), "*");
});
</script>"##;

/// The page in a frame of the width of a phone, which no window of a desk's browser has. WIDTH and
/// PAGE stand for the width and the file's name.
const FRAME: &str = r#"<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
addEventListener("message", (event) => {
  const note = document.createElement("script");
  note.type = "application/json";
  note.id = "seen";
  note.textContent = event.data;
  document.body.append(note);
});
</script><iframe src="PAGE" style="width:WIDTHpx;height:3000px;border:0"></iframe></body>"#;

/// Values that the script of the page's copy saw.
fn seen(dom: &str) -> Value {
    let (_, rest) = dom.split_once("id=\"seen\">").expect("the script came to its end");
    let (json, _) = rest.split_once("</script>").expect("the script element ends");
    serde_json::from_str(json).expect("the script wrote JSON")
}

#[test]
fn a_reader_can_use_the_page_on_a_phone_and_on_a_desk() {
    let directory = tempfile::tempdir().expect("a directory");
    let outcomes = report(directory.path());
    let page = directory.path().join("index.html");
    let text = fs::read_to_string(&page).expect("the page");
    files_are_complete(directory.path(), &text);
    for outcome in &outcomes {
        for verdict in &outcome.verdicts {
            let claim = &verdict.claim.text;
            let claim = claim.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert!(text.contains(&claim), "{} is not on the page", verdict.claim.id);
        }
    }
    assert!(text.contains("The arms disagree") && text.contains("none/down"), "the ledger's line");
    let Some(program) = chromium() else { return };
    let copy = directory.path().join("copy.html");
    let watched = text.replacen("<head>", &format!("<head>{LISTEN}"), 1);
    fs::write(&copy, watched.replacen("</body>", &format!("{READ}</body>"), 1)).expect("a copy");
    for width in WIDTHS {
        let more = ["--dump-dom", "--virtual-time-budget=4000"];
        let frame = directory.path().join("frame.html");
        let outer = FRAME.replace("WIDTH", &width.to_string()).replace("PAGE", "copy.html");
        fs::write(&frame, outer).expect("a frame");
        let [dom, log] = browse(&program, directory.path(), width, &frame, &more);
        let seen = seen(&dom);
        let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "{console:?}");
        assert_eq!(seen["errors"], serde_json::json!([]));
        assert_eq!(seen["width"], width);
        assert!(seen["overflow"].as_i64().is_some_and(|over| over <= 0), "{width}: {seen}");
        assert!(seen["figures"].as_u64() > Some(5) && seen["figures"] == seen["drawn"], "{seen}");
        assert!(seen["toggles"].as_u64() > Some(8) && seen["stuck"] == 0, "{seen}");
        let grounds = seen["grounds"].as_array().expect("colours");
        assert!(grounds[0] == grounds[2] && grounds[0] != grounds[1], "{grounds:?}");
        let tips = seen["tips"].as_array().expect("texts");
        assert!(!tips.is_empty() && tips.iter().all(|tip| tip != ""), "{width}: {tips:?}");
        assert_eq!(seen["loaded"], serde_json::json!([]), "the page needs nothing but itself");
        assert_eq!(seen["anchors"], true);
        screenshots(&program, directory.path(), width, &page);
    }
}

/// Every figure is there in every form, and nothing half.
fn files_are_complete(directory: &Path, page: &str) {
    let mut count = 0;
    for entry in fs::read_dir(directory.join("figures")).expect("the figures") {
        let path = entry.expect("an entry").path();
        assert!(path.extension().is_some_and(|end| end != "part"), "{}", path.display());
        if path.extension().is_some_and(|end| end == "svg") {
            count += 1;
            for end in ["png", "csv"] {
                let other = path.with_extension(end);
                let size = fs::metadata(&other).map_or(0, |file| file.len());
                assert!(size > 20, "{} has {size} bytes", other.display());
            }
        }
    }
    assert!(count > 5, "{count} figures");
    for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let elsewhere = ["#", "data:", "https://doi.org/"];
        if !elsewhere.iter().any(|start| link.starts_with(start)) {
            assert!(directory.join(link).is_file(), "the page links to {link}");
        }
    }
}

/// Looks at the page in both themes.
fn screenshots(program: &Path, directory: &Path, width: u32, page: &Path) {
    let light = look(program, directory, width, page, &[]);
    let dark = look(program, directory, width, page, &["--blink-settings=preferredColorScheme=0"]);
    for colour in &styles::ALONE[..1] {
        let parse = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour");
        let rgb = [parse(1), parse(3), parse(5)];
        let dots = light.iter().filter(|dot| **dot == rgb).count();
        assert!(dots > 500, "{width}: {dots} dots of {colour}");
    }
    let brightness = |dots: &[[u8; 3]]| {
        let sum: u64 = dots.iter().flatten().map(|part| u64::from(*part)).sum();
        sum / (3 * dots.len() as u64)
    };
    let (day, night) = (brightness(&light), brightness(&dark));
    assert!(day > 200 && (10..70).contains(&night), "{width}: brightness {day} and {night}");
    let colours: std::collections::BTreeSet<_> = dark.iter().collect();
    assert!(colours.len() > 100, "{width}: only {} colours", colours.len());
}

fn look(program: &Path, directory: &Path, width: u32, page: &Path, more: &[&str]) -> Vec<[u8; 3]> {
    let file = directory.join("shot.png");
    let shot = format!("--screenshot={}", file.display());
    browse(program, directory, width, page, &[&[shot.as_str()][..], more].concat());
    let pixels = Pixmap::decode_png(&fs::read(&file).expect("a screenshot")).expect("a PNG file");
    assert_eq!(pixels.width(), width);
    pixels.pixels().iter().map(|dot| [dot.red(), dot.green(), dot.blue()]).collect()
}
