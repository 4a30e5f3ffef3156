//! Settings of one direction, made of a rate and the words of a discipline.
//!
//! A rate goes where the discipline takes one: `cake` gets `bandwidth RATE`; `line`, `tbf` and
//! `htb` get `rate RATE`. What does not shape stands below a shaper: `fq_codel` at 20 Mbit/s is
//! `htb rate 20mbit burst 11600b cburst 11600b fq_codel`. Words without a discipline's name are
//! `cake`'s. A cake for downloads gets `ingress` unless the words say `egress` or `ingress`
//! themselves: our queue stands behind the line's own there.

use simnel_core::qdisc::{self, Config, Device};
use simnel_core::rate::Rate;
use simnel_core::tc::{slip, units, ParseError, Problem};

use crate::direction::Direction;
use crate::tree::is_tree;

/// The rate that asks for no limit.
pub(crate) const UNLIMITED: &str = "unlimited";
/// A shaper that we put in front may send a packet at once...
const MTU: u64 = 1600;
/// ...and this part of a second's worth, so that late wake-ups cost no throughput: what `tc` allows
/// with a clock of 250 Hz.
const BURSTS_PER_SECOND: u64 = 250;

/// The words of a discipline, as somebody said them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// The words.
    pub words: &'a str,
    /// Place of each where they were said, from 0, so that errors tell the right one. Without any
    /// they are counted from the first.
    pub places: &'a [usize],
    /// Nobody guards hosts unless the words ask for it.
    pub unguarded: bool,
}

impl<'a> From<&'a str> for Said<'a> {
    fn from(words: &'a str) -> Said<'a> {
        Said { words, ..Said::default() }
    }
}

impl Said<'_> {
    fn place(self, index: usize) -> usize {
        self.places.get(index).copied().unwrap_or(index)
    }
}

/// Settings of one direction from a rate and the words of a discipline.
///
/// # Errors
/// The discipline does not understand its words, they say a rate of their own, or no line can have
/// the rate.
pub fn settings_of<'a>(
    direction: Direction,
    rate: Option<&str>,
    said: impl Into<Said<'a>>,
) -> Result<Config, String> {
    let said = said.into();
    if let Some(rate) = rate {
        check_sole_rate(direction, rate)?;
    }
    let (before, words) = compose(direction, rate, said)?;
    let named = usize::from(names_discipline(said.words));
    if let Some((rate, error)) = rate.zip(qdisc::parse(&before).err()) {
        // In words of ours, which nobody has counted.
        if error.word == rate {
            return Err(unusable(direction, rate, error.expected()));
        }
    }
    understood(direction, &before, words, |index| said.place(named + index))
}

/// The error that no line has the rate `word`.
fn unusable(direction: Direction, word: &str, expected: &str) -> String {
    format!("{direction}: `{word}` cannot be used: expected {expected}")
}

