//! `[[share]]`: what a device or a network has of the line, at least and at most.
//!
//! ```toml
//! [[share]]
//! name = "guests"
//! address = "192.168.2.0/24"
//! upload = "1mbit..4mbit"
//! download = "20mbit"
//! ```
//!
//! A direction with shares is a tree of `htb`. Each share has a class, with its floor as `rate` and
//! its cap as `ceil`. One more class is for all others, who have the rest guaranteed. What nobody
//! uses, others borrow up to their caps. Below every class stands the interface's own discipline,
//! so hosts and flows within a class share it as they did before. The classes reckon how long
//! packets are on the wire, with the framing that cake's words say. Rules of the form `class` lead
//! there.

use serde::Deserialize;
use simnel_core::framing::{Cells, Framing};
use simnel_core::qdisc::{htb, Config};
use simnel_core::tc::units::{self, Digits};
use simnel_core::Rate;

use super::hours::Hours;
use super::read::{self, List};
use super::{Action, Rule, Traffic};
use crate::autorate::range;
use crate::direction::Direction;
use crate::tree::{FIRST, LINE, OTHERS};
use crate::words::{burst, settings_of, UNLIMITED};

/// Shares of one file.
pub(crate) const MOST_SHARES: usize = 16;
/// Part of its cap that a share without a floor is guaranteed.
const FLOOR: u64 = 10;
/// Part of the line that is left for all others at least.
const LEFT: u64 = 10;

/// One `[[share]]`, not yet understood.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    name: Option<String>,
    pub(crate) interface: Option<String>,
    #[serde(alias = "addresses")]
    address: Option<List>,
    #[serde(alias = "macs")]
    mac: Option<List>,
    download: Option<String>,
    upload: Option<String>,
    hours: Option<String>,
    #[serde(alias = "days")]
    day: Option<List>,
}

/// A cap, and a floor if one is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    floor: Option<Rate>,
    cap: Rate,
}

impl Limits {
    /// Floor and cap on a line of `rate`.
    fn on(self, rate: Rate) -> (Rate, Rate) {
        let cap = self.cap.min(rate);
        (self.floor.unwrap_or(Rate(cap.0 / FLOOR)), cap)
    }
}

/// One share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    number: usize,
    traffic: Traffic,
    name: Option<String>,
    hours: Option<Hours>,
    /// Of uploads and of downloads.
    limits: [Option<Limits>; 2],
}

impl Table {
    /// The share that is the `number`th of the file.
    ///
    /// # Errors
    /// The number of the share, the key, and what was expected.
    pub(crate) fn read(&self, number: usize) -> Result<Share, String> {
        self.understand(number).map_err(|error| format!("share {number}: {error}"))
    }

    fn understand(&self, number: usize) -> Result<Share, String> {
        let traffic = read::hosts(self.address.as_ref(), self.mac.as_ref())?;
        if traffic == Traffic::default() {
            return Err("no host is named: add `address` or `mac`".into());
        }
        let upload = limits(Direction::Upload, self.upload.as_deref())?;
        let download = limits(Direction::Download, self.download.as_deref())?;
        if upload.is_none() && download.is_none() {
            return Err(
                "nothing is shared: add `download` or `upload`, such as \"2mbit..8mbit\"".into()
            );
        }
        let hours = read::hours(self.hours.as_deref(), self.day.as_ref())?;
        let limits = [upload, download];
        Ok(Share { number, traffic, name: read::name(self.name.as_deref())?, hours, limits })
    }
}

/// Limits that were `said`: a floor and a cap, or a cap alone.
fn limits(direction: Direction, said: Option<&str>) -> Result<Option<Limits>, String> {
    let Some(said) = said else { return Ok(None) };
    if let (_, Some(limits)) = range(direction, said, true)? {
        return Ok(Some(Limits { floor: Some(limits.floor), cap: limits.ceiling }));
    }
    if units::rate(said).is_err() && said != UNLIMITED {
        return Err(format!(
            "`{direction} = \"{said}\"` is no rate: expected one with its unit, such as \"8mbit\", \
             or a floor and a cap, such as \"2mbit..8mbit\""
        ));
    }
    // A cap alone is read as every rate is.
    let cap = settings_of(direction, Some(said), "cake")?.rate();
    let cap =
        cap.ok_or_else(|| format!("`{direction} = \"{said}\"` limits nothing: leave it out"))?;
    Ok(Some(Limits { floor: None, cap }))
}

impl Share {
    /// The rule that leads its traffic to its class. Where a direction has no class for it, it
    /// stays with all others.
    pub(crate) fn rule(&self) -> Rule {
        Rule {
            number: self.number,
            name: self.name.clone(),
            traffic: self.traffic.clone(),
            action: Action::Share(self.class()),
            hours: self.hours,
        }
    }

