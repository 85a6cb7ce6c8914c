//! What was seen, held against what the servers ran, and told on one screen.
//!
//! It is a pure function of the evidence.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use zlink_runtime::prelude::*;

use crate::billing::Pressure;
use crate::load::{DEADLINE, Ended, Seen, TOLERANCE};

/// A part of the play. What a call belongs to is when it was fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Calm,
    Flood,
    Drain,
    Kill,
    Join,
}

impl Phase {
    pub(crate) const ALL: [Phase; 5] = [Phase::Calm, Phase::Flood, Phase::Drain, Phase::Kill, Phase::Join];

    /// Whether a server leaves in it, so that calls may fail.
    fn loses_a_server(self) -> bool {
        matches!(self, Phase::Drain | Phase::Kill)
    }
}

/// The order numbers of all that one server ran.
pub(crate) struct Journal {
    pub(crate) server: &'static str,
    pub(crate) charges: Vec<u64>,
    pub(crate) notes: Vec<u64>,
}

impl Journal {
    pub(crate) fn read(server: &'static str, file: &Path) -> crate::Result<Self> {
        let mut journal = Self {
            server,
            charges: Vec::new(),
            notes: Vec::new(),
        };
        for line in std::fs::read_to_string(file)?.lines() {
            match line.split_once(' ') {
                Some(("charge", order)) => journal.charges.push(order.parse()?),
                Some(("audit", order)) => journal.notes.push(order.parse()?),
                _ => return Err(format!("{}: what is {line:?}?", file.display()).into()),
            }
        }
        Ok(journal)
    }
}