/// The discipline that runs as `present`, at another rate if there is one, and with the words of
/// `said`. Settings that these do not name, the rate included, stay; another discipline's name
/// begins from its defaults, and so does that of one with classes. Words without a name are those
/// of the discipline below the shaper.
///
/// # Errors
/// As [`settings_of`].
pub fn changed<'a>(
    direction: Direction,
    present: &str,
    rate: Option<&str>,
    said: impl Into<Said<'a>>,
) -> Result<Config, String> {
    let said = said.into();
    let config = qdisc::parse(present).map_err(|error| format!("{direction}: {error}"))?;
    if is_tree(&config) {
        return Err(format!(
            "{direction}: its `[[share]]` tables divide it: change them and `{direction}` in the \
             configuration file, then `systemctl reload simnel` (SIGHUP)"
        ));
    }
    let managed = below(&config).unwrap_or(&config);
    let (name, rest) = name_and_rest(said.words);
    // Words after its `default` would leave packets unshaped.
    let is_bare = matches!(managed, Config::Htb(htb) if htb.classes.is_empty());
    if is_bare && name.is_none() {
        return Err(format!(
            "{direction}: `htb` has no class here: say it anew, with all its words, such as \
             `htb rate 8mbit fq_codel`"
        ));
    }
    let rest = name.map_or(rest, |name| own_words(name, said.words, rest));
    let count = |words: &str| words.split_whitespace().count();
    let before_rest = count(said.words) - count(rest);
    let place = |index| said.place(before_rest + index);
    let kept = kept_child(&config, name, rest).map(Config::to_string);
    let with_rest = |text: &str| match &kept {
        None => understood(direction, text, rest, place),
        Some(child) => {
            let own = text.strip_suffix(child.as_str()).unwrap_or(text);
            understood(direction, own, &format!("{rest} {child}"), place)
        }
    };
    let is_another = |name| name != managed.name() || is_bare || has_classes(managed);
    let is_anew = kept.is_none() && name.is_some_and(is_another);
    let Some(rate) = rate else {
        if kept.is_some() {
            return with_rest(&config.to_string());
        }
        if !is_anew {
            return with_rest(present);
        }
        let rate = config.rate().filter(|_| !says_rate(said.words));
        let rate = rate.map(|rate| format!("{}bit", rate.bits()));
        return settings_of(direction, rate.as_deref(), said);
    };
    check_sole_rate(direction, rate)?;
    if is_anew {
        return settings_of(direction, Some(rate), said);
    }
    one_rate(direction, config.name(), rate, rest)?;
    let unusable = || unusable(direction, rate, "a RATE such as 20mbit");
    let new = reading(rate).ok_or_else(unusable)?;
    let before = match (below(&config), config.with_rate(new, burst)) {
        _ if new.is_unlimited() && kept.is_some() => return Err(unusable()),
        (Some(child), _) if new.is_unlimited() => child.to_string(),
        (_, Some(config)) => config.to_string(),
        _ if new.is_unlimited() && config.rate().is_some() => return Err(unusable()),
        _ if config.rate().is_some() => {
            return Err(format!(
                "{direction}: each class of `{0}` says a rate of its own: say `{0}` and all its \
                 words",
                config.name()
            ));
        }
        _ => compose(direction, Some(rate), present.into())
            .map(|(before, rest)| before + " " + rest)?,
    };
    with_rest(&before)
}

/// The discipline below the token bucket `config`, which stays there, as with `tc`, where the
/// bucket's own `name` is said, and none in `rest`.
fn kept_child<'a>(config: &'a Config, name: Option<&str>, rest: &str) -> Option<&'a Config> {
    let Config::Tbf(tbf) = config else { return None };
    let is_own = name == Some(config.name());
    let names_another = || rest.split_whitespace().any(|word| qdisc::discipline(word).is_some());
    tbf.child.as_deref().filter(|_| is_own && !names_another())
}

/// An error in words of a discipline that are wrong whatever runs. What they leave out may be in
/// force already.
///
/// # Errors
/// As [`settings_of`].
pub fn check_words<'a>(direction: Direction, said: impl Into<Said<'a>>) -> Result<(), String> {
    let said = said.into();
    let lacks = |error: ParseError| match error.problem {
        Problem::Missing { keyword, .. } => {
            keyword.split(' ').next() == name_and_rest(said.words).0
        }
        _ => false,
    };
    match qdisc::parse(said.words).is_err_and(lacks) {
        true => Ok(()),
        false => understood(direction, "", said.words, |index| said.place(index)).map(drop),
    }
}

/// The words `rest` after the name of a discipline, or all `words` where its name is the keyword of
/// what follows as well: `delay 10ms`.
fn own_words<'a>(name: &str, words: &'a str, rest: &'a str) -> &'a str {
    let is_keyword = |word: &str| qdisc::keywords(name).any(|known| known.word == word);
    let is_value = rest.split_whitespace().next().is_some_and(|first| !is_keyword(first));
    match is_keyword(name) && is_value {
        true => words,
        false => rest,
    }
}

/// True if what follows in its words would be those of its last class.
fn has_classes(config: &Config) -> bool {
    config.to_string().split_whitespace().any(|word| word == "class")
}

