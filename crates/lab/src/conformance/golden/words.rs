//! The words of a recording, as our grammar reads them.
//!
//! Recordings of `red` and `htb` write their `tc` words loosely (`red … ecn`, `htb as
//! tree-borrow`), but name every resolved argument: `limit=400000`,
//! `class=8001:10;parent=root;rate=6000000`,
//! `leaf=8001:10;fq_codel;limit=1000`. The words are made from those. What is no setting of the
//! discipline (the link, the seed, the keys) is left out.

/// Arguments of the oracle that are no settings of the discipline.
const SURROUNDINGS: &[&str] =
    &["seed", "key0", "key1", "t0", "state", "link", "hz", "wheel", "linux"];

/// Words for the discipline that `tc` names, from `tc` itself or from `args`.
pub(super) fn words(tc: &str, args: &[(String, String)]) -> Vec<String> {
    let written = || tc.split_whitespace().map(String::from).collect::<Vec<_>>();
    let Some(name) = tc.split_whitespace().next() else { return written() };
    match name {
        "red" => plain(name, args),
        "htb" | "drr" => classes(name, args),
        _ => written(),
    }
}

/// `limit=1` gives `limit 1`; a flag that is 1 stands alone.
fn plain(name: &str, args: &[(String, String)]) -> Vec<String> {
    let mut words = vec![name.to_string()];
    for (key, value) in settings(args) {
        push(&mut words, key, value);
    }
    words
}

/// Classes and what hangs below them, in the order of the classes.
fn classes(name: &str, args: &[(String, String)]) -> Vec<String> {
    let mut words = vec![name.to_string()];
    for (key, value) in settings(args).filter(|(key, _)| !["class", "leaf"].contains(key)) {
        push(&mut words, key, value);
    }
    for (_, class) in settings(args).filter(|(key, _)| *key == "class") {
        let mut parts = class.split(';');
        let id = parts.next().unwrap_or_default();
        words.extend(["class".to_string(), id.to_string()]);
        push_parts(&mut words, parts);
        let below = |(_, leaf): &(&str, &str)| leaf.split(';').next() == Some(id);
        if let Some((_, leaf)) = settings(args).filter(|(key, _)| *key == "leaf").find(below) {
            push_parts(&mut words, leaf.split(';').skip(1));
        }
    }
    words
}

fn settings(args: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    args.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .filter(|(key, _)| !SURROUNDINGS.contains(key))
}

fn push_parts<'a>(words: &mut Vec<String>, parts: impl Iterator<Item = &'a str>) {
    for part in parts {
        match part.split_once('=') {
            Some((key, value)) => push(words, key, value),
            None => words.push(part.to_string()),
        }
    }
}

fn push(words: &mut Vec<String>, key: &str, value: &str) {
    const FLAGS: &[&str] = &["ecn", "harddrop", "nodrop", "adaptive", "headdrop"];
    if FLAGS.contains(&key) {
        if value != "0" {
            words.push(key.to_string());
        }
    } else if (key, value) != ("parent", "root") {
        words.extend([key.to_string(), value.to_string()]);
    }
}

#[cfg(test)]
mod tests {
    fn args(text: &str) -> Vec<(String, String)> {
        let pair = |word: &str| word.split_once('=').map(|(k, v)| (k.into(), v.into()));
        text.split_whitespace().filter_map(pair).collect()
    }

    #[test]
    fn loose_words_are_made_from_the_arguments() {
        let red = args("limit=400000 avpkt=1000 probability=0.05 ecn=1 seed=7 link=10000000");
        let words = super::words("red … ecn", &red).join(" ");
        assert_eq!(words, "red limit 400000 avpkt 1000 probability 0.05 ecn");
        let htb = args(
            "default=0x30 class=8001:1;parent=root;rate=10 class=8001:30;parent=1:1;rate=2;prio=1 \
             leaf=8001:30;pfifo;limit=50 seed=1",
        );
        let words = super::words("htb as tree", &htb).join(" ");
        let class = "class 8001:1 rate 10 class 8001:30 parent 1:1 rate 2 prio 1 pfifo limit 50";
        assert_eq!(words, format!("htb default 0x30 {class}"));
        assert_eq!(super::words("pie limit 50", &red), ["pie", "limit", "50"]);
    }
}