/// All that is known when the play is over.
pub(crate) struct Evidence {
    pub(crate) seen: Seen,
    pub(crate) journals: Vec<Journal>,
    pub(crate) drained: &'static str,
    /// The first order that was fired when the drained server had left the selection.
    pub(crate) left: u64,
    pub(crate) killed: &'static str,
    pub(crate) flooded: &'static str,
    pub(crate) pressure: Vec<(&'static str, Pressure)>,
    /// Whether the servers that were not killed ended without an error.
    pub(crate) ended_well: Vec<(&'static str, bool)>,
}

/// The evidence, judged.
pub(crate) struct Report {
    evidence: Evidence,
    /// Who ran each charge.
    ran: HashMap<u64, Vec<&'static str>>,
    notes_ran: HashMap<u64, usize>,
}

impl Evidence {
    pub(crate) fn report(self) -> Report {
        let (mut ran, mut notes_ran) = (HashMap::<_, Vec<_>>::new(), HashMap::new());
        for journal in &self.journals {
            journal
                .charges
                .iter()
                .for_each(|order| ran.entry(*order).or_default().push(journal.server));
            journal
                .notes
                .iter()
                .for_each(|order| *notes_ran.entry(*order).or_default() += 1);
        }
        Report {
            evidence: self,
            ran,
            notes_ran,
        }
    }
}

impl Report {
    pub(crate) fn holds(&self) -> bool {
        self.promises().iter().all(|(_, broken)| *broken == 0)
    }

    fn ran(&self, order: u64) -> &[&'static str] {
        self.ran.get(&order).map_or(&[], Vec::as_slice)
    }

    /// Every promise, and how often it was broken.
    fn promises(&self) -> Vec<(&'static str, usize)> {
        let it = &self.evidence;
        let charges = &it.seen.charges;
        let count = |broken: &dyn Fn(&Ended) -> bool| charges.iter().filter(|charge| broken(charge)).count();
        let never_ended = usize::try_from(it.seen.fired)
            .unwrap_or(usize::MAX)
            .abs_diff(charges.len());
        let notes = it.seen.notes.iter().filter(|note| {
            let ran = self.notes_ran.get(&note.order).copied().unwrap_or(0);
            let must = usize::from(note.end.is_ok() && !note.phase.loses_a_server());
            ran < must || ran > 1
        });
        let drained = it.journals.iter().filter(|journal| journal.server == it.drained);
        let flood = it
            .pressure
            .iter()
            .filter(|(server, pressure)| *server == it.flooded && pressure.pauses == 0);
        vec![
            ("every charge ended once, with a reply or a named error", never_ended),
            (
                "none ended later than its deadline",
                count(&|charge| charge.took > DEADLINE + TOLERANCE),
            ),
            (
                "no order ran twice",
                self.ran.values().filter(|ran| ran.len() > 1).count(),
            ),
            (
                "every reply came from the server that ran the order",
                count(&|charge| {
                    charge
                        .end
                        .as_ref()
                        .is_ok_and(|server| self.ran(charge.order) != [server])
                }),
            ),
            (
                "what failed ran nowhere, or on the server that was killed",
                count(&|charge| match &charge.end {
                    Ok(_) => false,
                    Err(error) if error.execution() == Execution::NotExecuted => !self.ran(charge.order).is_empty(),
                    Err(_) => self.ran(charge.order).iter().any(|server| *server != it.killed),
                }),
            ),
            (
                "nothing failed while no server left",
                count(&|charge| charge.end.is_err() && !charge.phase.loses_a_server()),
            ),
            (
                "the drained server got nothing new",
                drained
                    .flat_map(|journal| &journal.charges)
                    .filter(|order| **order >= it.left)
                    .count(),
            ),
            ("every note was handled once, unless its server left", notes.count()),
            ("the flooded server paused its peers", flood.count()),
            (
                "all others ended well",
                it.ended_well.iter().filter(|(_, well)| !well).count(),
            ),
        ]
    }

    /// One line of the table: the charges that `belongs` picks.
    fn row(&self, name: &str, at_once: usize, belongs: impl Fn(&Ended) -> bool) -> String {
        let fired: Vec<_> = self
            .evidence
            .seen
            .charges
            .iter()
            .filter(|charge| belongs(charge))
            .collect();
        let replies = || {
            fired
                .iter()
                .filter_map(|charge| Some((charge.end.as_ref().ok()?, charge.took)))
        };
        let mut took: Vec<_> = replies().map(|(_, took)| took).collect();
        took.sort_unstable();
        let shares = self.evidence.journals.iter().map(|journal| {
            match replies().filter(|(server, _)| *server == journal.server).count() * 100 {
                0 => "     -".to_owned(),
                hundredfold => format!(" {:>4.0}%", hundredfold as f64 / took.len() as f64),
            }
        });
        format!(
            "{name:<6} {:>8} {:>8} {:>7} {at_once:>8} {:>9} {:>9} {:>9}  {}",
            fired.len(),
            took.len(),
            fired.len() - took.len(),
            millis(&took, 50),
            millis(&took, 99),
            millis(&took, 100),
            shares.collect::<String>(),
        )
    }
}

/// A percentile of sorted times.
fn millis(sorted: &[Duration], percent: usize) -> String {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted
        .get(at)
        .map_or("-".to_owned(), |took| format!("{:.1} ms", took.as_secs_f64() * 1e3))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &self.evidence;
        let servers: String = it
            .journals
            .iter()
            .map(|journal| format!("{:>6}", journal.server))
            .collect();
        writeln!(
            f,
            "\nphase   charges  replies  errors  at once       p50       p99       max  {servers}"
        )?;
        for phase in Phase::ALL {
            let name = format!("{phase:?}").to_lowercase();
            let at_once = it.seen.at_once.get(phase as usize).copied().unwrap_or(0);
            writeln!(f, "{}", self.row(&name, at_once, |charge| charge.phase == phase))?;
        }
        writeln!(
            f,
            "{}",
            self.row("total", it.seen.at_once.into_iter().max().unwrap_or(0), |_| true)
        )?;
        writeln!(f)?;

        let mut errors: HashMap<String, (usize, usize, Duration)> = HashMap::new();
        for charge in &it.seen.charges {
            let Err(error) = &charge.end else { continue };
            let kind = error.kind().map_or("Argument".to_owned(), |kind| kind.to_string());
            let of_kind = errors.entry(format!("{kind}, {:?}", error.execution())).or_default();
            of_kind.0 += 1;
            of_kind.1 += self.ran(charge.order).len();
            of_kind.2 = of_kind.2.max(charge.took);
        }
        for (kind, (count, ran, slowest)) in errors {
            let rest = count - ran;
            writeln!(
                f,
                "errors    {count} {kind}: {ran} had begun, {rest} had not; told after {slowest:.0?} at most"
            )?;
        }
        let handled: usize = self.notes_ran.values().sum();
        let sent = it.seen.notes.iter().filter(|note| note.end.is_ok()).count();
        writeln!(
            f,
            "notes     {sent} sent one way, {handled} handled; {} went with a server",
            sent.abs_diff(handled)
        )?;
        for (server, it) in &it.pressure {
            let Pressure {
                permits,
                most,
                pauses,
                pause_ms,
            } = it;
            writeln!(
                f,
                "pauses    {server}: {pauses}, {pause_ms} ms in all; at most {most} of {permits} permits in use"
            )?;
        }
        writeln!(f)?;
        for (promise, broken) in self.promises() {
            match broken {
                0 => writeln!(f, "ok        {promise}")?,
                _ => writeln!(f, "BROKEN    {promise}: {broken} times")?,
            }
        }
        Ok(())
    }
}
