//! The right to ask: checked before anything is answered.
//!
//! A page of somebody else in the owner's browser can send requests here, also to loopback. It may
//! not read answers of another origin, unless a name of its own points here (DNS rebinding). So the
//! `Host` must be an address, `localhost`, or this machine's own name.
//!
//! Changes are refused unless they are asked for. They then need the token in a header that only a
//! script of our own page sends. A browser adds it to nothing by itself, so there is nothing to
//! forge (CSRF). For scripts of others, `Origin` and `Sec-Fetch-Site` must not speak of elsewhere,
//! and the body must be JSON, which no form sends. Which paths take a change is the routes' to say.

use std::net::{IpAddr, SocketAddr};

use axum::http::{header, HeaderMap, Method, Uri};
use subtle::ConstantTimeEq;

/// The rules.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    token: Option<String>,
    own_name: String,
    may_change: bool,
}

/// A request's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Only reading is possible.
    Method,
    /// A change that another site may have sent.
    Origin,
    /// A change that is not JSON.
    Kind,
    /// A name that is not ours.
    Host,
    /// No token, or another one.
    Token,
}

impl Guard {
    pub(crate) fn new(token: Option<String>, may_change: bool) -> Guard {
        let own_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Guard { token, own_name: own_name.trim().to_ascii_lowercase(), may_change }
    }

    /// Looks at a request before it is answered.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refused> {
        let is_change = !matches!(*method, Method::GET | Method::HEAD);
        if is_change && !(*method == Method::POST && self.may_change) {
            return Err(Refused::Method);
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_ours(host)) {
            return Err(Refused::Host);
        }
        if is_change {
            check_origin(headers)?;
            check_kind(uri, headers)?;
        }
        // Changes without a token do not happen, whatever was asked for.
        let Some(token) = &self.token else {
            return if is_change { Err(Refused::Token) } else { Ok(()) };
        };
        if !is_change && is_public(uri) {
            return Ok(());
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let bearer = bearer.map(|(_, given)| given);
        // The page has it in its address, and the stream of events can have no header.
        let query = uri.query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.strip_prefix("token=")).next();
        let query = query.filter(|_| !is_change);
        match bearer.or(query) {
            Some(given) if bool::from(given.as_bytes().ct_eq(token.as_bytes())) => Ok(()),
            _ => Err(Refused::Token),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || bare.parse::<IpAddr>().is_ok()
            || (!self.own_name.is_empty() && name == self.own_name)
    }
}

/// Paths that say nothing of this machine, or that the page's own links ask for without the token.
pub(crate) fn is_public(uri: &Uri) -> bool {
    matches!(uri.path(), "/app.js" | "/style.css")
}

/// Refuses what a page from elsewhere may have sent.
fn check_origin(headers: &HeaderMap) -> Result<(), Refused> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(origin) = text("origin") {
        let from = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
        if from.is_none() || from != text("host") {
            return Err(Refused::Origin);
        }
    }
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(Refused::Origin);
    }
    Ok(())
}

/// Refuses changes that are no JSON; what takes no changes has an answer of its own.
fn check_kind(uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    match kind {
        _ if !uri.path().starts_with("/api/v1/interfaces/") => Ok(()),
        Some("application/json") => Ok(()),
        _ => Err(Refused::Kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        guard: &Guard,
        method: Method,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.insert(name, value.parse().unwrap());
        }
        guard.check(&method, &uri.parse().unwrap(), &map)
    }

    #[test]
    fn names_of_others_do_not_lead_here() {
        let guard = Guard { token: None, own_name: "router".into(), may_change: false };
        for host in
            ["127.0.0.1:8800", "[::1]:8800", "localhost:8800", "localhost", "ROUTER:8800", "::1"]
        {
            assert_eq!(check(&guard, Method::GET, "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8800", "", "router.example"] {
            let refused = Err(Refused::Host);
            assert_eq!(check(&guard, Method::GET, "/", &[("host", host)]), refused, "{host}");
        }
        assert_eq!(check(&guard, Method::GET, "/", &[]), Err(Refused::Host));
        let post = check(&guard, Method::POST, "/", &[("host", "localhost")]);
        assert_eq!(post, Err(Refused::Method));
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let guard =
            Guard { token: Some("secret".into()), own_name: String::new(), may_change: false };
        let host = ("host", "localhost");
        let asked = |uri, headers: &[(&str, &str)]| check(&guard, Method::GET, uri, headers);
        assert_eq!(asked("/metrics", &[host]), Err(Refused::Token));
        assert_eq!(asked("/?token=secre", &[host]), Err(Refused::Token));
        assert_eq!(asked("/?token=secret", &[host]), Ok(()));
        assert_eq!(asked("/?a=b&token=secret", &[host]), Ok(()));
        assert_eq!(asked("/", &[host, ("authorization", "Bearer secret")]), Ok(()));
        assert_eq!(asked("/", &[host, ("authorization", "bearer secret")]), Ok(()));
        assert_eq!(asked("/", &[host, ("authorization", "Basic secret")]), Err(Refused::Token));
        assert_eq!(
            asked("/?token=secret", &[host, ("authorization", "Bearer x")]),
            Err(Refused::Token)
        );
    }

    #[test]
    fn changes_come_from_our_own_page_only() {
        const KEEP: &str = "/api/v1/interfaces/wan/keep";
        let token = Some("secret".into());
        let guard = Guard { token, own_name: String::new(), may_change: true };
        let host = ("host", "localhost:8730");
        let (bearer, json) =
            (("authorization", "Bearer secret"), ("content-type", "application/json"));
        let asked = |uri, headers: &[(&str, &str)]| check(&guard, Method::POST, uri, headers);
        assert_eq!(asked(KEEP, &[host, bearer, json]), Ok(()));
        let own = [("origin", "http://localhost:8730"), ("sec-fetch-site", "same-origin")];
        assert_eq!(asked(KEEP, &[host, bearer, json, own[0], own[1]]), Ok(()));
        assert_eq!(
            asked("/api/v1/interfaces/wan/keep?token=secret", &[host, json]),
            Err(Refused::Token),
            "not in the address"
        );
        assert_eq!(asked("/metrics", &[host, json]), Err(Refused::Token));
        // It is told that it can only be read, by the list of what there is.
        assert_eq!(asked("/metrics", &[host, bearer]), Ok(()));
        assert_eq!(asked(KEEP, &[host, bearer]), Err(Refused::Kind));
        assert_eq!(
            asked(KEEP, &[host, bearer, ("content-type", "text/plain")]),
            Err(Refused::Kind)
        );
        for origin in ["http://evil.example", "http://localhost:1", "null", "localhost:8730"] {
            let refused = asked(KEEP, &[host, bearer, json, ("origin", origin)]);
            assert_eq!(refused, Err(Refused::Origin), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            let refused = asked(KEEP, &[host, bearer, json, ("sec-fetch-site", site)]);
            assert_eq!(refused, Err(Refused::Origin), "{site}");
        }
        for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
            let refused = check(&guard, method, KEEP, &[host, bearer, json]);
            assert_eq!(refused, Err(Refused::Method));
        }
        let open = Guard { token: None, ..guard };
        let refused = check(&open, Method::POST, KEEP, &[host, bearer, json]);
        assert_eq!(refused, Err(Refused::Token), "no token, no changes");
    }
}