/// A warning if packets of `direction` will not be treated as was meant: nothing holds them back,
/// or nothing lets them through.
pub fn misgiving(interface: &str, direction: Direction, config: &Config) -> Option<String> {
    if let Some(reason) = config.passes_nothing(&Device::default()) {
        return Some(format!(
            "packets of the {direction} of `{interface}` will be dropped: {reason}"
        ));
    }
    config.rate().is_none().then(|| {
        format!(
            "nothing limits the {direction} of `{interface}`: {} will find no queue here while the \
             line has one; say `{direction} RATE`",
            config.name()
        )
    })
}

/// The rate that `word` says; zero is no limit.
fn reading(word: &str) -> Option<Rate> {
    match word {
        UNLIMITED => Some(Rate(0)),
        word => units::rate(word).ok(),
    }
}

/// True if `words` begin with the name of a discipline.
pub fn names_discipline(words: &str) -> bool {
    name_and_rest(words).0.is_some()
}

/// The name that `words` begin with, if it is one, and the words after it.
fn name_and_rest(words: &str) -> (Option<&'static str>, &str) {
    let words = words.trim_start();
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    match qdisc::discipline(first) {
        Some(known) => (Some(known.name), rest),
        None => (None, words),
    }
}

/// The settings that `before` and then somebody's own `words` describe. Errors name the `place` of
/// his words.
fn understood(
    direction: Direction,
    before: &str,
    words: &str,
    place: impl Fn(usize) -> usize,
) -> Result<Config, String> {
    let config = qdisc::amend(before, words).map_err(|mut error| {
        let own = before.split_whitespace().count();
        // A value that runs no longer fits, such as `max` below a new `min`: he did not say it.
        if error.index < own && matches!(error.problem, Problem::OutOfRange { .. }) {
            return format!("{direction}: in what runs, {error}");
        }
        // What is no keyword may be the name of a discipline: misspelt, or one of Linux's.
        let may_be_name = error.index == own;
        error.index = error.index.saturating_sub(own);
        let is_known = |error: &ParseError| error.nearest().is_some() || error.is_foreign();
        if may_be_name && !is_known(&error) {
            error = qdisc::parse(words).err().filter(is_known).unwrap_or(error);
        }
        error.index = place(error.index);
        format!("{direction}: {error}")
    })?;
    qdisc::check_rates(words).map_err(|error| format!("{direction}: {error}"))?;
    Ok(config)
}

/// An error for a rate that no line has, or that is another one than it looks like. What cannot be
/// read the grammar says, where it is needed.
pub(crate) fn check_rate(direction: Direction, word: &str) -> Result<(), String> {
    slip::of_line(word).map_or(Ok(()), |slip| Err(format!("{direction}: `{word}` is {slip}")))
}

/// The same for the one rate of a direction, which may come from a script's unset variable.
fn check_sole_rate(direction: Direction, word: &str) -> Result<(), String> {
    match word {
        "" => Err(format!("{direction}: its rate is empty: say one such as 20mbit")),
        word => check_rate(direction, word),
    }
}

/// The keyword of the rate to which the discipline `name` shapes, if it does.
fn rate_word(name: &str) -> Option<&'static str> {
    qdisc::discipline(name)?.rate
}

/// The rate that the `words` of the discipline `name` say themselves, with its keyword.
fn own_rate<'a>(name: &str, words: &'a str) -> Option<(&'static str, &'a str)> {
    let keyword = rate_word(name)?;
    let mut all = words.split_whitespace();
    all.find(|word| *word == keyword).map(|_| (keyword, all.next().unwrap_or("RATE")))
}

/// True if `words` begin with the name of a discipline, and say the rate to which it shapes.
fn says_rate(words: &str) -> bool {
    let (name, rest) = name_and_rest(words);
    name.is_some_and(|name| own_rate(name, rest).is_some())
}

/// An error if the `words` of the discipline `name` say a rate beside `rate`.
fn one_rate(direction: Direction, name: &str, rate: &str, words: &str) -> Result<(), String> {
    own_rate(name, words).map_or(Ok(()), |(keyword, own)| {
        Err(format!(
            "{direction}: two rates, `{direction} {rate}` and `{keyword} {own}`: leave one of them \
             out"
        ))
    })
}

