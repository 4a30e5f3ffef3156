//! The summary as text: a line for each discipline, then who got what.

use std::io::{self, Write};

use simnel_lab::conformance::replay::{Quantiles, Shares, Summary};

/// Writes the tables.
pub fn write(summaries: &[Summary], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  discipline",
        "packets", "sent", "dropped", "marked", "p50 ms", "p95 ms", "p99 ms", "max ms", "Jain"
    )?;
    for summary in summaries {
        let time = |which: fn(&Quantiles) -> u64| {
            summary.sojourn_ns.as_ref().map_or_else(|| "-".into(), |times| millis(which(times)))
        };
        let [p50, p95] = [time(|times| times.p50), time(|times| times.p95)];
        let [p99, max] = [time(|times| times.p99), time(|times| times.max)];
        let Summary { packets, sent, dropped, marked, .. } = summary;
        writeln!(
            out,
            "{packets:>10} {sent:>10} {dropped:>9} {marked:>9} {p50:>9} {p95:>9} {p99:>9} {max:>9} \
             {:>6}  {}",
            index(summary.flows.jain),
            described(summary)
        )?;
    }
    for summary in summaries {
        writeln!(out, "\n{}", described(summary))?;
        shares("flows", &summary.flows, out)?;
        shares("sources", &summary.sources, out)?;
        shares("destinations", &summary.destinations, out)?;
    }
    Ok(())
}

fn described(summary: &Summary) -> String {
    let mut text = summary.qdisc.clone();
    if let Some(bits) = summary.line_bits {
        text += &format!(", line of {} Mbit/s", bits as f64 / 1e6);
    }
    if summary.ack_filtered > 0 {
        text += &format!(", {} acknowledgements filtered", summary.ack_filtered);
    }
    if summary.queued > 0 {
        text += &format!(", {} still queued", summary.queued);
    }
    text
}

fn shares(what: &str, shares: &Shares, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "  {} {what}, Jain's index {}", shares.count, index(shares.jain))?;
    match shares.summed_up {
        0 => writeln!(out)?,
        many => writeln!(out, " ({many} of them not told apart, to bound memory)")?,
    }
    for line in &shares.top {
        writeln!(
            out,
            "  {:>7.2} % {:>13} bytes {:>10} sent {:>8} dropped {:>8} marked  {}",
            line.share * 100.0,
            line.bytes,
            line.sent,
            line.dropped,
            line.marked,
            line.name
        )?;
    }
    Ok(())
}

fn index(index: Option<f64>) -> String {
    index.map_or_else(|| "-".into(), |index| format!("{index:.3}"))
}

fn millis(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}
