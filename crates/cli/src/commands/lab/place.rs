//! Places of what is written: `--report PATH` on every command that writes a page.
//!
//! A path that ends in .html, or that is a device, is the page; any other is a folder in which the
//! page has the name that it has by default, so that pages of different things stand side by side.
//! A file of another kind is not overwritten: it is what somebody forgot to say -o before.

use std::path::{Path, PathBuf};

use miette::miette;
use simnel_lab::files::{is_same, put};

use super::misuse_with_help;

/// The page's path: as asked for, or `usual` where a page is written unasked. To be asked before
/// what takes time.
pub fn page(
    asked: Option<&Path>,
    usual: PathBuf,
    unasked: bool,
) -> miette::Result<Option<PathBuf>> {
    let Some(path) = asked else { return Ok(unasked.then_some(usual)) };
    let is_html = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    if path.is_file() && !is_html {
        let what = format!("{} is there already, and is no page", path.display());
        return Err(misuse_with_help(what, "a path that ends in .html, or a folder"));
    }
    let is_page = !path.is_dir() && (is_html || path.exists());
    Ok(Some(match usual.file_name() {
        Some(name) if !is_page => path.join(name),
        _ => path.to_path_buf(),
    }))
}

/// Refuses to write to `path` if that is one of the files that are `read`.
pub fn apart<'a>(path: &Path, read: impl IntoIterator<Item = &'a Path>) -> miette::Result<()> {
    match read.into_iter().find(|read| is_same(path, read)) {
        None => Ok(()),
        Some(read) => {
            let what = format!("{} would overwrite {}", path.display(), read.display());
            Err(misuse_with_help(what, "another name for what is written"))
        }
    }
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
        let asked = |asked: &Path| page(Some(asked), "x/usual.html".into(), false);
        let of = |path: &Path| asked(path).expect("a place").expect("asked for");
        for (asked, expected) in [
            ("page.html", "page.html"),
            ("page.HTML", "page.HTML"),
            ("new", "new/usual.html"),
            ("new/", "new/usual.html"),
            ("there.html", "there.html/usual.html"),
        ] {
            assert_eq!(of(&at(asked)), at(expected), "{asked}");
        }
        assert_eq!(of(Path::new("/dev/null")), Path::new("/dev/null"));
        let refused = asked(&at("file")).expect_err("a file of another kind");
        assert!(refused.to_string().ends_with("file is there already, and is no page"));
        let unasked = |unasked| page(None, "usual.html".into(), unasked).expect("no path");
        assert_eq!((unasked(true), unasked(false)), (Some("usual.html".into()), None));
        store(&at("new/deep/page.html"), b"x").expect("folders are made");
    }
}
