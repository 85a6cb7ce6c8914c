//! States as bytes: equal wherever two worlds can only go on alike, also where the one is the other with its parts renamed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{Asking, Do, Job, Ordering, World};
use crate::permit::{Source, Ticket};

/// A hash of a state, as good as the state: among ten million, two alike are less likely than 1 in 10^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct Code(u64, u64);

/// New names for all parts of a world: in each list, the old number of what is now at this place.
#[derive(Clone, Debug)]
pub(in super::super) struct Renaming {
    hosts: Vec<usize>,
    owners: Vec<usize>,
    origins: Vec<usize>,
    links: Vec<usize>,
}

/// Who waits at a host, in its order.
type Line = Vec<(Ticket, [u8; 2])>;

impl World {
    /// The same for all worlds that these renamings make of each other.
    pub(in super::super) fn code(&self, renamings: &[Renaming]) -> Code {
        let text = renamings.iter().map(|one| self.text(one)).min().unwrap();
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &text).hash(&mut hasher);
            hasher.finish()
        };
        Code(half(0), half(1))
    }

    pub(in super::super) fn unrenamed(&self) -> Vec<Renaming> {
        vec![Renaming {
            hosts: (0..self.hosts.len()).collect(),
            owners: (0..self.owners.len()).collect(),
            origins: (0..self.origins.len()).collect(),
            links: (0..self.links.len()).collect(),
        }]
    }

    /// All renamings after which this world is what it was before.
    pub(in super::super) fn symmetries(&self) -> Vec<Renaming> {
        let mut found = self.unrenamed();
        let as_it_is = self.text(&found[0]);
        for hosts in orders(self.hosts.len()) {
            for owners in orders(self.owners.len()) {
                for origins in orders(self.origins.len()) {
                    for links in orders(self.links.len()) {
                        let (hosts, owners) = (hosts.clone(), owners.clone());
                        let origins = origins.clone();
                        let renaming = Renaming {
                            hosts,
                            owners,
                            origins,
                            links,
                        };
                        let is_new = renaming.names() != found[0].names();
                        if is_new && self.text(&renaming) == as_it_is {
                            found.push(renaming);
                        }
                    }
                }
            }
        }
        found
    }

    fn text(&self, names: &Renaming) -> Vec<u8> {
        let mut text = Vec::with_capacity(128);
        let mut lines: Vec<[Line; 2]> = self.hosts.iter().map(|_| Default::default()).collect();
        for (place, number) in names.owners.iter().enumerate() {
            self.tell_owner(*number, place, names, &mut text, &mut lines);
        }
        for (place, number) in names.origins.iter().enumerate() {
            let origin = &self.origins[*number];
            text.extend([names.host(origin.host), byte(origin.records.len()), byte(origin.at)]);
            text.push(byte(origin.hoard.len()));
            for (targets, script) in &origin.records {
                text.push(byte(targets.len()));
                text.extend(targets.iter().map(|target| names.owner(*target)));
                names.script(script, &mut text);
            }
            let line = &mut lines[origin.host][0];
            text.push(origin.asking.tell(&origin.asking.source, [1, byte(place)], line));
        }
        for (place, number) in names.links.iter().enumerate() {
            let link = &self.links[*number];
            text.extend([names.host(link.from), names.host(link.to), byte(link.room)]);
            text.extend([u8::from(link.paused), byte(link.records.len())]);
            for (to, script) in &link.records {
                text.push(names.owner(*to));
                names.script(script, &mut text);
            }
            let line = &mut lines[link.to][0];
            text.push(link.reader.tell(&link.reader.source, [2, byte(place)], line));
        }
        for number in &names.hosts {
            let status = self.hosts[*number].status();
            text.extend([status.limits.max(), status.in_use(), status.lent].map(|count| byte(count as usize)));
            text.extend([u8::from(status.flow.paused), byte(self.held.len())]);
            for line in &mut lines[*number] {
                line.sort_unstable();
                text.push(byte(line.len()));
                text.extend(line.iter().flat_map(|(_, who)| who));
            }
        }
        text
    }

    fn tell_owner(&self, number: usize, place: usize, names: &Renaming, text: &mut Vec<u8>, lines: &mut [[Line; 2]]) {
        let owner = &self.owners[number];
        text.extend([names.host(owner.host), byte(owner.backlog.len())]);
        for script in &owner.backlog {
            names.script(script, text);
        }
        text.push(u8::from(owner.kept.is_some()));
        match &owner.opening {
            None => text.push(0),
            Some(opening) => {
                // It stands in the line of those that may keep a permit, then in that of all.
                let (keeps, asks) = opening.source.asks();
                let line = &mut lines[owner.host][usize::from(!keeps)];
                text.extend([1 + u8::from(keeps), opening.tell(asks, [3, byte(place)], line)]);
            }
        }
        text.push(byte(owner.queue.len()));
        for (job, permit) in &owner.queue {
            self.tell_job(job, 0, names, text);
            text.push(u8::from(permit.lent));
        }
        let Some(turn) = &owner.turn else {
            return text.push(0);
        };
        text.extend([1, u8::from(turn.call.is_some()), u8::from(turn.asking.source.for_turn)]);
        self.tell_job(&turn.job, turn.at, names, text);
        let source = &turn.asking.source;
        text.push(turn.asking.tell(source, [4, byte(place)], &mut lines[owner.host][0]));
        let granted = source.ticket.and_then(|place| source.permits.0.granted(place));
        text.push(granted.map_or(0, |granted| 1 + u8::from(granted.lent)));
    }

    /// What is left of a job, and who waits for its end. A call that its caller has given up ends like any other.
    fn tell_job(&self, job: &Job, at: usize, names: &Renaming, text: &mut Vec<u8>) {
        names.script(&job.script[at..], text);
        let waits = |(caller, call): (usize, u32)| {
            let turn = self.owners[caller].turn.as_ref();
            turn.is_some_and(|turn| turn.call == Some(call)).then_some(caller)
        };
        let caller = job.caller.and_then(waits);
        text.push(caller.map_or(u8::MAX, |caller| names.owner(caller)));
    }
}

impl<S> Asking<S> {
    /// Whether it asks, waits or was granted; who waits is entered in its line.
    fn tell(&self, source: &Source, who: [u8; 2], line: &mut Line) -> u8 {
        match (&self.waits, source.ticket) {
            (Some(flag), Some(ticket)) if !flag.0.load(Ordering::SeqCst) => {
                line.push((ticket, who));
                2
            }
            (Some(_), _) => 1,
            (None, _) => 0,
        }
    }
}

impl Renaming {
    fn names(&self) -> [&[usize]; 4] {
        [&self.hosts, &self.owners, &self.origins, &self.links]
    }

    fn host(&self, number: usize) -> u8 {
        place(&self.hosts, number)
    }

    fn owner(&self, number: usize) -> u8 {
        place(&self.owners, number)
    }

    fn script(&self, script: &[Do], text: &mut Vec<u8>) {
        text.push(byte(script.len()));
        for step in script {
            let (kind, to) = match step {
                Do::Send(to) => (0, to),
                Do::Remote(to) => (1, to),
                Do::Ask(to) => (2, to),
            };
            text.extend([kind, self.owner(*to)]);
        }
    }
}

fn place(list: &[usize], number: usize) -> u8 {
    byte(list.iter().position(|one| *one == number).unwrap())
}

fn byte(count: usize) -> u8 {
    u8::try_from(count).unwrap()
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..count {
        let inserted = |order: Vec<usize>| {
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, next);
                longer
            })
        };
        orders = orders.into_iter().flat_map(inserted).collect();
    }
    orders
}
