//! What need not be tried in every order: of all that can go on, a part that the rest can neither change nor be changed by
//! until one of the part has gone on (a strong stubborn set, after Valmari). Every state in which nothing goes on any more is
//! still reached; of those on the way there, fewer are.
//!
//! A process is what does one step after another: a source, an object, a link's reader, and what tells a link's flow.

use std::collections::BTreeSet;

use super::{Action, Do, Script, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Origin(usize),
    Owner(usize),
    Reader(usize),
    Teller(usize),
}

use Process::{Origin, Owner, Reader, Teller};

impl Action {
    const fn process(self) -> Process {
        match self {
            Self::Deliver(number) => Origin(number),
            Self::Open(number) | Self::Start(number) | Self::Step(number) | Self::GiveUp(number) => Owner(number),
            Self::Read(number) => Reader(number),
            Self::Tell(number) => Teller(number),
        }
    }
}

impl World {
    /// Those of `actions`, which are all that can go on, that suffice.
    pub(in super::super) fn enough(&self, actions: &[Action]) -> Vec<Action> {
        let closed = |seed: &Action| {
            let set = self.closed(seed.process(), actions);
            let inside = actions.iter().filter(|action| set.contains(&action.process()));
            inside.copied().collect::<Vec<_>>()
        };
        actions.iter().map(closed).min_by_key(Vec::len).unwrap_or_default()
    }

    /// The smallest set with that process which nobody outside disturbs.
    fn closed(&self, seed: Process, enabled: &[Action]) -> BTreeSet<Process> {
        let (mut set, mut open) = (BTreeSet::new(), vec![seed]);
        while let Some(process) = open.pop() {
            if !set.insert(process) {
                continue;
            }
            match enabled.iter().any(|action| action.process() == process) {
                true => open.extend(self.who_may_touch(self.touches(process))),
                false => open.extend(self.who_enables(process)),
            }
        }
        set
    }

    fn processes(&self) -> impl Iterator<Item = Process> {
        let links = 0..self.links.len();
        let (origins, owners) = ((0..self.origins.len()).map(Origin), (0..self.owners.len()).map(Owner));
        let readers = links.clone().map(Reader);
        origins.chain(owners).chain(readers).chain(links.map(Teller))
    }

    /// What more than one process looks at: the permits of a host with all queues behind them …
    const fn permits(host: usize) -> u32 {
        1 << host
    }

    /// … and whether a link takes a record. That its reader takes one from the other end changes nothing for who may send.
    fn sending(&self, link: usize) -> u32 {
        1 << (self.hosts.len() + link)
    }

    fn sending_to(&self, host: usize, owner: usize) -> u32 {
        self.sending(self.link_between(host, self.owners[owner].host))
    }

    fn delivers_to(&self, host: usize, owner: usize) -> u32 {
        match self.owners[owner].host == host {
            true => Self::permits(host),
            false => self.sending_to(host, owner),
        }
    }

    /// What the next step of a process touches.
    fn touches(&self, process: Process) -> u32 {
        match process {
            Origin(number) => {
                let origin = &self.origins[number];
                let target = origin.records.front().map(|(targets, _)| targets[origin.at]);
                target.map_or(0, |target| self.delivers_to(origin.host, target))
            }
            Owner(number) => {
                let owner = &self.owners[number];
                match owner.turn.as_ref().map(|turn| turn.job.script.get(turn.at)) {
                    // The end of a turn is seen by nobody but who waits for that and for nothing else.
                    Some(None) => 0,
                    Some(Some(Do::Remote(to))) => self.sending_to(owner.host, *to),
                    None | Some(Some(Do::Send(_) | Do::Ask(_))) => Self::permits(owner.host),
                }
            }
            Reader(number) => Self::permits(self.links[number].to),
            Teller(number) => Self::permits(self.links[number].to) | self.sending(number),
        }
    }

    /// What all steps that a process may ever do touch.
    fn may_touch(&self, process: Process) -> u32 {
        match process {
            Origin(number) => {
                let origin = &self.origins[number];
                let targets = origin.records.iter().flat_map(|(targets, _)| targets);
                targets.fold(0, |all, target| all | self.delivers_to(origin.host, *target))
            }
            Owner(number) => {
                let host = self.owners[number].host;
                let steps = self.scripts_of(number).flatten();
                let remote = steps.map(|step| match step {
                    Do::Remote(to) => self.sending_to(host, *to),
                    Do::Send(_) | Do::Ask(_) => 0,
                });
                remote.fold(Self::permits(host), |all, one| all | one)
            }
            Reader(_) | Teller(_) => self.touches(process),
        }
    }

    /// All that an object does or may come to do.
    fn scripts_of(&self, number: usize) -> impl Iterator<Item = Script> {
        let owner = &self.owners[number];
        let turn = owner.turn.iter().map(|turn| &turn.job.script[turn.at..]);
        let queue = owner.queue.iter().map(|(job, _)| job.script);
        let arriving = self.links.iter().flat_map(|link| &link.records);
        let arriving = arriving.filter(move |(to, _)| *to == number).map(|(_, script)| *script);
        let coming = self.origins.iter().flat_map(|origin| &origin.records);
        let coming = coming.filter(move |(targets, _)| targets.contains(&number));
        let coming = coming.map(|(_, script)| *script);
        let backlog = owner.backlog.iter().copied();
        turn.chain(queue).chain(backlog).chain(arriving).chain(coming)
    }

    fn who_may_touch(&self, what: u32) -> impl Iterator<Item = Process> {
        self.processes()
            .filter(move |process| self.may_touch(*process) & what != 0)
    }

    /// Of those without whom a process that cannot go on never will, all.
    fn who_enables(&self, process: Process) -> Vec<Process> {
        match process {
            Origin(number) => {
                let origin = &self.origins[number];
                let Some((targets, _)) = origin.records.front() else {
                    return Vec::new();
                };
                let target = targets[origin.at];
                match self.owners[target].host == origin.host {
                    true => self.who_may_touch(Self::permits(origin.host)).collect(),
                    false => vec![self.who_lets_send(origin.host, target)],
                }
            }
            Owner(number) => {
                let owner = &self.owners[number];
                let Some(turn) = &owner.turn else {
                    // It waits for a permit, or for a job: both come with permits of its host alone.
                    return self.who_may_touch(Self::permits(owner.host)).collect();
                };
                match turn.job.script.get(turn.at) {
                    None => Vec::new(),
                    Some(Do::Remote(to)) => vec![self.who_lets_send(owner.host, *to)],
                    Some(Do::Ask(to)) if turn.call.is_some() => vec![Owner(*to)],
                    Some(Do::Send(_) | Do::Ask(_)) => self.who_may_touch(Self::permits(owner.host)).collect(),
                }
            }
            Reader(number) => match self.links[number].records.is_empty() {
                true => self.who_may_touch(self.sending(number)).collect(),
                false => self.who_may_touch(Self::permits(self.links[number].to)).collect(),
            },
            Teller(number) => self.who_may_touch(Self::permits(self.links[number].to)).collect(),
        }
    }

    fn who_lets_send(&self, host: usize, owner: usize) -> Process {
        let number = self.link_between(host, self.owners[owner].host);
        match self.links[number].paused {
            true => Teller(number),
            false => Reader(number),
        }
    }
}