    /// An error if a direction that it limits is not shaped anywhere, or slower than its cap
    /// everywhere. `rates` tells the rates of the lines that it is about.
    pub(crate) fn check_lines(&self, rates: impl Fn(Direction) -> Vec<Rate>) -> Result<(), String> {
        for direction in Direction::BOTH {
            let Some(limits) = self.limits(direction) else { continue };
            let number = self.number;
            let Some(most) = rates(direction).into_iter().max() else {
                return Err(format!(
                    "share {number}: `{direction}` has no effect, because no [[interface]] of it \
                     has `{direction}`: set it there, or leave it out here"
                ));
            };
            if limits.cap > most {
                let [cap, line] = [limits.cap, most].map(word);
                return Err(format!(
                    "share {number}: `{direction}`: a cap of {cap} is above the line's {line}, and \
                     limits nothing: say {line} at most"
                ));
            }
        }
        Ok(())
    }

    /// An error if all packets of a direction that it limits are those of an `earlier` share.
    pub(crate) fn check_beside(&self, earlier: &Share) -> Result<(), String> {
        let mut both = self.limits.iter().zip(&earlier.limits);
        let is_hidden = earlier.rule().hides(&self.rule());
        if is_hidden && both.any(|(own, other)| own.is_some() && other.is_some()) {
            return Err(format!(
                "share {}: share {} has these hosts already: leave one of them out, or say this \
                 one first",
                self.number, earlier.number
            ));
        }
        Ok(())
    }

    fn class(&self) -> u16 {
        FIRST + self.number as u16
    }

    fn limits(&self, direction: Direction) -> Option<Limits> {
        self.limits[usize::from(direction == Direction::Download)]
    }
}

/// A rate as the file says it.
fn word(rate: Rate) -> String {
    let mut text = String::new();
    let _ = units::write_rate(rate, Digits::Exact, &mut text);
    text.to_lowercase()
}

/// The discipline of `direction` with a class for each of `shares` that has limits there. `whole`
/// is the discipline without shares, `each` the one below every class: the same without its rate.
///
/// # Errors
/// Nothing limits the line, the discipline says a rate of its own, or the floors leave nothing.
pub(crate) fn tree(
    direction: Direction,
    (whole, each): (&Config, &Config),
    shares: &[&Share],
) -> Result<Config, String> {
    if shares.iter().all(|share| share.limits(direction).is_none()) {
        return Ok(whole.clone());
    }
    let Some(rate) = whole.rate().filter(|rate| !rate.is_unlimited()) else {
        return Err(format!("{direction}: shares of a line need its rate: set `{direction}`"));
    };
    if each.rate().is_some() {
        return Err(format!(
            "{direction}: `{}` says a rate of its own: below shares stands one that does not",
            each.name()
        ));
    }
    let limits = |share: &&Share| Some((share.class(), share.limits(direction)?.on(rate)));
    let limits: Vec<(u16, (Rate, Rate))> = shares.iter().filter_map(limits).collect();
    let floors: u64 = limits.iter().map(|(_, (floor, _))| floor.0).sum();
    if floors > rate.0 - rate.0 / LEFT {
        return Err(format!(
            "{direction}: the shares' least rates leave less than a tenth of the line for all \
             others: lower them"
        ));
    }
    let (framing, on_wire) = on_the_line(each);
    let class = |id, parent, (rate, ceil): (Rate, Rate), child| {
        let (rate, ceil) = (on_wire(rate), on_wire(ceil));
        let (burst, cburst) = (burst(rate), burst(ceil));
        let (prio, quantum) = (0, None);
        htb::Class { id, parent, rate, ceil, burst, cburst, prio, quantum, framing, child }
    };
    let others = (Rate(rate.0 - floors), rate);
    let mut classes = vec![
        class(LINE, None, (rate, rate), None),
        class(OTHERS, Some(LINE), others, Some(each.clone())),
    ];
    classes.extend(
        limits.iter().map(|(id, limits)| class(*id, Some(LINE), *limits, Some(each.clone()))),
    );
    let (r2q, direct_qlen) = (htb::Params::R2Q, None);
    Ok(Config::Htb(htb::Params { default: OTHERS, r2q, direct_qlen, classes }))
}

