//! Choice of the columns of a table that a screen has room for.
//!
//! A column is whole or missing: a number that lacks a digit would be another one. Columns leave
//! by their rank, the highest first.

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Characters that it needs.
    pub least: u16,
    /// Part of the room that is left over.
    pub share: u16,
    /// The column of rank 0 stays, whatever the width.
    pub rank: usize,
}

impl Column {
    /// One that gets no more than it needs.
    pub const fn fixed(least: u16, rank: usize) -> Column {
        Column { least, share: 0, rank }
    }
}

/// The width of each column within `width` characters, with a space between two; none if there is
/// no room.
pub fn fit(columns: &[Column], width: u16) -> Vec<Option<u16>> {
    let needs = |most: usize| -> u16 {
        let there = columns.iter().filter(|column| column.rank <= most);
        there.map(|column| column.least + 1).sum::<u16>().saturating_sub(1)
    };
    let most = (0..columns.len()).rev().find(|most| needs(*most) <= width).unwrap_or(0);
    let shares: u16 = columns.iter().filter(|c| c.rank <= most).map(|c| c.share).sum();
    let room = width.saturating_sub(needs(most));
    let of = |column: &Column| {
        let more = room.checked_div(shares).unwrap_or(0) * column.share;
        (column.rank <= most).then_some((column.least + more).min(width))
    };
    columns.iter().map(of).collect()
}

/// `text` in `width` characters; an ellipsis tells that there is more of it.
pub fn cut(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(Some('…')).take(width).collect()
}