/// The words that put `rate` and `words` together: ours, and of `words` what stands after them.
fn compose<'a>(
    direction: Direction,
    rate: Option<&str>,
    Said { words, unguarded, .. }: Said<'a>,
) -> Result<(String, &'a str), String> {
    let (name, rest) = name_and_rest(words);
    let name = name.unwrap_or("cake");
    if let Some(rate) = rate {
        one_rate(direction, name, rate, rest)?;
    }
    let mut composed = match (rate_word(name), rate) {
        (Some(keyword), Some(rate)) => format!("{name} {keyword} {rate}"),
        (_, None | Some(UNLIMITED)) => String::from(name),
        (None, Some(rate)) => {
            // What is wrong with a rate, the grammar says.
            let burst = burst(units::rate(rate).unwrap_or(Rate(0)));
            format!("htb rate {rate} burst {burst}b cburst {burst}b {name}")
        }
    };
    let said = |word| rest.split_whitespace().any(|other| other == word);
    let knows = |word| qdisc::keywords(name).any(|keyword| keyword.word == word);
    let decided = said("ingress") || said("egress");
    if knows("ingress") && direction == Direction::Download && !decided {
        composed.push_str(" ingress");
    }
    let guards = !unguarded && knows("host-guard");
    if guards && !UNGUARDED.iter().any(|word| said(word)) {
        // The hosts at home.
        composed.push_str(match direction {
            Direction::Upload => " host-guard src",
            Direction::Download => " host-guard dst",
        });
    }
    Ok((composed, rest))
}

/// Words of a cake that says itself whether hosts are guarded, or that has no hosts to guard.
const UNGUARDED: [&str; 8] =
    ["host-guard", "no-host-guard", "savings", "flows", "flowblind", "hosts", "srchost", "dsthost"];

/// Bytes that a shaper that we put in front may send at once.
pub(crate) fn burst(rate: Rate) -> u32 {
    u32::try_from(rate.0 / BURSTS_PER_SECOND + MTU).unwrap_or(u32::MAX)
}

/// The discipline that a shaper of one rate is there for.
pub fn below(config: &Config) -> Option<&Config> {
    let [(_, child)] = config.children()[..] else { return None };
    config.with_rate(config.rate()?, burst).map(|_| child)
}

#[cfg(test)]
mod tests {
    use super::Direction::{Download, Upload};
    use super::*;

    fn settings(words: &str) -> Config {
        qdisc::parse(words).unwrap()
    }

    #[test]
    fn a_token_bucket_keeps_what_stands_below_it() {
        let present = "tbf rate 2mbit burst 15k pie ecn";
        for (rate, words, expected) in [
            (None, "tbf burst 30k", "tbf rate 2mbit burst 30k pie ecn"),
            (None, "tbf rate 3mbit burst 30k", "tbf rate 3mbit burst 30k pie ecn"),
            (Some("4mbit"), "tbf burst 20k", "tbf rate 4mbit burst 20k pie ecn"),
            (None, "tbf burst 30k sfq", "tbf rate 2mbit burst 30k sfq"),
            (None, "limit 99", "tbf rate 2mbit burst 15k pie limit 99 ecn"),
        ] {
            let changed = changed(Upload, present, rate, words).expect(words);
            assert_eq!(changed, settings(expected), "{words}");
        }
        let error = changed(Upload, present, None, "tbf burst").unwrap_err();
        assert!(error.contains("`burst`"), "{error}");
        assert!(changed(Upload, present, Some("unlimited"), "tbf burst 9k").is_err());
    }

