//! Text that others wrote, for a terminal or a page.
//!
//! Names, comments and errors come from files and from other programs. A terminal obeys the control
//! characters in them: it can be made to hide lines, to rename its window, to type. Those that
//! reverse the direction of writing ("Trojan Source", CVE-2021-42574) make words look like others.
//! Both are spelt out as in JSON, `\u001b`, so that JSON with them stays what it was.

use core::fmt;

/// True unless a terminal does something else with `c` than to show it. A new line and a tab are
/// shown as what they are.
pub const fn is_printable(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // C0, DELETE and C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => false,
        // Marks, embeddings, overrides and isolates of direction; separators of lines.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => false,
        '\u{2066}'..='\u{2069}' => false,
        _ => true,
    }
}

/// A text whose characters that are not printable are spelt out.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_printable(*c)) {
            f.write_str(&rest[..at])?;
            write!(f, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        for (text, shown) in [
            ("caf\u{e9}\t\u{1f370}\nline", "caf\u{e9}\t\u{1f370}\nline"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("over\rwritten\x08\x7f", "over\\u000dwritten\\u0008\\u007f"),
            ("\u{9b}31m", "\\u009b31m"),
            ("a\u{202e}b\u{2066}c", "a\\u202eb\\u2066c"),
        ] {
            assert_eq!(Printable(text).to_string(), shown);
        }
    }
}
