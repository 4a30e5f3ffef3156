//! Places of pages: `--report PATH` on every command that writes one.
//!
//! A path that ends in .html, or that is a file, is the page; any other is a folder in which the
//! page has the name that it has by default, so that pages of different things stand side by side.

use std::path::{Path, PathBuf};

use miette::miette;
use simnel_lab::files::put;

/// The page's path: as asked for, or `usual` where a page is written unasked.
pub fn page(asked: Option<&Path>, usual: PathBuf, unasked: bool) -> Option<PathBuf> {
    let Some(path) = asked else { return unasked.then_some(usual) };
    let is_html = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    let is_page = !path.is_dir() && (is_html || path.exists());
    Some(match usual.file_name() {
        Some(name) if !is_page => path.join(name),
        _ => path.to_path_buf(),
    })
}

/// Writes a page, or what stands beside one; its folder is made where it is missing.
pub fn store(path: &Path, bytes: &[u8]) -> miette::Result<()> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| put(path, bytes)).map_err(|error| cannot_write(path, &error))
}

/// A page that could not be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> miette::Report {
    let help = "say where it may go: --report, and a path that ends in .html or a folder";
    miette!(help = help, "cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_page_or_a_folder_of_pages() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("there.html")).expect("a folder");
        std::fs::write(at("file"), "").expect("a file");
        let of = |asked: &Path| page(Some(asked), "x/usual.html".into(), false).expect("asked for");
        for (asked, expected) in [
            ("page.html", "page.html"),
            ("page.HTML", "page.HTML"),
            ("new", "new/usual.html"),
            ("new/", "new/usual.html"),
            ("there.html", "there.html/usual.html"),
            ("file", "file"),
        ] {
            assert_eq!(of(&at(asked)), at(expected), "{asked}");
        }
        assert_eq!(of(Path::new("/dev/null")), Path::new("/dev/null"));
        assert_eq!(page(None, "usual.html".into(), true), Some("usual.html".into()));
        assert_eq!(page(None, "usual.html".into(), false), None);
        store(&at("new/deep/page.html"), b"x").expect("folders are made");
    }
}