    #[test]
    fn words_are_put_together_as_documented() {
        let below_htb = "htb rate 10mbit burst 6600 cburst 6600";
        for (direction, rate, words, expected) in [
            (Upload, Some("1mbit"), "", "cake bandwidth 1mbit host-guard src"),
            (Upload, Some("1mbit"), "docsis", "cake bandwidth 1mbit docsis host-guard src"),
            (Upload, Some("unlimited"), "cake", "cake unlimited host-guard src"),
            (Upload, Some("1mbit"), "no-host-guard", "cake bandwidth 1mbit"),
            (Upload, Some("1mbit"), "flows", "cake bandwidth 1mbit flows"),
            (Upload, Some("1mbit"), "savings 9kb", "cake bandwidth 1mbit savings 9kb"),
            (Download, Some("1mbit"), "cake", "cake bandwidth 1mbit ingress host-guard dst"),
            (Download, Some("1mbit"), "host-guard", "cake bandwidth 1mbit ingress host-guard"),
            (Download, Some("1mbit"), "cake egress flows", "cake bandwidth 1mbit egress flows"),
            (Upload, Some("9000bit"), "line delay 5ms", "line rate 9kbit delay 5ms"),
            (Download, None, "pfifo limit 9", "pfifo limit 9"),
            (Download, Some("unlimited"), "pfifo limit 9", "pfifo limit 9"),
            (Upload, None, "htb rate 2mbit burst 15k sfq", "htb rate 2mbit burst 15k sfq"),
            (Upload, Some("2mbit"), "htb burst 15k sfq", "htb rate 2mbit burst 15k sfq"),
            (Upload, Some("2mbit"), "tbf burst 15k pie", "tbf rate 2mbit burst 15k pie"),
            (Upload, Some("10mbit"), "codel ecn", &format!("{below_htb} codel ecn")),
            (
                Upload,
                Some("10mbit"),
                "drr class 1:1 quantum 300",
                &format!("{below_htb} drr class 1:1 quantum 300"),
            ),
        ] {
            let composed = settings_of(direction, rate, words).unwrap();
            assert_eq!(composed, settings(expected), "{rate:?} {words}");
            assert_eq!(settings(&composed.to_string()), composed, "{rate:?} {words}");
        }
    }

    #[test]
    fn where_nobody_guards_hosts_words_may_ask_for_it_still() {
        for (words, expected) in [
            ("cake besteffort", "cake bandwidth 1mbit besteffort"),
            ("host-guard src", "cake bandwidth 1mbit host-guard src"),
        ] {
            let said = Said { words, unguarded: true, ..Said::default() };
            assert_eq!(settings_of(Upload, Some("1mbit"), said), Ok(settings(expected)));
        }
    }

    /// A discipline's words where its name is not enough.
    fn least_words(name: &str) -> &str {
        match name {
            "delay" => "delay delay 10ms",
            "red" => "red limit 100kb avpkt 1000",
            "tbf" => "tbf burst 15k limit 100kb",
            "htb" => "htb burst 15k fq_codel",
            name => name,
        }
    }

    #[test]
    fn every_discipline_takes_a_rate_and_another_one() {
        for known in qdisc::disciplines() {
            for direction in [Upload, Download] {
                let words = least_words(known.name);
                let config = settings_of(direction, Some("10mbit"), words).unwrap();
                assert!(config.rate().is_some(), "{config}");
                let later = changed(direction, &config.to_string(), Some("20mbit"), "").unwrap();
                let expected = settings_of(direction, Some("20mbit"), words).unwrap();
                assert_eq!(later, expected, "{}", known.name);
            }
        }
    }

