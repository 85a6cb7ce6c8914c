//! What the client saw beside what the servers ran, and whether zlink kept its promises.
//!
//! It knows nothing of how either came about.

use std::collections::HashMap;
use std::path::Path;

use crate::billing::Pressure;
use crate::load::{DEADLINE, Ended, Seen, Sent, TOLERANCE};

/// A part of the play. A call belongs to the one in which it was fired.
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

/// A server, and the order numbers of all that it ran.
pub(crate) struct Journal {
    pub(crate) server: &'static str,
    pub(crate) weight: usize,
    pub(crate) charges: Vec<u64>,
    pub(crate) notes: Vec<u64>,
}

impl Journal {
    pub(crate) fn read(server: &'static str, weight: usize, file: &Path) -> crate::Result<Self> {
        let (mut charges, mut notes) = (Vec::new(), Vec::new());
        for line in std::fs::read_to_string(file)?.lines() {
            match line.split_once(' ') {
                Some(("charge", order)) => charges.push(order.parse()?),
                Some(("audit", order)) => notes.push(order.parse()?),
                _ => return Err(format!("{}: what is {line:?}?", file.display()).into()),
            }
        }
        Ok(Self {
            server,
            weight,
            charges,
            notes,
        })
    }
}

/// A charge, and who ran it.
pub(crate) struct Charge {
    pub(crate) ended: Ended,
    pub(crate) ran: Vec<&'static str>,
}

