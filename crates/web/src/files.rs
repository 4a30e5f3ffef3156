//! Files of a folder, for this machine only: the lab's pages, which need a server to come from and
//! nothing else of it.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Component, Path, PathBuf};

use axum::extract::State;
use axum::http::{header, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;

use crate::guard::Guard;
use crate::server::{self, refuse, Rules};
use crate::{Error, Limits};

/// As for the gateway's page; WebAssembly is compiled, and workers run it.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; \
                      worker-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Kinds of files in a folder of pages; others are not given away.
const KINDS: [(&str, &str); 8] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("toml", "text/plain; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("wasm", "application/wasm"),
];

/// Listens, and has not answered yet.
#[derive(Debug)]
pub struct Folder {
    listener: TcpListener,
    root: PathBuf,
}

impl Folder {
    /// Takes a port of 127.0.0.1; 0 is any.
    ///
    /// # Errors
    /// The folder has no page, or the port cannot be had.
    pub fn bind(root: &Path, port: u16) -> Result<Folder, Error> {
        let no_page = |error| Error::NoPage(root.to_owned(), error);
        let real = root.canonicalize().map_err(no_page)?;
        std::fs::File::open(real.join("index.html")).map_err(no_page)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Folder { listener: server::listen(address)?, root: real })
    }

    /// Address at which it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(Error::Start)
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// The listener fails.
    pub fn run(self) -> Result<(), Error> {
        let rules = Rules { guard: Guard::new(None, false), policy: POLICY };
        let router = Router::new().fallback(get(give)).with_state(self.root);
        server::serve(self.listener, rules.before(router), Limits::default())
    }
}

async fn give(State(root): State<PathBuf>, uri: Uri) -> Response {
    let missing = || refuse(StatusCode::NOT_FOUND, "there is no such page");
    let Some(path) = inside(&root, uri.path()) else { return missing() };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == extension) else {
        return missing();
    };
    match std::fs::read(&path) {
        Ok(bytes) => ([(header::CONTENT_TYPE, *kind)], bytes).into_response(),
        Err(error) if error.kind() == ErrorKind::NotFound => missing(),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "this page cannot be read"),
    }
}

/// The file that `path` of an address means; None if that is outside of `root`, also by a link.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let is_plain = |part| matches!(part, Component::Normal(_));
    let mut file = path.components().all(is_plain).then(|| root.join(path))?;
    if file.is_dir() {
        file.push("index.html");
    }
    file.canonicalize().ok().filter(|file| file.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_folder_is_given_away() {
        let room = tempfile::tempdir().expect("a directory");
        let root = room.path().canonicalize().expect("a path").join("pages");
        std::fs::create_dir_all(root.join("more")).expect("folders");
        for file in ["secret.html", "pages/index.html", "pages/more/index.html"] {
            std::fs::write(room.path().join(file), "").expect("a file");
        }
        std::os::unix::fs::symlink("../secret.html", root.join("link.html")).expect("a link");
        assert_eq!(inside(&root, "/"), Some(root.join("index.html")));
        assert_eq!(inside(&root, "/more"), Some(root.join("more/index.html")));
        for path in ["/../secret.html", "//etc/passwd", "/link.html", "/none.html", "index.html"] {
            assert_eq!(inside(&root, path), None, "{path}");
        }
    }

    #[test]
    fn a_folder_without_a_page_is_refused() {
        let room = tempfile::tempdir().expect("a directory");
        let error = Folder::bind(room.path(), 0).expect_err("no page");
        assert!(error.to_string().contains("make site"), "{error}");
    }
}
