//! Host names of rules.

use std::fmt;

/// Longest name: with what stands around it, nftables takes it as the name of a set.
const LONGEST: usize = 200;

/// A host name, and all names below it. In lower case, without a final dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Understands a name.
    ///
    /// # Errors
    /// The form that was expected.
    pub(crate) fn read(text: &str) -> Result<HostName, String> {
        const EXPECTED: &str = "a host name such as \"video.example.org\", in ASCII (\"xn--…\")";
        if let Some(below) = text.strip_prefix("*.") {
            return Err(format!("\"{below}\": names below it are included"));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            (1..=63).contains(&label.len()) && label.bytes().all(known)
        };
        // Four numbers are an address.
        let is_name = name.bytes().any(|byte| byte.is_ascii_alphabetic());
        match is_name && name.len() <= LONGEST && name.split('.').all(is_label) {
            true => Ok(HostName(name)),
            false => Err(EXPECTED.into()),
        }
    }

    /// True for itself and names below it, in lower case.
    pub(crate) fn covers(&self, name: &str) -> bool {
        name.strip_suffix(&*self.0).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_what_is_below() {
        let host = HostName::read("Example.org.").unwrap();
        assert_eq!(host.to_string(), "example.org");
        assert!(host.covers("example.org") && host.covers("a.b.example.org"));
        assert!(!host.covers("badexample.org") && !host.covers("org") && !host.covers(""));
    }

    #[test]
    fn what_is_no_name_says_what_to_do() {
        for (text, expected) in [
            ("*.example.org", "\"example.org\": names below it"),
            ("192.0.2.1", "a host name such as"),
            ("exa mple.org", "a host name such as"),
            ("müller.de", "in ASCII"),
            ("a..b", "a host name such as"),
            ("", "a host name such as"),
        ] {
            let error = HostName::read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(HostName::read(&["a"; 101].join(".")).is_err(), "too long for a set");
    }
}
