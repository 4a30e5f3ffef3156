//! Places of what is written: `--report PATH` on every command that writes a page.
//!
//! A path that ends in .html, or that is a device, is the page. Any other is a folder in which the
//! page has its usual name, so that pages of different things stand side by side. That name says
//! what was asked. At its end a page has a mark of the command that made it, and of what files. A
//! page with a usual name is not overwritten by one of another command, or of other files. Nor is a
//! file of another kind overwritten: it is what somebody forgot to say -o before.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use miette::miette;
use simnel_lab::files::{is_same, put};

use super::misuse_with_help;

/// Most bytes of a page's name: file systems have 255, and its ends take some.
const NAME: usize = 200;
/// The beginning of a page's mark.
const MARK: &str = "<!-- made by simnel ";
/// Bytes at the end of a page within which its mark lies.
const END: usize = 128;

/// A page that is to be written.
#[derive(Debug)]
pub struct Page {
    /// Its path.
    pub path: PathBuf,
    /// The command that makes it.
    by: &'static str,
    /// The files that it is made of.
    of: Vec<PathBuf>,
}

/// The page: as asked for, or `usual` where one is written unasked; made by the command `by` of the
/// files `of`. To be asked before what takes time.
pub fn page(
    by: &'static str,
    asked: Option<&Path>,
    usual: PathBuf,
    unasked: bool,
    of: &[PathBuf],
) -> miette::Result<Option<Page>> {
    // What comes by a pipe or a device has another path each time.
    let of = of.iter().filter(|file| !file.starts_with("/dev")).cloned().collect();
    let path = match asked {
        None if !unasked => return Ok(None),
        None => usual,
        Some(path) => {
            let is_html = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
            if path.is_file() && !is_html {
                let what = format!("{} is there already, and is no page", path.display());
                return Err(misuse_with_help(what, "a path that ends in .html, or a folder"));
            }
            match usual.file_name() {
                Some(name) if path.is_dir() || !is_html && !path.exists() => path.join(name),
                _ => return Ok(Some(Page { path: path.to_path_buf(), by, of })),
            }
        }
    };
    let page = Page { path, by, of };
    if page.is_of_others() {
        let what = format!(
            "{} is there already, made by another command or of another file",
            page.path.display()
        );
        return Err(misuse_with_help(what, "--report, and another folder or a path with .html"));
    }
    Ok(Some(page))
}

impl Page {
    /// Writes it.
    pub fn store(&self, mut text: String) -> miette::Result<()> {
        let path = &self.path;
        make_folder(path).map_err(|error| cannot_write(path, &error))?;
        text.insert_str(text.rfind("</html>").unwrap_or(text.len()), &self.mark());
        store(path, text.as_bytes())
    }

    /// True if a page at its path has a mark that is not its own.
    fn is_of_others(&self) -> bool {
        let there = match self.path.is_file() {
            true => std::fs::read(&self.path).unwrap_or_default(),
            false => return false,
        };
        let end = String::from_utf8_lossy(&there[there.len().saturating_sub(END)..]);
        end.contains(MARK) && !end.contains(&self.mark())
    }

    /// The command, and the hash of its files' paths, as they lead from the page's folder. So page
    /// and files may move together, and a page that is given away names no folders.
    fn mark(&self) -> String {
        let paths: Vec<u8> = self.of.iter().flat_map(|file| self.way_to(file)).collect();
        format!("{MARK}{}: {:016x} -->", self.by, hash(&paths))
    }

    /// The path to `file` from the page's folder, and a zero; empty if a folder is not there.
    fn way_to(&self, file: &Path) -> Vec<u8> {
        let (Some(from), Some(to), Some(name)) =
            (folder(&self.path), folder(file), file.file_name())
        else {
            return Vec::new();
        };
        let file = to.join(name);
        let common = file.components().zip(from.components()).take_while(|(a, b)| a == b).count();
        let up = from.components().skip(common).map(|_| OsStr::new(".."));
        let down = file.components().skip(common).map(|part| part.as_os_str());
        let mut way = up.chain(down).collect::<PathBuf>().into_os_string().into_encoded_bytes();
        way.push(0);
        way
    }
}

