//! Tables for a terminal, no wider than it is.

use std::ops::Range;

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};

/// `rows`, the first of them a heading. `numbers` are the columns that stand to the right. Words
/// are broken where `width` columns are too few; None: nobody looks.
pub fn table(rows: &[Vec<String>], numbers: Range<usize>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table.add_rows(rows);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&n) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
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
    }
}
