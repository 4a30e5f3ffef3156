//! Names by pattern, as ledgers of known differences and findings give them.

/// True if `name` fits `pattern`, in which `*` stands for any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len())
                .filter(|at| name.is_char_boundary(*at))
                .any(|at| fits(rest, &name[at..]))
        }),
    }
}
