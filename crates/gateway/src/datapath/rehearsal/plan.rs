//! A case: a number, and the kinds of trouble that are in it.

use std::fmt;
use std::str::FromStr;

macro_rules! troubles {
    ($($kind:ident $name:literal,)*) => {
        /// Kinds of trouble, and of requests by others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Trouble { $($kind),* }

        impl Trouble {
            pub(super) const ALL: &'static [(Trouble, &'static str)] =
                &[$((Trouble::$kind, $name)),*];
        }
    };
}

troubles! {
    Lost "lost",
    Repeated "repeated",
    Noise "noise",
    ReceiveFails "receive-fails",
    Refused "refused",
    Late "late",
    Stopped "stopped",
    Spurious "spurious",
    Suspended "suspended",
    Starved "starved",
    Vanish "vanish",
    ShortQueue "short-queue",
    Bypassed "bypassed",
    Reports "reports",
    Changes "changes",
    Replacements "replacements",
    Drains "drains",
}

/// A case; everything in it follows from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    troubles: u32,
}

impl Plan {
    /// Case `seed`, with some of all trouble.
    pub(super) fn new(seed: u64) -> Plan {
        Plan { seed, troubles: (1 << Trouble::ALL.len()) - 1 }
    }

    #[inline]
    pub(super) fn has(&self, trouble: Trouble) -> bool {
        self.troubles >> trouble as u32 & 1 == 1
    }

    /// The same case without such trouble.
    pub(super) fn without(self, trouble: Trouble) -> Plan {
        Plan { troubles: self.troubles & !(1 << trouble as u32), ..self }
    }

    /// The same case with one kind of trouble less, for each kind.
    pub(super) fn smaller(self) -> impl Iterator<Item = Plan> {
        let there = Trouble::ALL.iter().filter(move |(kind, _)| self.has(*kind));
        there.map(move |(kind, _)| self.without(*kind))
    }
}

/// `SEED:KIND,KIND...`
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Trouble::ALL
            .iter()
            .filter(|(kind, _)| self.has(*kind))
            .map(|(_, name)| *name)
            .collect();
        write!(f, "{}:{}", self.seed, names.join(","))
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Plan, String> {
        let (seed, names) = text.split_once(':').unwrap_or((text, "all"));
        let seed = seed.parse().map_err(|_| format!("`{seed}` is not a number"))?;
        if names == "all" {
            return Ok(Plan::new(seed));
        }
        let mut troubles = 0;
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let kind = Trouble::ALL.iter().find(|(_, known)| *known == name);
            let (kind, _) = kind.ok_or_else(|| format!("no trouble is called `{name}`"))?;
            troubles |= 1 << *kind as u32;
        }
        Ok(Plan { seed, troubles })
    }
}