/// Framing of a class in place of cake's, and its rate. A class counts from the Ethernet header,
/// and knows no PTM, whose one byte in 65 is taken off the rate.
fn on_the_line(each: &Config) -> (Framing, impl Fn(Rate) -> Rate) {
    const ETHERNET: i16 = 14;
    let mut framing = match each {
        Config::Cake(cake) => cake.framing,
        _ => Framing::default(),
    };
    if framing.compensate {
        (framing.compensate, framing.overhead) = (false, framing.overhead - ETHERNET);
    }
    let is_ptm = framing.cells == Cells::Ptm;
    if is_ptm {
        framing.cells = Cells::None;
    }
    (framing, move |rate: Rate| if is_ptm { Rate(rate.0 / 65 * 64) } else { rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(number: usize, text: &str) -> Result<Share, String> {
        toml::from_str::<Table>(text).map_err(|e| e.to_string())?.read(number)
    }

    fn planted(rate: Option<&str>, words: &str, texts: &[&str]) -> Result<String, String> {
        let shares: Vec<Share> =
            (1..).zip(texts).map(|(n, text)| share(n, text)).collect::<Result<_, _>>()?;
        let shares: Vec<&Share> = shares.iter().collect();
        let upload = Direction::Upload;
        let settings = [rate, None].map(|rate| settings_of(upload, rate, words));
        let [whole, each] = settings;
        tree(upload, (&whole?, &each?), &shares).map(|config| config.to_string())
    }

    #[test]
    fn a_share_is_a_class_and_all_others_have_the_rest() {
        let guests = "name = \"guests\"\naddress = \"192.168.2.0/24\"\nupload = \"1mbit..4mbit\"";
        let tv = "mac = \"02:00:5e:10:00:01\"\nupload = \"5mbit\"\ndownload = \"30mbit\"";
        let words = planted(Some("10mbit"), "cake diffserv4 ethernet", &[guests, tv]).unwrap();
        println!("{words}");
        for part in [
            "htb default 0x2 r2q 10 class :1 rate 10Mbit ceil 10Mbit",
            "class :2 parent :1 rate 8500Kbit ceil 10Mbit",
            "class :11 parent :1 rate 1Mbit ceil 4Mbit",
            "class :12 parent :1 rate 500Kbit ceil 5Mbit",
            "overhead 24 mpu 84",
        ] {
            assert!(words.contains(part), "no `{part}`: {words}");
        }
        assert_eq!(words.matches("cake bandwidth unlimited diffserv4").count(), 3, "{words}");
        assert!(crate::tree::is_tree(&simnel_core::qdisc::parse(&words).unwrap()));
        // Nothing is shared of the other direction.
        let only = share(1, guests).unwrap();
        let whole = settings_of(Direction::Download, Some("9mbit"), "cake").unwrap();
        assert_eq!(tree(Direction::Download, (&whole, &whole), &[&only]), Ok(whole.clone()));
        assert!(simnel_core::qdisc::parse(&words).is_ok_and(|config| config.to_string() == words));
        // A cap above this line, since another one is faster: a tenth is of what it can be here.
        let wide =
            planted(Some("10mbit"), "cake", &["address = \"10.0.0.1\"\nupload = \"50mbit\""]);
        assert!(
            wide.as_ref().unwrap().contains("class :11 parent :1 rate 1Mbit ceil 10Mbit"),
            "{wide:?}"
        );
        let ptm = planted(Some("65mbit"), "cake bridged-ptm", &[guests]).unwrap();
        assert!(ptm.contains("class :1 rate 64Mbit"), "{ptm}");
    }

    #[test]
    fn errors_name_the_share_and_the_key() {
        for (text, expected) in [
            ("upload = \"1mbit\"", "no host is named"),
            ("address = \"10.0.0.1\"", "nothing is shared"),
            ("address = \"10.0.0.1\"\nupload = \"10\"", "did you mean `10mbit`?"),
            ("address = \"10.0.0.1\"\nupload = \"4mbit..1mbit\"", "say `1mbit..4mbit`"),
            ("address = \"10.0.0.x\"\nupload = \"4mbit\"", "`address = \"10.0.0.x\"`"),
            ("mac = \"02\"\nupload = \"4mbit\"", "`mac = \"02\"`"),
            ("address = \"10.0.0.1\"\nupload = \"4mbit\"\nhours = \"22\"", "`hours = \"22\"`"),
            ("address = \"10.0.0.1\"\nupload = \"unlimited\"", "limits nothing"),
            ("address = \"10.0.0.1\"\nupload = \"10%\"", "such as \"2mbit..8mbit\""),
            ("name = \"a\\nb\"\naddress = \"10.0.0.1\"\nupload = \"1mbit\"", "`name = \"a\\nb\"`"),
        ] {
            let error = share(3, text).expect_err(text);
            assert!(error.starts_with("share 3: ") && error.contains(expected), "{error}");
        }
        let one = "address = \"10.0.0.1\"\nupload = \"4mbit..5mbit\"";
        let most = one.replace("4mbit..5mbit", "9mbit..10mbit");
        assert!(planted(Some("10mbit"), "cake", &[&most]).is_ok(), "a tenth is left");
        for (rate, words, expected) in [
            (Some("4mbit"), "cake", "less than a tenth"),
            (None, "cake", "set `upload`"),
            (None, "htb rate 9mbit burst 15k sfq", "`htb` says a rate of its own"),
        ] {
            let error = planted(rate, words, &[one]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
