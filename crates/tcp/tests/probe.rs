mod path;
use path::*;
use simnel_tcp::*;

#[test]
fn probe_slow_start() {
    let config = Config::default();
    let mut path = Path::new(&config, millis(50));
    path.there.ns_per_byte = 80;
    path.there.limit = 1000;
    path.connect();
    path.a.write_unlimited();
    let mut last = 0;
    let mut buckets = vec![];
    for n in 1..=60u64 {
        path.run_until(simnel_core::Time(n * 10_000_000));
        buckets.push(path.b.received() - last);
        last = path.b.received();
    }
    println!("{buckets:?}");
    for s in 1..=10 {
        path.run_until(seconds(s));
        println!("{s} {:.2} {:?}", path.b.received() as f64*8e-6/ s as f64, path.a.stats());
    }
    println!("{:?}", path.b.stats());
    println!("{}", std::mem::size_of::<Endpoint>());
}