/// The whole path of the folder of `path`, if it is there.
fn folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    folder.canonicalize().ok()
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The page's name by what was asked; of more than file systems take the beginning, and a hash.
pub fn named(what: &str) -> PathBuf {
    let mut end = what.len().min(NAME);
    while !what.is_char_boundary(end) {
        end -= 1;
    }
    match end == what.len() {
        true => format!("{what}.html").into(),
        false => format!("{}-{:016x}.html", &what[..end], hash(what.as_bytes())).into(),
    }
}

/// Disciplines' words for a name.
pub fn words(disciplines: &[String]) -> String {
    disciplines.join(" ").replace(['{', '}'], "")
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

/// Writes what stands beside a page; its folder is made where it is missing.
pub fn store(path: &Path, bytes: &[u8]) -> miette::Result<()> {
    let written = make_folder(path).and_then(|()| put(path, bytes));
    written.map_err(|error| cannot_write(path, &error))
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
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
        let asked = |asked: &Path| page("sim", Some(asked), "x/usual.html".into(), false, &[]);
        let of = |path: &Path| asked(path).expect("a place").expect("asked for").path;
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
        let unasked =
            |unasked| page("sim", None, "usual.html".into(), unasked, &[]).expect("no path");
        assert_eq!(unasked(true).map(|page| page.path), Some("usual.html".into()));
        assert!(unasked(false).is_none());
        store(&at("new/deep/page.html"), b"x").expect("folders are made");
    }

    #[test]
    fn a_name_is_not_taken_from_a_page_of_other_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        for folder in ["a", "b"] {
            std::fs::create_dir(at(folder)).expect("a folder");
            std::fs::write(at(folder).join("x.toml"), "").expect("a file");
        }
        let asked = |path: &str, of: &str| {
            page("sim", Some(&at(path)), "x.html".into(), false, &[at(of)])
                .map(|page| page.expect("asked for"))
        };
        let write = |path, of| asked(path, of).expect("its own").store("<html></html>".into());
        write("pages", "a/x.toml").expect("a new page");
        write("pages", "a/x.toml").expect("the same again");
        let refused = asked("pages", "b/x.toml").expect_err("of the other folder").to_string();
        assert!(refused.contains("x.html is there already, made by another"), "{refused}");
        let other = |by| page(by, Some(&at("pages")), "x.html".into(), false, &[at("a/x.toml")]);
        other("plot").expect_err("of another command");
        // Nor does one of no files take it, or lose its own.
        let bare = |by| page(by, Some(&at("pages")), "x.html".into(), false, &[]);
        bare("test").expect_err("of another command");
        let written = |page: miette::Result<Option<Page>>| page.expect("free").expect("asked for");
        let test = page("test", Some(&at("bare")), "x.html".into(), false, &[]);
        written(test).store("<html></html>".into()).expect("a new page");
        asked("bare", "a/x.toml").expect_err("of another command");
        // Said in full it is taken, and a page without a mark is nobody's.
        write("pages/x.html", "b/x.toml").expect("said in full");
        std::fs::write(at("pages/x.html"), "<html></html>").expect("a file");
        asked("pages", "a/x.toml").expect("nobody's");
        // Scenario and pages may move together.
        write("pages/x.html", "a/x.toml").expect("said in full");
        std::fs::create_dir(at("moved")).expect("a folder");
        for folder in ["a", "pages"] {
            std::fs::rename(at(folder), at("moved").join(folder)).expect("a folder");
        }
        asked("moved/pages", "moved/a/x.toml").expect("still its own");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_one_of_its_own() {
        assert_eq!(named("x-pie"), Path::new("x-pie.html"));
        let long = |end: &str| named(&("é".repeat(150) + end));
        assert!(long("a").as_os_str().len() < 255 && long("a") != long("b"));
    }
}