    #[test]
    fn what_cannot_be_put_together_is_named() {
        for (rate, words, expected) in [
            (Some("fast"), "", "upload: `fast` cannot be used: expected a RATE such as 20mbit"),
            (Some("fast"), "fq_codel", "upload: `fast` cannot be used: expected a RATE such as"),
            (Some("1e400mbit"), "", "upload: `1e400mbit` cannot be used: expected a RATE below"),
            (Some("0"), "fq_codel", "upload: `0` cannot be used: expected a RATE"),
            (Some("1mbit"), "fq_codel limt 9", "`limt`"),
            (Some("1mbit"), "fq_codle", "`fq_codle` (word 1) is not a queue discipline; did you"),
            (Some("1mbit"), "diffserv5", "`diffserv5` (word 1) is not a keyword of cake; did you"),
            (Some("1mbit"), "cake nat diffserv5", "`diffserv5` (word 3) is not"),
            (Some("1mbit"), "ingress xyzzy", "`xyzzy` (word 2) is not"),
            (Some("1mbit"), "codel ecn limt 9", "`limt` (word 3) is not"),
            (None, "cake bandwidth", "`bandwidth` (word 2) must be followed by"),
            (Some("50"), "", "`50` is 50 bits per second: did you mean `50mbit`?"),
            (Some("50"), "", "If not, say `50bit`"),
            (Some("1e1"), "", "`1e1` is 1e1 bits per second: did you mean `1e1mbit`?"),
            (Some("9kbit"), "", "did you mean `9mbit`? If not, say `9000bit`"),
            (Some("10mbps"), "", "in bytes per second, 80 Mbit/s: did you mean `10mbit`?"),
            (Some("10bps"), "", "in bytes per second, 80 bit/s: did you mean `10mbit`?"),
            (Some("5"), "", "`5` is 5 bits per second, less than a byte per second: did you mean"),
            (Some("5bit"), "", "`5bit` is less than a byte per second: did you mean `5mbit`?"),
            (Some("0.9"), "fq_codel", "did you mean `0.9mbit`?"),
            (None, "cake bandwidth 3", "upload: `bandwidth 3` is 3 bits per second, less than"),
            (None, "cake bandwidth 20", "did you mean `20mbit`? If not, say `20bit`"),
            (None, "cake bandwidth 2e1", "did you mean `2e1mbit`? If not, say `2e1bit`"),
            (None, "cake bandwidth 20mbps", "160 Mbit/s: did you mean `20mbit`?"),
            (None, "htb rate 20 fq_codel", "`rate 20` is 20 bits per second: did you mean"),
            (None, "htb rate 2mbit ceil 20 burst 9k cburst 9k sfq", "`ceil 20` is 20 bits"),
            (None, "tbf rate 20 burst 9kb limit 9kb", "`rate 20` is 20 bits per second"),
            (None, "line rate 3", "`rate 3` is 3 bits per second, less than"),
            (Some("1mbit"), "netem delay 9ms", "`netem` (word 1) cannot be used: of what netem"),
            (None, "cake_mq", "`cake_mq` (word 1) cannot be used: it needs the kernel"),
            (Some("1mbit"), "cake bandwidth 2mbit", "`upload 1mbit` and `bandwidth 2mbit`"),
            (Some("1mbit"), "tbf rate 2mbit burst 9kb", "`upload 1mbit` and `rate 2mbit`"),
            (Some("1mbit"), "red", "`red`"),
            (Some(""), "", "upload: its rate is empty"),
            (Some("1mbit"), "tbf", "burst SIZE"),
            (Some("1mbit"), "htb rate 2mbit sfq", "two rates, `upload 1mbit` and `rate 2mbit`"),
            (Some("unlimited"), "htb sfq", "`unlimited`"),
            (None, "htb sfq", "rate RATE"),
        ] {
            let error = settings_of(Upload, rate, words).unwrap_err();
            assert!(error.contains(expected), "{rate:?} {words}: {error}");
        }
    }

