//! Paths that drop, mark, delay and repeat at random. Every transfer ends, whole, and the counts of
//! the scoreboard never go wrong (an underflow would panic here).

mod path;

use path::{millis, seconds, Fate, Path};
use proptest::prelude::*;
use simnel_core::random::Random;
use simnel_core::time::Span;
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing, State};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 160 }))]

    #[test]
    fn every_transfer_ends_whole(
        control in 0usize..5,
        switches in 0u32..1024,
        seed in 1u64..1_000_000,
        harm in (0u32..120, 0u32..80, 0u32..30, 0u32..60),
        rtt_ms in 1u64..300,
        ns_per_byte in prop_oneof![Just(0u64), 100u64..8_000],
        limit in 5usize..200,
        writes in prop::collection::vec((1u64..200_000, 0u64..2_000), 1..8),
    ) {
        let on = |bit: u32| switches & 1 << bit != 0;
        let config = Config {
            congestion: CongestionControl::ALL[control],
            ecn: [EcnMode::Off, EcnMode::Passive, EcnMode::On, EcnMode::Accurate]
                [(switches & 3) as usize],
            sack: !(on(2) && on(3)),
            timestamps: !on(3),
            pacing: if on(4) { Pacing::On } else { Pacing::Off },
            nagle: on(5),
            gro_segments: if on(6) { 8 } else { 1 },
            tso_segments: if on(7) { 16 } else { 1 },
            frto: on(8),
            tail_loss_probe: !on(9),
            ..Config::default()
        };
        let mut path = Path::new(&config, millis(rtt_ms));
        path.there.ns_per_byte = ns_per_byte;
        path.there.limit = limit;
        let mut random = Random::new(seed);
        let (drop, late, twice, mark) = harm;
        path.fate = Box::new(move |_, _| match random.below(1_000) {
            n if n < drop => Fate::Drop,
            n if n < drop + late => {
                Fate::Late(Span::from_micros(u64::from(random.below(50_000))))
            }
            n if n < drop + late + twice => Fate::Twice,
            n if n < drop + late + twice + mark => Fate::Mark,
            _ => Fate::Pass,
        });
        path.connect();
        let mut total = 0;
        let mut time = seconds(1);
        for (bytes, pause_ms) in writes {
            path.run_until(time);
            path.a.write(bytes);
            path.drain();
            total += bytes;
            time += millis(pause_ms);
        }
        path.run_until(time);
        path.a.close();
        path.b.close();
        path.drain();
        prop_assert!(path.run_out(seconds(3_600)), "still busy: {:?}", path.a.stats());
        prop_assert_eq!(path.b.received(), total, "{:?}", path.a.stats());
        prop_assert_eq!(path.a.acked(), total);
        prop_assert_eq!(path.a.state(), State::Finished);
        prop_assert_eq!(path.a.stats().in_flight, 0);
    }
}
