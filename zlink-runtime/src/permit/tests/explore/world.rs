//! What the search moves: hosts with permits, objects with a gate and a queue, sources, backlogs and links. One action is one
//! step of one of them.

mod code;
mod reduce;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::permit::{Backlog, HostPermits, Permit, PermitLimits, Source};

pub(super) use code::Code;

/// What a handler does, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do {
    /// Awaits a send to an object of its host, holding its gate.
    Send(usize),
    /// Awaits a send to an object of another host, holding its gate.
    Remote(usize),
    /// Awaits the reply of an object of its host, holding its gate.
    Ask(usize),
}

pub(super) type Script = &'static [Do];

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// A source goes on with its next target.
    Deliver(usize),
    /// An object begins behind its backlog.
    Open(usize),
    /// An object's next job becomes a turn.
    Start(usize),
    /// An object's turn goes on.
    Step(usize),
    /// A link's reader takes a record.
    Read(usize),
    /// A link's receiver tells its flow.
    Tell(usize),
    /// The wait of an object's turn ends by its deadline.
    GiveUp(usize),
}

/// What a host does wrong, so that the search is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A source has the permits for all targets of its record before the first of them is a job.
    Hoards,
    /// What waits for an object that is not open yet keeps its permit.
    KeepsWhatIsHeld,
    /// A peer that was told to pause is not told to go on.
    ForgetsToResume,
}

/// Whether somebody who waits was woken.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Somebody who asks for a permit, one at a time.
#[derive(Debug)]
struct Asking<S> {
    source: S,
    waits: Option<Arc<Flag>>,
}

trait Ask {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Permit>;
}

impl Ask for Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Permit> {
        self.poll_acquire(cx, 1).map(|granted| granted.unwrap().take().unwrap())
    }
}

impl Ask for Backlog {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Permit> {
        self.poll_first(cx).map(Result::unwrap)
    }
}

impl<S: Ask> Asking<S> {
    fn new(source: S) -> Self {
        Self { source, waits: None }
    }

    /// Whether asking changes anything.
    fn may(&self) -> bool {
        self.waits.as_ref().is_none_or(|flag| flag.0.load(Ordering::SeqCst))
    }

    fn ask(&mut self) -> Option<Permit> {
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(flag.clone());
        match self.source.poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(permit) => {
                self.waits = None;
                Some(permit)
            }
            Poll::Pending => {
                self.waits = Some(flag);
                None
            }
        }
    }
}

#[derive(Debug)]
struct Job {
    script: Script,
    /// Who waits for its end, with the number of the call.
    caller: Option<(usize, u32)>,
}

#[derive(Debug)]
struct Turn {
    job: Job,
    at: usize,
    asking: Asking<Source>,
    /// The call whose reply it waits for.
    call: Option<u32>,
}

#[derive(Debug)]
struct Owner {
    host: usize,
    backlog: VecDeque<Script>,
    opening: Option<Asking<Backlog>>,
    kept: Option<(Permit, Backlog)>,
    queue: VecDeque<(Job, Permit)>,
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Origin {
    host: usize,
    asking: Asking<Source>,
    records: VecDeque<(Vec<usize>, Script)>,
    at: usize,
    hoard: Vec<Permit>,
}

#[derive(Debug)]
struct Link {
    from: usize,
    to: usize,
    room: usize,
    records: VecDeque<(usize, Script)>,
    reader: Asking<Source>,
    /// Whether the sender was told to pause.
    paused: bool,
}

#[derive(Debug)]
pub(super) struct World {
    hosts: Vec<HostPermits>,
    owners: Vec<Owner>,
    origins: Vec<Origin>,
    links: Vec<Link>,
    calls: u32,
    fault: Option<Fault>,
    /// What an object with [`Fault::KeepsWhatIsHeld`] keeps.
    held: Vec<Permit>,
}

impl World {
    /// Hosts with so many permits.
    pub(super) fn new(hosts: &[u32]) -> Self {
        let limits = |max: &u32| PermitLimits::new(*max, 80, 60).unwrap().with_reserve();
        Self {
            hosts: hosts.iter().map(|max| HostPermits::with_limits(limits(max))).collect(),
            owners: Vec::new(),
            origins: Vec::new(),
            links: Vec::new(),
            calls: 0,
            fault: None,
            held: Vec::new(),
        }
    }

    pub(super) fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    pub(super) fn owner(&mut self, host: usize) -> usize {
        self.owners.push(Owner {
            host,
            backlog: VecDeque::new(),
            opening: None,
            kept: None,
            queue: VecDeque::new(),
            turn: None,
        });
        self.owners.len() - 1
    }