    #[test]
    fn what_is_not_named_stays_as_it_is() {
        let below_htb = "htb rate 2mbit burst 15k fq_codel limit 500";
        let later = "htb rate 10mbit burst 15k fq_codel limit 500 target 9ms";
        let tree = "htb default 2 class 1:1 rate 9mbit class 1:2 parent 1:1 rate 1mbit sfq";
        let more = &tree.replace("1mbit", "2mbit");
        for (present, rate, words, expected) in [
            (
                "cake bandwidth 9mbit nat docsis rtt 50ms",
                "8mbit",
                "",
                "cake bandwidth 8mbit nat docsis rtt 50ms",
            ),
            (
                "cake bandwidth 9mbit diffserv4 nat docsis ack-filter",
                "8mbit",
                "cake besteffort nonat no-ack-filter",
                "cake bandwidth 8mbit besteffort nonat docsis no-ack-filter",
            ),
            ("cake bandwidth 9mbit nat", "1mbit", "line fifo 9p", "line rate 1mbit fifo 9p"),
            ("line rate 3mbit delay 5ms", "1mbit", "", "line rate 1mbit delay 5ms"),
            (below_htb, "10mbit", "target 9ms", later),
            (below_htb, "10mbit", "fq_codel target 9ms", later),
            (below_htb, "10mbit", "codel", "htb rate 10mbit burst 6600 cburst 6600 codel"),
            ("htb rate 2mbit burst 15k sfq limit 50", "unlimited", "", "sfq limit 50"),
            ("tbf rate 2mbit burst 15k sfq", "3mbit", "", "tbf rate 3mbit burst 15k sfq"),
            (
                "tbf rate 2mbit burst 15k limit 30k",
                "3mbit",
                "burst 20k latency 40ms",
                "tbf rate 3mbit burst 20k latency 40ms",
            ),
            (
                "tbf rate 2mbit burst 15k latency 40ms",
                "2mbit",
                "limit 9k",
                "tbf rate 2mbit burst 15k limit 9k",
            ),
            ("htb rate 2mbit burst 15k", "20mbit", "", "htb rate 20mbit burst 15k"),
            ("cake bandwidth 9mbit nat", "", "diffserv8", "cake bandwidth 9mbit nat diffserv8"),
            ("cake bandwidth 9mbit nat", "", "bandwidth 8mbit", "cake bandwidth 8mbit nat"),
            // A link that is said is that link, whatever ran: not raw, and nothing is added up.
            ("cake bandwidth 9mbit", "", "docsis", "cake bandwidth 9mbit docsis"),
            ("cake pppoe-ptm", "", "pppoe-ptm ether-vlan", "cake pppoe-ptm ether-vlan"),
            ("cake docsis", "", "ethernet nat", "cake nat overhead 38 mpu 84 noatm"),
            ("cake docsis", "", "atm mpu 9", "cake overhead 18 mpu 9 atm"),
            ("cake docsis", "", "raw docsis", "cake raw overhead 18 mpu 64"),
            ("line rate 9mbit docsis", "", "docsis", "line rate 9mbit docsis"),
            (
                "htb rate 9mbit burst 15k cake docsis",
                "8mbit",
                "cake docsis",
                "htb rate 8mbit burst 15k cake docsis",
            ),
            (below_htb, "", "target 9ms", &below_htb.replace("500", "500 target 9ms")),
            ("cake bandwidth 10mbit", "", "codel", "htb rate 10mbit burst 6600 cburst 6600 codel"),
            ("cake bandwidth 9mbit", "", "htb rate 1mbit sfq", "htb rate 1mbit sfq"),
            (tree, "", more, more),
            (tree, "", "htb rate 1mbit sfq", "htb rate 1mbit sfq"),
            (tree, "9mbit", "sfq", "htb rate 9mbit burst 6100 cburst 6100 sfq"),
            (
                "htb rate 9mbit drr class 1:1 sfq",
                "",
                "drr class 1:1 weight 2",
                "htb rate 9mbit burst 6100 cburst 6100 drr class 1:1 weight 2",
            ),
            ("delay 10ms 2ms", "", "delay 20ms 1ms", "delay 20ms 1ms"),
            ("delay 10ms 2ms", "", "delay limit 9", "delay 10ms 2ms limit 9"),
            (below_htb, "", "htb rate 1mbit sfq", "htb rate 1mbit sfq"),
            (below_htb, "", "cake bandwidth 3mbit flows", "cake bandwidth 3mbit flows"),
            ("cake bandwidth 9mbit", "50bit", "", "cake bandwidth 50bit"),
            ("sfq limit 50", "10mbit", "", "htb rate 10mbit burst 6600 cburst 6600 sfq limit 50"),
        ] {
            let present = settings(present).to_string();
            let later =
                changed(Upload, &present, (!rate.is_empty()).then_some(rate), words).unwrap();
            assert_eq!(later, settings(expected), "{present} {rate} {words}");
        }
        for (rate, words) in [(Some("5"), ""), (None, "bandwidth 5"), (None, "cake bandwidth 20")] {
            let error = changed(Upload, "cake bandwidth 9mbit", rate, words).unwrap_err();
            assert!(error.contains("bits per second"), "{error}");
        }
        let unlimited = Ok(settings("cake unlimited nat"));
        for (rate, words) in [(Some("0"), ""), (None, "bandwidth 0")] {
            assert_eq!(changed(Upload, "cake bandwidth 9mbit nat", rate, words), unlimited);
        }
        let several = "htb default 1 class 1:1 rate 1mbit class 1:2 rate 2mbit";
        let error = changed(Upload, several, Some("2mbit"), "").unwrap_err();
        assert!(error.contains("says a rate of its own"), "{error}");
        let error = changed(Upload, "cake bandwidth 9mbit", Some(""), "").unwrap_err();
        assert!(error.contains("its rate is empty"), "{error}");
        let error = changed(Upload, several, Some("unlimited"), "").unwrap_err();
        assert!(error.contains("`unlimited` cannot be used: expected a RATE"), "{error}");
        let bare = settings("htb").to_string();
        for (rate, words) in [(None, "htb rate 8mbit fq_codel"), (Some("8mbit"), "htb fq_codel")] {
            let later = changed(Upload, &bare, rate, words);
            assert_eq!(later, Ok(settings("htb rate 8mbit fq_codel")), "{words}");
        }
        for (rate, words) in [(Some("8mbit"), ""), (None, "rate 8mbit fq_codel")] {
            let error = changed(Upload, &bare, rate, words).unwrap_err();
            assert!(error.contains("`htb` has no class here"), "{error}");
        }
        // Places are those where the words were said.
        for rate in [None, Some("2mbit")] {
            let (words, places) = ("cake nat diffserv5", &[4, 5, 8][..]);
            let said = Said { words, places, unguarded: false };
            let error = changed(Upload, "cake bandwidth 9mbit", rate, said).unwrap_err();
            assert!(error.contains("`diffserv5` (word 9) is not"), "{error}");
        }
        let shared = "htb default 2 class :1 rate 9mbit class :2 parent :1 rate 8mbit cake \
                      class :11 parent :1 rate 1mbit ceil 4mbit cake";
        for (rate, words) in [(Some("2mbit"), ""), (None, "fq_codel"), (None, "diffserv4")] {
            let error = changed(Upload, shared, rate, words).unwrap_err();
            assert!(error.contains("`[[share]]`") && error.contains("(SIGHUP)"), "{error}");
        }
        let present = settings("red limit 400kb avpkt 1000 min 10kb").to_string();
        let error = changed(Upload, &present, None, "min 60kb").unwrap_err();
        assert!(error.starts_with("upload: in what runs, `30Kb` (word 7) is out of"), "{error}");
        let error = changed(Upload, "cake bandwidth 9mbit", None, "netem delay 9ms").unwrap_err();
        assert!(error.contains("`netem` (word 1) cannot be used: of what netem"), "{error}");
    }

