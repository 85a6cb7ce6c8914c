//! The evidence on one screen, for people. It judges nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::billing::Pressure;
use crate::evidence::{Charge, Evidence, Phase};

impl Evidence {
    /// One line of the table.
    fn row(&self, name: &str, at_once: usize, charges: &[&Charge]) -> String {
        let mut took = Vec::new();
        let mut replies = BTreeMap::new();
        for charge in charges {
            if let Ok(server) = &charge.ended.end {
                took.push(charge.ended.took);
                *replies.entry(server.as_str()).or_insert(0) += 1;
            }
        }
        let (fired, answered) = (charges.len(), took.len());
        let (p50, p99, max) = (
            percentile(&mut took, 50),
            percentile(&mut took, 99),
            percentile(&mut took, 100),
        );
        let share = |server| match replies.get(server) {
            Some(replies) => format!("{:>5}%", (replies * 100 + answered / 2) / answered),
            None => "     -".to_owned(),
        };
        let shares: String = self.journals.iter().map(|it| share(it.server)).collect();
        format!(
            "{name:<6} {fired:>8} {answered:>8} {:>7} {at_once:>8} {p50:>9} {p99:>9} {max:>9} {shares}",
            fired - answered
        )
    }

    /// How many failed of each kind, how many of these had begun to run, and how long it took at most to know.
    fn errors(&self) -> BTreeMap<String, (usize, usize, Duration)> {
        let mut errors = BTreeMap::new();
        for charge in &self.charges {
            if let Err(failure) = &charge.ended.end {
                let ran = if failure.not_executed { "NotExecuted" } else { "Unknown" };
                let (count, begun, slowest) = errors.entry(format!("{} ({ran})", failure.kind)).or_default();
                *count += 1;
                *begun += charge.ran.len();
                *slowest = charge.ended.took.max(*slowest);
            }
        }
        errors
    }

    /// The 99th percentile of the replies of these servers during the flood.
    fn in_the_flood(&self, from: impl Fn(&str) -> bool) -> String {
        let flood = self.charges.iter().filter(|it| it.ended.phase == Phase::Flood);
        let replies = flood.filter(|it| it.ended.end.as_ref().is_ok_and(|server| from(server)));
        percentile(&mut replies.map(|it| it.ended.took).collect::<Vec<_>>(), 99)
    }
}

fn percentile(took: &mut [Duration], percent: usize) -> String {
    took.sort_unstable();
    let at = (took.len() * percent).div_ceil(100).saturating_sub(1);
    took.get(at)
        .map_or("-".to_owned(), |took| format!("{:.1} ms", took.as_secs_f64() * 1e3))
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: String = self.journals.iter().map(|it| format!("{:>6}", it.server)).collect();
        writeln!(
            f,
            "phase   charges  replies  errors  at once       p50       p99       max {servers}"
        )?;
        for phase in Phase::ALL {
            let name = format!("{phase:?}").to_lowercase();
            let charges: Vec<_> = self.charges.iter().filter(|it| it.ended.phase == phase).collect();
            writeln!(f, "{}", self.row(&name, self.at_once[phase as usize], &charges))?;
        }
        let all: Vec<_> = self.charges.iter().collect();
        writeln!(
            f,
            "{}\n",
            self.row("total", self.at_once.into_iter().max().unwrap_or(0), &all)
        )?;

        for (kind, (count, begun, slowest)) in self.errors() {
            let not = count - begun;
            writeln!(
                f,
                "errors  {count} {kind}: {begun} had begun, {not} had not; known after {slowest:.0?} at most"
            )?;
        }
        let sent = self.notes.iter().filter(|(sent, _)| sent.taken).count();
        let handled: usize = self.notes.iter().map(|(_, handled)| handled).sum();
        writeln!(
            f,
            "notes   {sent} sent one way, {handled} handled, {} went with a server",
            sent.saturating_sub(handled)
        )?;
        for (
            server,
            Pressure {
                permits,
                most,
                pauses,
                pause_ms,
                ..
            },
        ) in &self.fates.pressure
        {
            writeln!(
                f,
                "pauses  {server}: {pauses}, {pause_ms} ms in all; {most} of {permits} permits in use at most"
            )?;
        }
        let flooded = self.fates.flooded;
        let (rest, own) = (
            self.in_the_flood(|it| it != flooded),
            self.in_the_flood(|it| it == flooded),
        );
        writeln!(f, "flood   p99 at {flooded}: {own}; at the others: {rest}\n")?;

        for (promise, broken) in self.promises() {
            match broken {
                0 => writeln!(f, "ok      {promise}")?,
                _ => writeln!(f, "BROKEN  {promise}: {broken} times")?,
            }
        }
        Ok(())
    }
}
