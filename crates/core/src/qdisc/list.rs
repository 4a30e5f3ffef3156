//! Everything that follows from the list of disciplines: modules, [`Config`](super::Config),
//! [`Detail`](super::Detail) and the table of names. Calls on a `Config` or a `Detail` lead from
//! here to the discipline that it is of.

/// Takes a line a discipline, `module: Variant,`: a module beside this one whose `Params` are
/// [`Described`](super::Described), and what it is called in `Config`. The order is that of
/// help texts. rustfmt does not look into macros: `scripts/format.sh` shows it these modules.
macro_rules! disciplines {
    ($($(#[$when:meta])* $module:ident: $variant:ident,)*) => {
        $($(#[$when])* pub mod $module;)*

        /// A discipline with its settings.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)] // Cloned at configuration time only.
        pub enum Config {
            $(
                $(#[$when])*
                #[doc = concat!("Of [`mod@", stringify!($module), "`].")]
                $variant($module::Params),
            )*
        }

        /// Counters of a discipline beyond [`Totals`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(rename_all = "snake_case")
        )]
        #[allow(clippy::large_enum_variant)] // A snapshot is one flat copy, without a heap.
        pub enum Detail {
            $(
                $(#[$when])*
                #[doc = concat!("Of [`mod@", stringify!($module), "`].")]
                $variant(<$module::Params as Described>::Stats),
            )*
        }

        impl Detail {
            /// The writers of its own statistics.
            fn own(&self) -> &dyn OwnStats {
                match self { $($(#[$when])* Detail::$variant(stats) => stats,)* }
            }

            /// Writes its statistics as Linux does, where Linux has the discipline.
            fn write_netlink(&self, out: &mut Writer<'_>) {
                match self {
                    $(
                        $(#[$when])*
                        Detail::$variant(stats) => {
                            if let Some(abi) = <$module::Params as Described>::NETLINK {
                                abi.statistics.write(stats, out);
                            }
                        }
                    )*
                }
            }
        }

        /// [`Described`] for settings of any discipline.
        impl Config {
            /// The name of the discipline.
            pub fn name(&self) -> &'static str {
                match self { $($(#[$when])* Config::$variant(params) => params.name(),)* }
            }

            /// Writes the settings as words, without the discipline's name. With [`Digits::AsTc`]
            /// they are exactly what `tc qdisc show` prints, with a space after the last word where
            /// `tc` leaves one. With [`Digits::Exact`] they give the same settings when read.
            ///
            /// A cake `target` that was not set by `rtt` has no words, in `tc` as here.
            pub fn write_words(
                &self,
                digits: Digits,
                out: &mut dyn fmt::Write,
            ) -> fmt::Result {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.write_words(digits, out),)*
                }
            }

            fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
                match self { $($(#[$when])* Config::$variant(params) => params.write_json(json),)* }
            }

            /// The settings as `tc` shows them beside `detail`.
            fn show_words(
                &self,
                detail: Option<&Detail>,
                out: &mut dyn fmt::Write,
            ) -> fmt::Result {
                match (self, detail) {
                    $(
                        $(#[$when])*
                        (Config::$variant(params), Some(Detail::$variant(stats))) => {
                            params.show_words(stats, out)
                        }
                    )*
                    _ => self.write_words(Digits::AsTc, out),
                }
            }

            /// The same as members of a JSON object.
            fn show_json(&self, detail: Option<&Detail>, json: &mut Json<'_>) -> fmt::Result {
                match (self, detail) {
                    $(
                        $(#[$when])*
                        (Config::$variant(params), Some(Detail::$variant(stats))) => {
                            params.show_json(stats, json)
                        }
                    )*
                    _ => self.write_json(json),
                }
            }

            /// Writes the settings as netlink attributes, where Linux has the discipline.
            fn write_netlink(&self, detail: Option<&Detail>, out: &mut Writer<'_>) {
                match self {
                    $(
                        $(#[$when])*
                        Config::$variant(params) => {
                            if let Some(abi) = <$module::Params as Described>::NETLINK {
                                let stats = match detail {
                                    Some(Detail::$variant(stats)) => Some(stats),
                                    _ => None,
                                };
                                (abi.write_options)(params, stats, out);
                            }
                        }
                    )*
                }
            }

            /// True if Linux has its statistics as attributes, not as a structure.
            pub fn has_nested_statistics(&self) -> bool {
                match self {
                    $(
                        $(#[$when])*
                        Config::$variant(_) => <$module::Params as Described>::NETLINK
                            .is_some_and(|abi| abi.statistics.is_nested()),
                    )*
                }
            }

            /// Disciplines that stand below.
            pub fn children(&self) -> Vec<(u32, &Config)> {
                match self { $($(#[$when])* Config::$variant(params) => params.children(),)* }
            }

            /// The settings of the same disciplines, to be changed.
            pub fn children_mut(&mut self) -> Vec<&mut Config> {
                match self { $($(#[$when])* Config::$variant(params) => params.children_mut(),)* }
            }

            /// True if there are classes with settings of their own, which the words as `tc`
            /// shows them lack.
            pub fn shows_classes_apart(&self) -> bool {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.shows_classes_apart(),)*
                }
            }

            /// The rate that is never exceeded, if the settings say one.
            pub fn rate(&self) -> Option<Rate> {
                match self { $($(#[$when])* Config::$variant(params) => params.rate(),)* }
            }

            /// The same at another rate; None where no rate, or not that, can be set. `burst` is
            /// the default of shapers with a bucket: one that is as deep gets the new default.
            pub fn with_rate(&self, rate: Rate, burst: fn(Rate) -> u32) -> Option<Config> {
                match self {
                    $(
                        $(#[$when])*
                        Config::$variant(params) => params.with_rate(rate, burst).map(Config::from),
                    )*
                }
            }

            /// Time of the largest packet of `device` at a rate that is kept without any burst.
            pub fn packet_time(&self, device: &Device) -> Option<Span> {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.packet_time(device),)*
                }
            }

            /// True if super-packets are to be queued whole: segments wait and leave together.
            pub fn takes_super_packets(&self) -> bool {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.takes_super_packets(),)*
                }
            }

            fn own_host_prefix(&self) -> Option<u8> {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.own_host_prefix(),)*
                }
            }

            fn own_tells_flows(&self) -> bool {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.own_tells_flows(),)*
                }
            }

            fn filters_acks(&self) -> bool {
                match self { $($(#[$when])* Config::$variant(params) => params.filters_acks(),)* }
            }

            fn is_surely(&self, other: &Config) -> bool {
                match (self, other) {
                    $(
                        $(#[$when])*
                        (Config::$variant(params), Config::$variant(other)) => {
                            params.is_surely(other)
                        }
                    )*
                    _ => false,
                }
            }

            fn own_needs(&self) -> Needs {
                match self { $($(#[$when])* Config::$variant(params) => params.own_needs(),)* }
            }

            fn drops_all(&self, device: &Device) -> Option<String> {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.drops_all(device),)*
                }
            }

            fn drops_first(&self, device: &Device) -> bool {
                match self {
                    $($(#[$when])* Config::$variant(params) => params.drops_first(device),)*
                }
            }

            fn resolve(&mut self, device: &Device) {
                match self { $($(#[$when])* Config::$variant(params) => params.resolve(device),)* }
            }

            fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
                match self { $($(#[$when])* Config::$variant(params) => built(params, device),)* }
            }
        }

        $(
            $(#[$when])*
            impl From<$module::Params> for Config {
                fn from(params: $module::Params) -> Config {
                    Config::$variant(params)
                }
            }

            $(#[$when])*
            impl Listed for $module::Params {
                fn of(config: &Config) -> Option<&Self> {
                    match config {
                        Config::$variant(params) => Some(params),
                        _ => None,
                    }
                }
            }
        )*

        const NAMES: usize = {
            let mut names = 0;
            $($(#[$when])* { names += $module::Params::NAMES.len(); })*
            names
        };

        /// All names, in the order of the list.
        pub(crate) static DISCIPLINES: [Discipline; NAMES] = {
            // Any would do: each is replaced.
            let mut all = [Discipline::of::<fifo::Params>(0); NAMES];
            let mut next = 0;
            $(
                $(#[$when])*
                {
                    let mut nth = 0;
                    while nth < $module::Params::NAMES.len() {
                        all[next] = Discipline::of::<$module::Params>(nth);
                        (next, nth) = (next + 1, nth + 1);
                    }
                }
            )*
            all
        };
    };
}