    #[test]
    fn words_are_wrong_whatever_runs_or_lean_on_it() {
        for leaning in ["red limit 200kb", "tbf burst 30k", "tbf burst 30k sfq", "delay 9ms"] {
            assert_eq!(check_words(Upload, leaning), Ok(()), "{leaning}");
        }
        for (wrong, expected) in [
            ("red limt 200kb", "`limt` (word 2) is not a keyword of red"),
            ("cake raw bandwidth", "`bandwidth` (word 3) must be followed by"),
            ("tbf burst 30k sfq limt 9", "`limt` (word 5) is not a keyword of sfq"),
            ("cake bandwidth 20", "`bandwidth 20` is 20 bits per second"),
        ] {
            let error = check_words(Upload, wrong).unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_will_not_be_as_it_was_meant_is_said() {
        let said = |words| misgiving("eth0", Upload, &settings(words));
        assert_eq!(said("cake bandwidth 9mbit"), None);
        assert_eq!(said("htb rate 9mbit burst 15k fq_codel"), None);
        let unlimited = said("fq_codel").expect("a word");
        assert!(unlimited
            .starts_with("nothing limits the upload of `eth0`: fq_codel will find no queue"));
        let nothing = said("pfifo limit 0").expect("a word");
        assert!(
            nothing.starts_with("packets of the upload of `eth0` will be dropped: "),
            "{nothing}"
        );
    }
}
