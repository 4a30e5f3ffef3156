//! Tables for a terminal, no wider than it is.

use std::ops::Range;

use comfy_table::{presets, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// Sentence about repetitions that differ in nothing but their seed.
pub const ALIKE: &str = "The seeds make no difference here: all repetitions are the same run.";
/// Longer words may be broken: paths, addresses.
const LONGEST_WORD: usize = 14;
/// Blanks between columns.
const GAP: u16 = 2;

/// `rows`, the first of them a heading. `numbers` are the columns that stand to the right. Cells
/// are broken at blanks where `width` columns are too few; a table whose words need more is wider.
/// None: nobody looks.
pub fn table(rows: &[Vec<String>], numbers: Range<usize>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table.add_rows(rows);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        let least = widest(rows, n, longest_word) as u16 + GAP;
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        if numbers.contains(&n) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// True if `rows` with each cell in one line are no wider than `width`.
pub fn fits(rows: &[Vec<String>], width: Option<u16>) -> bool {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide: usize = (0..columns).map(|n| widest(rows, n, letters) + usize::from(GAP)).sum();
    width.is_none_or(|width| wide <= usize::from(width + GAP))
}

/// The greatest width in column `n`.
fn widest(rows: &[Vec<String>], n: usize, of: fn(&str) -> usize) -> usize {
    rows.iter().filter_map(|row| row.get(n)).map(|cell| of(cell)).max().unwrap_or(0)
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// Letters of the longest word that is not to be broken.
fn longest_word(cell: &str) -> usize {
    cell.split(' ').map(letters).max().unwrap_or(0).min(LONGEST_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_it_may_be() {
        let words = "what is said at some length about a measure of a discipline".to_string();
        let rows = [vec!["claim".into(), "value".into()], vec![words.clone(), "12.3".into()]];
        let whole = table(&rows, 1..2, None);
        assert!(whole.contains(&words) && whole.contains("value\n"), "{whole}");
        let narrow = table(&rows, 1..2, Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert_eq!(narrow.split_whitespace().count(), whole.split_whitespace().count());
        assert!(fits(&rows, None) && fits(&rows, Some(66)) && !fits(&rows, Some(65)));
    }
}