/// What became of the servers.
pub(crate) struct Fates {
    pub(crate) drained: &'static str,
    /// The first order that was fired when the drained server had left the selection.
    pub(crate) left: u64,
    pub(crate) killed: &'static str,
    pub(crate) flooded: &'static str,
    pub(crate) joined: &'static str,
    /// What the job queues of those that stayed went through.
    pub(crate) pressure: Vec<(&'static str, Pressure)>,
    /// Whether each that was not killed ended without an error.
    pub(crate) ended_well: Vec<(&'static str, bool)>,
}

/// All that is known when the play is over.
pub(crate) struct Evidence {
    pub(crate) fired: u64,
    pub(crate) at_once: [usize; Phase::ALL.len()],
    pub(crate) charges: Vec<Charge>,
    /// Each note, and how often it was handled.
    pub(crate) notes: Vec<(Sent, usize)>,
    pub(crate) journals: Vec<Journal>,
    pub(crate) fates: Fates,
}

impl Evidence {
    pub(crate) fn new(seen: Seen, journals: Vec<Journal>, fates: Fates) -> Self {
        let mut ran: HashMap<u64, Vec<&'static str>> = HashMap::new();
        let mut handled: HashMap<u64, usize> = HashMap::new();
        for journal in &journals {
            for order in &journal.charges {
                ran.entry(*order).or_default().push(journal.server);
            }
            for order in &journal.notes {
                *handled.entry(*order).or_default() += 1;
            }
        }
        let charge = |ended: Ended| Charge {
            ran: ran.remove(&ended.order).unwrap_or_default(),
            ended,
        };
        let note = |sent: Sent| (handled.get(&sent.order).copied().unwrap_or(0), sent);
        Self {
            fired: seen.fired,
            at_once: seen.at_once,
            charges: seen.charges.into_iter().map(charge).collect(),
            notes: seen
                .notes
                .into_iter()
                .map(note)
                .map(|(handled, sent)| (sent, handled))
                .collect(),
            journals,
            fates,
        }
    }

    /// Every promise, and how often it was broken.
    pub(crate) fn promises(&self) -> Vec<(&'static str, usize)> {
        let fates = &self.fates;
        let count = |broken: &dyn Fn(&Charge) -> bool| self.charges.iter().filter(|charge| broken(charge)).count();
        vec![
            ("every charge ended, with a reply or a named error", self.never_ended()),
            (
                "none ended later than its deadline",
                count(&|it| it.ended.took > DEADLINE + TOLERANCE),
            ),
            ("none ran twice", count(&|it| it.ran.len() > 1)),
            (
                "every reply came from the server that ran the charge",
                count(&|it| it.answered_by_another()),
            ),
            (
                "what failed ran on the lost server, or on none",
                count(&|it| it.failed_elsewhere(fates.killed)),
            ),
            (
                "nothing failed where no server left",
                count(&|it| it.ended.end.is_err() && !it.ended.phase.loses_a_server()),
            ),
            ("calls were shared by weight", self.wrong_shares()),
            ("the drained server got nothing new", self.ran_after_leaving()),
            ("every note was handled once, where no server left", self.wrong_notes()),
            (
                "the flooded server paused its peers, and let them run again",
                self.wrong_pauses(),
            ),
            (
                "whoever was not killed ended well",
                fates.ended_well.iter().filter(|(_, well)| !well).count(),
            ),
        ]
    }

    fn never_ended(&self) -> usize {
        usize::try_from(self.fired)
            .unwrap_or(usize::MAX)
            .abs_diff(self.charges.len())
    }

    /// Selection is exact; a few calls may be told to the wrong phase where it ends.
    fn wrong_shares(&self) -> usize {
        let calm: Vec<_> = self.charges.iter().filter(|it| it.ended.phase == Phase::Calm).collect();
        let there = || self.journals.iter().filter(|it| it.server != self.fates.joined);
        let weights: usize = there().map(|it| it.weight).sum();
        let share = |server| calm.iter().filter(|it| it.ran == [server]).count();
        let wrong = |it: &&Journal| share(it.server).abs_diff(calm.len() * it.weight / weights) > calm.len() / 100 + 2;
        there().filter(wrong).count()
    }

    fn ran_after_leaving(&self) -> usize {
        let late = |it: &&Charge| it.ended.order >= self.fates.left && it.ran.contains(&self.fates.drained);
        self.charges.iter().filter(late).count()
    }

    fn wrong_notes(&self) -> usize {
        let wrong = |(sent, handled): &&(Sent, usize)| {
            let least = usize::from(sent.taken && !sent.phase.loses_a_server());
            *handled < least || *handled > 1
        };
        self.notes.iter().filter(wrong).count()
    }

    fn wrong_pauses(&self) -> usize {
        let good = |(server, it): &(&str, Pressure)| *server == self.fates.flooded && it.pauses > 0 && !it.paused;
        usize::from(!self.fates.pressure.iter().any(good))
    }
}

impl Charge {
    fn answered_by_another(&self) -> bool {
        self.ended.end.as_ref().is_ok_and(|server| self.ran != [server])
    }

    /// Nobody may have run what was not executed, and nobody but the killed server what may have been.
    fn failed_elsewhere(&self, killed: &str) -> bool {
        match &self.ended.end {
            Ok(_) => false,
            Err(failure) => self.ran.iter().any(|server| failure.not_executed || *server != killed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Failure;

    /// A play in which 600 calls were shared and one failed with the server that was killed.
    fn evidence(change: impl FnOnce(&mut Seen, &mut Vec<Journal>, &mut Fates)) -> Evidence {
        let journal = |server, weight| Journal {
            server,
            weight,
            charges: Vec::new(),
            notes: Vec::new(),
        };
        let mut journals = vec![
            journal("a", 100),
            journal("b", 200),
            journal("c", 300),
            journal("d", 200),
        ];
        let mut seen = Seen {
            fired: 601,
            ..Seen::default()
        };
        let ended = |order, phase, end| Ended {
            order,
            phase,
            took: Duration::from_millis(20),
            end,
        };
        for order in 0..600 {
            let at = [2, 1, 2, 0, 1, 2][order % 6];
            let order = order as u64;
            journals[at].charges.push(order);
            seen.charges
                .push(ended(order, Phase::Calm, Ok(journals[at].server.to_owned())));
        }
        journals[1].charges.push(600);
        let failure = Failure {
            kind: "Unavailable".to_owned(),
            not_executed: false,
        };
        seen.charges.push(ended(600, Phase::Kill, Err(failure)));
        seen.notes.push(Sent {
            order: 0,
            phase: Phase::Calm,
            taken: true,
        });
        journals[2].notes.push(0);
        let mut fates = Fates {
            drained: "a",
            left: 600,
            killed: "b",
            flooded: "c",
            joined: "d",
            pressure: vec![(
                "c",
                Pressure {
                    pauses: 1,
                    ..Pressure::default()
                },
            )],
            ended_well: vec![("a", true)],
        };
        change(&mut seen, &mut journals, &mut fates);
        Evidence::new(seen, journals, fates)
    }

    #[track_caller]
    fn breaks(promise: &str, change: impl FnOnce(&mut Seen, &mut Vec<Journal>, &mut Fates)) {
        let broken: Vec<_> = evidence(change)
            .promises()
            .into_iter()
            .filter(|(_, times)| *times > 0)
            .collect();
        assert_eq!(broken, [(promise, 1)]);
    }

    #[test]
    fn a_good_play_breaks_nothing() {
        assert!(evidence(|_, _, _| {}).promises().iter().all(|(_, times)| *times == 0));
    }

    #[test]
    fn each_promise_can_be_broken() {
        breaks("every charge ended, with a reply or a named error", |seen, _, _| {
            seen.fired += 1
        });
        breaks("none ended later than its deadline", |seen, _, _| {
            seen.charges[0].took = DEADLINE + TOLERANCE + Duration::from_millis(1);
        });
        breaks("none ran twice", |_, journals, _| journals[1].charges.push(600));
        breaks("every reply came from the server that ran the charge", |seen, _, _| {
            seen.charges[0].end = Ok("a".to_owned());
        });
        breaks("what failed ran on the lost server, or on none", |_, journals, _| {
            journals[1].charges.pop();
            journals[2].charges.push(600);
        });
        breaks("what failed ran on the lost server, or on none", |seen, _, _| {
            seen.charges[600].end = Err(Failure {
                kind: "Unavailable".to_owned(),
                not_executed: true,
            });
        });
        breaks("nothing failed where no server left", |seen, _, _| {
            seen.charges[600].phase = Phase::Join
        });
        breaks("the drained server got nothing new", |_, _, fates| fates.left = 597);
        breaks("every note was handled once, where no server left", |_, journals, _| {
            journals[2].notes.clear()
        });
        breaks("every note was handled once, where no server left", |_, journals, _| {
            journals[3].notes.push(0)
        });
        breaks(
            "the flooded server paused its peers, and let them run again",
            |_, _, fates| fates.pressure.clear(),
        );
        breaks("whoever was not killed ended well", |_, _, fates| {
            fates.ended_well.push(("c", false))
        });
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        let promises = evidence(|_, journals, _| journals[0].weight = 200).promises();
        assert!(promises.contains(&("calls were shared by weight", 3)));
    }
}