    /// A source of a host, and its records: for whom, and what they do there.
    pub(super) fn source(&mut self, host: usize, records: &[(&[usize], Script)]) {
        let asking = Asking::new(self.hosts[host].source());
        let records = records.iter().map(|(targets, script)| (targets.to_vec(), *script));
        self.origins.push(Origin {
            host,
            asking,
            records: records.collect(),
            at: 0,
            hoard: Vec::new(),
        });
    }

    /// A source that has so many records for one object.
    pub(super) fn flood(&mut self, host: usize, owner: usize, count: u32, script: Script) {
        let targets: &[usize] = &[owner];
        let records: Vec<_> = (0..count).map(|_| (targets, script)).collect();
        self.source(host, &records);
    }

    pub(super) fn restore(&mut self, owner: usize, backlog: &[Script]) {
        let permits = &self.hosts[self.owners[owner].host];
        self.owners[owner].opening = Some(Asking::new(permits.backlog()));
        self.owners[owner].backlog = backlog.iter().copied().collect();
    }

    /// A link that holds `room` records.
    pub(super) fn link(&mut self, from: usize, to: usize, room: usize) {
        let reader = Asking::new(self.hosts[to].source());
        self.links.push(Link {
            from,
            to,
            room,
            records: VecDeque::new(),
            reader,
            paused: false,
        });
    }

    fn link_between(&self, from: usize, to: usize) -> usize {
        self.links
            .iter()
            .position(|link| (link.from, link.to) == (from, to))
            .unwrap()
    }

    fn has_room(&self, from: usize, owner: usize) -> bool {
        let link = &self.links[self.link_between(from, self.owners[owner].host)];
        !link.paused && link.records.len() < link.room
    }

    /// All that can go on.
    pub(super) fn enabled(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (number, origin) in self.origins.iter().enumerate() {
            let Some((targets, _)) = origin.records.front() else {
                continue;
            };
            let target = targets[origin.at];
            let may = match self.owners[target].host == origin.host {
                true => origin.asking.may(),
                false => self.has_room(origin.host, target),
            };
            actions.extend(may.then_some(Action::Deliver(number)));
        }
        for (number, owner) in self.owners.iter().enumerate() {
            if owner.opening.as_ref().is_some_and(Asking::may) {
                actions.push(Action::Open(number));
            }
            match &owner.turn {
                None if owner.kept.is_some() => actions.push(Action::Start(number)),
                None if owner.backlog.is_empty() && !owner.queue.is_empty() => actions.push(Action::Start(number)),
                None => {}
                Some(turn) => actions.extend(self.may_step(owner.host, turn).then_some(Action::Step(number))),
            }
        }
        for (number, link) in self.links.iter().enumerate() {
            if !link.records.is_empty() && link.reader.may() {
                actions.push(Action::Read(number));
            }
            if self.may_tell(link) {
                actions.push(Action::Tell(number));
            }
        }
        actions
    }

    fn may_tell(&self, link: &Link) -> bool {
        let forgotten = link.paused && self.fault == Some(Fault::ForgetsToResume);
        link.paused != self.hosts[link.to].flow().paused && !forgotten
    }

    fn may_step(&self, host: usize, turn: &Turn) -> bool {
        match turn.job.script.get(turn.at) {
            _ if turn.call.is_some() => false,
            None => true,
            Some(Do::Remote(to)) => self.has_room(host, *to),
            Some(Do::Send(_) | Do::Ask(_)) => turn.asking.may(),
        }
    }

