//! Who may ask: checked before anything is answered.
//!
//! A page of somebody else in the owner's browser can send requests here, also to loopback. It may
//! not read answers of another origin, unless a name of its own points here (DNS rebinding): so the
//! `Host` must be an address, `localhost`, or this machine's own name. Nothing here changes
//! anything, so there is nothing to forge.

use std::net::{IpAddr, SocketAddr};

use axum::http::{header, HeaderMap, Method, Uri};
use subtle::ConstantTimeEq;

/// The rules.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    token: Option<String>,
    own_name: String,
}

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Only reading is possible.
    Method,
    /// A name that is not ours.
    Host,
    /// No token, or another one.
    Token,
}

impl Guard {
    pub(crate) fn new(token: Option<String>) -> Guard {
        let own_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Guard { token, own_name: own_name.trim().to_ascii_lowercase() }
    }

    /// Looks at a request before it is answered.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refused> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(Refused::Method);
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_ours(host)) {
            return Err(Refused::Host);
        }
        let Some(token) = &self.token else { return Ok(()) };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        // The page has it in its address, and the stream of events can have no header.
        let query = uri.query().unwrap_or_default().split('&');
        let query = query.filter_map(|pair| pair.strip_prefix("token=")).next();
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
        let guard = Guard { token: None, own_name: "router".into() };
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
        let guard = Guard { token: Some("secret".into()), own_name: String::new() };
        let host = ("host", "localhost");
        let asked = |uri, headers: &[(&str, &str)]| check(&guard, Method::GET, uri, headers);
        assert_eq!(asked("/metrics", &[host]), Err(Refused::Token));
        assert_eq!(asked("/?token=secre", &[host]), Err(Refused::Token));
        assert_eq!(asked("/?token=secret", &[host]), Ok(()));
        assert_eq!(asked("/?a=b&token=secret", &[host]), Ok(()));
        assert_eq!(asked("/", &[host, ("authorization", "Bearer secret")]), Ok(()));
        assert_eq!(
            asked("/?token=secret", &[host, ("authorization", "Bearer x")]),
            Err(Refused::Token)
        );
    }
}
