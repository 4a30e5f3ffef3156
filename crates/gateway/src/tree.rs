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
