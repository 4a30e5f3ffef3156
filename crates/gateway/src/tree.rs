//! The classes of a direction with shares, by which it is known again.

use simnel_core::qdisc::{htb, Config};

/// Class of the line as a whole.
pub(crate) const LINE: u16 = 1;
/// Class of all who have no share.
pub(crate) const OTHERS: u16 = 2;
/// Added to the number of a share for its class.
pub(crate) const FIRST: u16 = 0x10;

/// True of what `rules::shares` makes.
pub(crate) fn is_tree(config: &Config) -> bool {
    let Config::Htb(htb::Params { default: OTHERS, classes, .. }) = config else { return false };
    let [line, others, shares @ ..] = &classes[..] else { return false };
    let is_below = |class: &htb::Class| class.parent == Some(LINE);
    let is_share = |class: &htb::Class| is_below(class) && class.id > FIRST;
    (line.id, line.parent, others.id) == (LINE, None, OTHERS)
        && is_below(others)
        && !shares.is_empty()
        && shares.iter().all(is_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody's own words are theirs to change, however alike they look.
    #[test]
    fn only_what_shares_make_is_a_tree_of_shares() {
        let is = |words: &str| is_tree(&simnel_core::qdisc::parse(words).unwrap());
        let line = "class :1 rate 9mbit";
        let others = "class :2 parent :1 rate 8mbit cake";
        let share = "class :11 parent :1 rate 1mbit ceil 4mbit cake";
        assert!(is(&format!("htb default 2 {line} {others} {share}")));
        assert!(is(&format!(
            "htb default 2 {line} {others} {share} {}",
            share.replace("11", "12")
        )));
        for words in [
            format!("htb default 11 {line} {others} {share}"),
            format!("htb default 2 {line} {others}"),
            format!("htb default 2 {line} class :2 rate 8mbit cake {share}"),
            format!("htb default 2 {line} {others} class :11 rate 1mbit cake"),
            format!("htb default 2 {line} {others} {share} class :12 rate 1mbit cake"),
            format!("htb default 2 {line} {others} {}", share.replace("11", "10")),
            format!("htb default 2 class :3 rate 9mbit {others} {share}").replace(":1 ", ":3 "),
            "cake bandwidth 9mbit".into(),
        ] {
            assert!(!is(&words), "{words}");
        }
    }
}
