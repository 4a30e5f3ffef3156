//! A writer of compact JSON: no spaces, commas where they belong, strings escaped.

use core::fmt::{self, Write};

/// Writes one JSON document, piece by piece. Every `begin` needs its `end`.
pub struct Json<'w> {
    out: &'w mut dyn Write,
    /// Something stands before the next piece that a comma must divide it from.
    comma: bool,
}

impl<'w> Json<'w> {
    /// A writer at the start of a document.
    pub fn new(out: &'w mut dyn Write) -> Json<'w> {
        Json { out, comma: false }
    }

    fn divide(&mut self) -> fmt::Result {
        if core::mem::replace(&mut self.comma, true) {
            self.out.write_char(',')?;
        }
        Ok(())
    }

    fn open(&mut self, bracket: char) -> fmt::Result {
        self.divide()?;
        self.comma = false;
        self.out.write_char(bracket)
    }

    fn close(&mut self, bracket: char) -> fmt::Result {
        self.comma = true;
        self.out.write_char(bracket)
    }

    /// Opens an object.
    pub fn begin_object(&mut self) -> fmt::Result {
        self.open('{')
    }

    /// Closes an object.
    pub fn end_object(&mut self) -> fmt::Result {
        self.close('}')
    }

    /// Opens an array.
    pub fn begin_array(&mut self) -> fmt::Result {
        self.open('[')
    }

    /// Closes an array.
    pub fn end_array(&mut self) -> fmt::Result {
        self.close(']')
    }

    /// The name of the member that the next piece is the value of.
    pub fn key(&mut self, name: &str) -> Result<&mut Json<'w>, fmt::Error> {
        self.string(name)?;
        self.comma = false;
        self.out.write_char(':')?;
        Ok(self)
    }

    /// A string.
    pub fn string(&mut self, text: &str) -> fmt::Result {
        self.divide()?;
        self.out.write_char('"')?;
        for c in text.chars() {
            match c {
                '"' => self.out.write_str("\\\"")?,
                '\\' => self.out.write_str("\\\\")?,
                '\n' => self.out.write_str("\\n")?,
                '\r' => self.out.write_str("\\r")?,
                '\t' => self.out.write_str("\\t")?,
                c if c < ' ' => write!(self.out, "\\u{:04x}", u32::from(c))?,
                c => self.out.write_char(c)?,
            }
        }
        self.out.write_char('"')
    }

    /// A string that formats itself.
    pub fn display(&mut self, value: impl fmt::Display) -> fmt::Result {
        self.string(&alloc::format!("{value}"))
    }

    /// A number.
    pub fn number(&mut self, n: u64) -> fmt::Result {
        self.divide()?;
        write!(self.out, "{n}")
    }

    /// A number that writes itself.
    pub fn raw(&mut self, write: impl FnOnce(&mut dyn Write) -> fmt::Result) -> fmt::Result {
        self.divide()?;
        write(self.out)
    }

    /// The members of `object`, which is JSON already, as members of the open object.
    pub fn members(&mut self, object: &str) -> fmt::Result {
        let inner = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match inner.unwrap_or_default().trim() {
            "" => Ok(()),
            members => self.raw(|out| out.write_str(members)),
        }
    }

    /// A number that may be negative.
    pub fn signed(&mut self, n: i64) -> fmt::Result {
        self.divide()?;
        write!(self.out, "{n}")
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, value: bool) -> fmt::Result {
        self.divide()?;
        write!(self.out, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn commas_and_escapes() {
        let mut out = String::new();
        let mut json = Json::new(&mut out);
        let write = |json: &mut Json<'_>| -> fmt::Result {
            json.begin_array()?;
            json.begin_object()?;
            json.key("a\"\\\u{1}\n")?.string("ü\u{1f}\t\r")?;
            json.key("b c")?.begin_array()?;
            json.number(1)?;
            json.signed(-2)?;
            json.boolean(true)?;
            json.end_array()?;
            json.key("c")?.begin_object()?;
            json.members(" {} ")?;
            json.end_object()?;
            json.members("{\"d\":1,\"e\":{}}")?;
            json.end_object()?;
            json.number(3)?;
            json.end_array()
        };
        write(&mut json).unwrap();
        let expected =
            r#"[{"a\"\\\u0001\n":"ü\u001f\t\r","b c":[1,-2,true],"c":{},"d":1,"e":{}},3]"#;
        assert_eq!(out, expected);
    }
}