    /// The waits of turns, each of which has a deadline.
    pub(super) fn deadlines(&self) -> Vec<Action> {
        let waits = |(number, owner): (usize, &Owner)| owner.turn.is_some().then_some(Action::GiveUp(number));
        self.owners.iter().enumerate().filter_map(waits).collect()
    }

    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(number) => self.deliver(number),
            Action::Open(number) => {
                let owner = &mut self.owners[number];
                let Some(opening) = &mut owner.opening else { return };
                let permit = opening.ask();
                if let (Some(mut permit), Some(keeper)) = (permit, owner.opening.take_if(|one| one.waits.is_none())) {
                    permit.queue();
                    owner.kept = Some((permit, keeper.source));
                }
            }
            Action::Start(number) => self.start(number),
            Action::Step(number) => self.step(number),
            Action::Read(number) => {
                let permit = self.links[number].reader.ask();
                if let Some(permit) = permit {
                    let (to, script) = self.links[number].records.pop_front().unwrap();
                    self.admit(to, Job { script, caller: None }, permit);
                }
            }
            Action::Tell(number) => {
                let link = &mut self.links[number];
                link.paused = self.hosts[link.to].flow().paused;
            }
            Action::GiveUp(number) => {
                let turn = self.owners[number].turn.as_mut().unwrap();
                turn.asking.source.cancel();
                turn.asking.waits = None;
                turn.call = None;
                turn.at += 1;
            }
        }
    }

    fn admit(&mut self, owner: usize, job: Job, mut permit: Permit) {
        let owner = &mut self.owners[owner];
        if owner.opening.is_some() {
            // It cannot run yet: held behind the backlog, and its permit goes to who can use it.
            owner.backlog.push_back(job.script);
            if self.fault == Some(Fault::KeepsWhatIsHeld) {
                self.held.push(permit);
            }
            return;
        }
        permit.queue();
        owner.queue.push_back((job, permit));
    }

    fn deliver(&mut self, number: usize) {
        let origin = &mut self.origins[number];
        let host = origin.host;
        let (targets, script) = origin.records.front().unwrap();
        let (target, last, script) = (targets[origin.at], origin.at + 1 == targets.len(), *script);
        if self.owners[target].host == host {
            let permit = origin.asking.ask();
            let Some(permit) = permit else { return };
            if self.fault == Some(Fault::Hoards) {
                origin.hoard.push(permit);
                if last {
                    for (target, permit) in targets.clone().into_iter().zip(std::mem::take(&mut origin.hoard)) {
                        self.admit(target, Job { script, caller: None }, permit);
                    }
                }
            } else {
                self.admit(target, Job { script, caller: None }, permit);
            }
        } else {
            let link = self.link_between(host, self.owners[target].host);
            self.links[link].records.push_back((target, script));
        }
        let origin = &mut self.origins[number];
        origin.at += 1;
        if last {
            origin.records.pop_front();
            origin.at = 0;
        }
    }

    fn start(&mut self, number: usize) {
        let owner = &mut self.owners[number];
        let job = if let Some((permit, keeper)) = owner.kept.take() {
            let script = owner.backlog.pop_front().unwrap();
            match owner.backlog.is_empty() {
                true => permit.start(),
                false => owner.kept = Some((permit.hand_on(), keeper)),
            }
            Job { script, caller: None }
        } else {
            let (job, permit) = owner.queue.pop_front().unwrap();
            permit.start();
            job
        };
        let permits = &self.hosts[owner.host];
        let asks = matches!(job.script.first(), Some(Do::Ask(_)));
        owner.turn = Some(Turn {
            job,
            at: 0,
            asking: Asking::new(if asks { permits.source() } else { permits.turn_source() }),
            call: None,
        });
    }

    fn step(&mut self, number: usize) {
        let host = self.owners[number].host;
        let Some(turn) = &mut self.owners[number].turn else {
            return;
        };
        match turn.job.script.get(turn.at).copied() {
            None => {
                let ended = self.owners[number].turn.take().unwrap();
                if let Some((caller, call)) = ended.job.caller
                    && let Some(turn) = &mut self.owners[caller].turn
                    && turn.call == Some(call)
                {
                    turn.call = None;
                    turn.at += 1;
                }
            }
            Some(Do::Remote(to)) => {
                turn.at += 1;
                let link = self.link_between(host, self.owners[to].host);
                self.links[link].records.push_back((to, &[]));
            }
            Some(what @ (Do::Send(to) | Do::Ask(to))) => {
                let permit = turn.asking.ask();
                let Some(permit) = permit else { return };
                let mut caller = None;
                if let Do::Ask(_) = what {
                    self.calls += 1;
                    turn.call = Some(self.calls);
                    caller = Some((number, self.calls));
                } else {
                    turn.at += 1;
                }
                self.admit(to, Job { script: &[], caller }, permit);
            }
        }
    }

    /// What is true at any time.
    pub(super) fn is_sound(&self) -> bool {
        let is_sound = |permits: &HostPermits| {
            let status = permits.status();
            status.in_use() <= status.limits.max() && status.lent <= status.limits.reserve()
        };
        self.hosts.iter().all(is_sound)
    }

    pub(super) fn is_done(&self) -> bool {
        let owner = |owner: &Owner| {
            owner.turn.is_none() && owner.queue.is_empty() && owner.backlog.is_empty() && owner.opening.is_none()
        };
        self.owners.iter().all(owner)
            && self.origins.iter().all(|origin| origin.records.is_empty())
            && self.links.iter().all(|link| link.records.is_empty())
    }

    /// What is true at the end.
    pub(super) fn is_at_rest(&self) -> bool {
        let is_at_rest = |permits: &HostPermits| {
            let status = permits.status();
            (status.in_use(), status.waiting, status.flow.paused) == (0, 0, false)
        };
        self.hosts.iter().all(is_at_rest) && !self.links.iter().any(|link| link.paused)
    }
}
