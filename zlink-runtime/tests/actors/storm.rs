//! Actors of two nodes, made, called and ended at random from everywhere, while one of the nodes dies and comes back; and what
//! must hold of all that was asked. In memory and in virtual time, from seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, ActorCreated, ActorRef, Admission};
use zlink_runtime::testing::{Cluster, explore};

use crate::arena::Line;
use crate::dice::Dice;
use crate::kit::text;

const CLERK: rt::ActorType = rt::ActorType::from_static("storm.clerk");
const OFFICE: rt::SpotType = rt::SpotType::from_static("storm.office");
const NODES: [&str; 3] = ["a", "b", "c"];
/// Those that have Actors; `c` only calls.
const OWNERS: [&str; 2] = ["a", "b"];
/// Who asks on each node, one thing after the other.
const SENDERS: usize = 2;
const IDS: usize = 10;
/// Those that nobody ends.
const ANCHORS: usize = 3;
const SECOND: Duration = Duration::from_secs(1);

/// One of an Actor: its ID and generation.
type Incarnation = (String, u64);

/// What one incarnation has done.
#[derive(Debug, Default)]
struct Past {
    node: String,
    /// What the Entry Spot was told of it.
    admitted: Option<u64>,
    /// The numbers that it was told, in that order.
    told: Vec<u64>,
    /// Whether it is at work.
    busy: bool,
    /// Whether somebody was told that it is gone.
    gone: bool,
    dropped: bool,
}

/// Who asked, of whom.
#[derive(Clone, Debug)]
struct Asked {
    sender: (&'static str, usize),
    id: String,
    ran: Vec<Incarnation>,
}

#[derive(Default)]
struct State {
    pasts: BTreeMap<Incarnation, Past>,
    asked: BTreeMap<u64, Asked>,
    /// Sends to anchors that were accepted: they must have run.
    owed: BTreeSet<u64>,
    references: BTreeMap<String, ActorRef>,
    /// What is wrong: a panic of a handler would only end its turn.
    wrong: Vec<String>,
}

/// All that happens, and all that is wrong with it.
#[derive(Clone)]
struct Book(Arc<Mutex<State>>, Dice);

impl Book {
    fn begin(&self, sender: (&'static str, usize), id: &str) -> u64 {
        let asked = &mut self.0.lock().asked;
        let number = asked.len() as u64 + 1;
        let (id, ran) = (id.to_owned(), Vec::new());
        asked.insert(number, Asked { sender, id, ran });
        number
    }

    /// Its factory runs: for the first time, and later than all that ran of the ID before.
    fn made(&self, context: &rt::ActorContext) -> Incarnation {
        let reference = context.reference();
        let one = (reference.id.to_string(), reference.generation.get());
        let mut state = self.0.lock();
        let past = Past {
            node: reference.node.to_string(),
            ..Past::default()
        };
        if let Some((later, _)) = state.pasts.range(one.clone()..).find(|(other, _)| other.0 == one.0) {
            let text = format!("{one:?} is made, and {later:?} was");
            state.wrong.push(text);
        }
        state.pasts.insert(one.clone(), past);
        one
    }

    fn with(&self, one: &Incarnation, what: &str, check: impl FnOnce(&mut Past) -> Result<(), &'static str>) {
        let mut state = self.0.lock();
        let newest = state.pasts.keys().rfind(|other| other.0 == one.0).cloned();
        let wrong = match state.pasts.get_mut(one).map(check) {
            None => Some("was never made"),
            Some(Err(wrong)) => Some(wrong),
            Some(Ok(())) => None,
        };
        let over = what != "drops" && newest.as_ref() != Some(one);
        let wrong = wrong.or(over.then_some("has a successor"));
        if let Some(wrong) = wrong {
            let text = format!("{one:?} {what}: it {wrong}");
            state.wrong.push(text);
        }
    }

    fn ran(&self, one: &Incarnation, number: u64) {
        if let Some(asked) = self.0.lock().asked.get_mut(&number) {
            asked.ran.push(one.clone());
        }
    }

    /// Somebody was told that this one is there.
    fn is_there(&self, actor: &ActorRef) {
        let mut state = self.0.lock();
        let one = (actor.id.to_string(), actor.generation.get());
        let admitted = state.pasts.get(&one).is_some_and(|past| past.admitted.is_some());
        if !admitted {
            state.wrong.push(format!("{one:?} is there, and nobody admitted it"));
        }
        state.references.insert(actor.id.to_string(), actor.clone());
    }

    /// Or that it is gone.
    fn is_gone(&self, actor: &ActorRef) {
        let one = (actor.id.to_string(), actor.generation.get());
        if let Some(past) = self.0.lock().pasts.get_mut(&one) {
            past.gone = true;
        }
    }

    fn check(&self) {
        let wrong = &self.0.lock().wrong;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

struct Clerk {
    book: Book,
    context: rt::ActorContext,
    one: Incarnation,
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.book.with(&self.one, "drops", |past| {
            let again = std::mem::replace(&mut past.dropped, true);
            if again { Err("was dropped before") } else { Ok(()) }
        });
    }
}

fn book(shared: Option<&Book>) -> Result<Book, HandlerError> {
    shared.cloned().ok_or_else(|| HandlerError::new("no book was shared"))
}

impl Clerk {
    async fn create(context: rt::ActorContext) -> Result<Self, HandlerError> {
        let book = book(context.shared())?;
        let one = book.made(&context);
        let clerk = Self { book, context, one };
        clerk.nap().await;
        match clerk.book.1.percent(3) {
            true => Err(HandlerError::new("as told")),
            false => Ok(clerk),
        }
    }

    fn context(&self) -> &rt::ActorContext {
        &self.context
    }

    async fn nap(&self) {
        match self.book.1.below(100) {
            0..=2 => tokio::time::sleep(self.book.1.millis(100, 1_500)).await,
            3..=25 => tokio::time::sleep(self.book.1.millis(1, 20)).await,
            _ => {}
        }
    }

    async fn turn(&mut self, text: &str) -> Result<(), HandlerError> {
        let number = text.parse()?;
        self.book.with(&self.one, "begins a turn", |past| {
            past.told.push(number);
            match (std::mem::replace(&mut past.busy, true), past.gone, past.admitted) {
                (true, ..) => Err("is at work"),
                (_, true, _) => Err("is gone"),
                (.., None) => Err("is not admitted"),
                _ => Ok(()),
            }
        });
        self.book.ran(&self.one, number);
        self.nap().await;
        self.book.with(&self.one, "ends a turn", |past| {
            past.busy = false;
            Ok(())
        });
        Ok(())
    }

    async fn hear(&mut self, _: &mut rt::ActorTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.turn(&message.text).await
    }

    async fn say(&mut self, _: &mut rt::ActorTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.turn(&request.text).await?;
        Ok(request)
    }
}

/// The Entry Spot.
struct Office(Book);

impl Office {
    async fn start(context: rt::SpotContext<rt::EntrySpot>) -> Result<Self, HandlerError> {
        Ok(Self(book(context.shared())?))
    }

    async fn on_create_clerk(
        &mut self,
        _: &mut rt::SpotTurn<'_, rt::EntrySpot>,
        clerk: &mut Clerk,
        request: Line,
    ) -> Result<Admission<Line>, HandlerError> {
        let number = request.text.parse()?;
        clerk.nap().await;
        match self.0.1.below(20) {
            0 => return Err(HandlerError::new("as told")),
            1 | 2 => return Ok(Admission::Rejected(request)),
            _ => {}
        }
        self.0.with(&clerk.one, "is admitted", |past| {
            let before = past.admitted.replace(number);
            if before.is_some() { Err("was before") } else { Ok(()) }
        });
        self.0.ran(&clerk.one, number);
        Ok(Admission::Accepted(request))
    }
}

struct Sender {
    book: Book,
    host: Host,
    from: (&'static str, usize),
    /// Whether nothing but the death of a node hinders anybody.
    is_calm: bool,
}

impl Sender {
    /// Asks for one thing.
    async fn ask(&self) {
        let (book, dice) = (&self.book, &self.book.1);
        let at = dice.below(IDS);
        let (id, what) = (format!("clerk-{at}"), dice.below(100));
        let (clerks, number) = (rt::ActorRoute::new(&self.host, CLERK), book.begin(self.from, &id));
        let (clerk, line) = (clerks.of(&id), || text(&number.to_string()));
        let timeout = dice.millis(300, if dice.percent(20) { 60_000 } else { 4_000 });
        let reference = book.0.lock().references.get(&id).cloned();
        match (what, reference) {
            (0..=7, _) => self.created(number, clerks.create(&id, line()).timeout(timeout).await),
            (8..=24, _) => self.created(number, clerks.get_or_create(&id, line()).timeout(timeout).await),
            (25..=29, Some(actor)) if at >= ANCHORS => {
                let ended = clerks.destroy(&actor).timeout(timeout).await;
                if self.told(number, &ended).is_some() {
                    book.is_gone(&actor);
                }
            }
            (30..=34, _) => {
                let found = clerks.find(&id).timeout(timeout).await;
                self.told(number, &found)
                    .cloned()
                    .flatten()
                    .iter()
                    .for_each(|actor| book.is_there(actor));
            }
            (35..=69, reference) => {
                let sent = clerk.send(const { rt::Method::send("storm.clerk.hear") }, line()).await;
                let stays = self.is_calm && at < ANCHORS && reference.is_some_and(|actor| !dies(&actor));
                if self.told(number, &sent).is_some() && stays {
                    book.0.lock().owed.insert(number);
                }
            }
            _ => {
                let call = clerk.request(const { rt::Method::request("storm.clerk.say", None) }, line());
                let answer: Result<Line, _> = call.timeout(timeout).await;
                if let Some(answer) = self.told(number, &answer) {
                    self.expect(number, answer, 1);
                }
            }
        }
    }

    /// The answer is to what was asked, which ran so often.
    fn expect(&self, number: u64, answer: &Line, times: usize) {
        let mut state = self.book.0.lock();
        let asked = &state.asked[&number];
        if answer.text != number.to_string() || asked.ran.len() != times {
            let text = format!("{number} is answered {answer:?}: {asked:?}");
            state.wrong.push(text);
        }
    }

    fn created(&self, number: u64, ended: Result<ActorCreated<Line>, CallError>) {
        let Some(ended) = self.told(number, &ended) else { return };
        match ended {
            ActorCreated::Existing(actor) => self.book.is_there(actor),
            ActorCreated::Rejected(answer) => self.expect(number, answer, 0),
            ActorCreated::Created(actor, answer) => {
                self.book.is_there(actor);
                self.expect(number, answer, 1);
                let one = (actor.id.to_string(), actor.generation.get());
                let admitted = self.book.0.lock().pasts.get(&one).and_then(|past| past.admitted);
                assert_eq!(admitted, Some(number), "{one:?} was made for somebody else");
            }
        }
    }

    /// What came of it; an error says whether it has run.
    fn told<'r, T>(&self, number: u64, ended: &'r Result<T, CallError>) -> Option<&'r T> {
        match ended {
            Ok(ended) => Some(ended),
            Err(error) => {
                let mut state = self.book.0.lock();
                let asked = &state.asked[&number];
                if error.execution() == Execution::NotExecuted && !asked.ran.is_empty() {
                    let text = format!("{number} ran, and was told {error}: {asked:?}");
                    state.wrong.push(text);
                }
                None
            }
        }
    }
}

/// Whether it is on the node that dies.
fn dies(actor: &ActorRef) -> bool {
    actor.node.to_string().starts_with("b-")
}

#[derive(Default, Debug)]
struct Figures {
    asked: AtomicUsize,
    incarnations: AtomicUsize,
    owed: AtomicUsize,
    made_anew: AtomicUsize,
}

fn build(cluster: &Cluster, book: &Book) {
    for name in NODES {
        let (store, book) = (cluster.store(name), book.clone());
        cluster.node(name, move |host| {
            let host = host.location_store(store.clone()).shared(book.clone());
            host.mesh("storm", |mesh| {
                let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
                if !OWNERS.contains(&name) {
                    return mesh.object_client();
                }
                mesh.object_server(|objects| {
                    let office = rt::SpotFactory::entry(OFFICE, Office::start);
                    let clerk = rt::ActorFactory::new(CLERK, Clerk::create, Clerk::context);
                    let clerk = clerk.send("storm.clerk.hear", Clerk::hear);
                    let clerk = clerk.request("storm.clerk.say", Clerk::say);
                    objects
                        .entry(office.creates(CLERK, Office::on_create_clerk).build())
                        .actor(clerk.relocation(rt::Relocation::Disabled).build())
                })
            })
        });
    }
}

/// Asks until the node ends that it asks from, or there is nothing more to ask.
async fn drive(sender: Sender, cluster: Cluster, until: rt::Instant) {
    while rt::Instant::now() < until && sender.host.status().phase == zlink_runtime::HostPhase::Serving {
        cluster.advance(sender.book.1.millis(5, 250)).await;
        sender.ask().await;
    }
}

async fn storm(cluster: Cluster, figures: &Figures) {
    let book = Book(Arc::default(), Dice::new(cluster.seed()));
    let dice = book.1.clone();
    let is_calm = cluster.seed().is_multiple_of(2);
    build(&cluster, &book);
    cluster.start_all().await.unwrap();
    cluster.advance(3 * SECOND).await;
    let until = rt::Instant::now() + 90 * SECOND;
    let begin = |name: &'static str| {
        let sender = |number| Sender {
            book: book.clone(),
            host: cluster.host(name),
            from: (name, number),
            is_calm,
        };
        let senders = (0..SENDERS).map(sender);
        senders
            .map(|sender| tokio::spawn(drive(sender, cluster.clone(), until)))
            .collect::<Vec<_>>()
    };
    let (mut senders, mut of_dead): (Vec<_>, _) = (["a", "c"].into_iter().flat_map(begin).collect(), begin("b"));
    cluster.advance(dice.millis(3_000, 20_000)).await;
    let ended = |book: &Book| {
        let state = book.0.lock();
        let ended = state.pasts.iter().filter(|(_, past)| past.dropped);
        ended.map(|(one, _)| one.clone()).collect::<BTreeSet<_>>()
    };
    let before = ended(&book);
    cluster.kill("b");
    for sender in of_dead.drain(..) {
        sender.abort();
    }
    let killed = book.0.lock().pasts.keys().cloned().collect::<BTreeSet<_>>();
    cluster.advance(dice.millis(500, 15_000)).await;
    cluster.start("b").await.unwrap();
    for _ in 0..5 {
        cluster.advance(dice.millis(1_000, 8_000)).await;
        if !is_calm {
            let pair = dice.one_of(&[("a", "b"), ("a", "c"), ("b", "c")]);
            cluster.network().break_connections(pair.0, pair.1, dice.percent(50));
        }
        book.check();
    }
    senders.extend(["b"].into_iter().flat_map(begin));
    for sender in senders {
        sender.await.unwrap();
    }
    cluster.at_rest(60 * SECOND).await;
    // So long may an Actor take to end whose destroyer has given up.
    cluster.advance(30 * SECOND).await;
    book.check();
    at_the_end(&cluster, &book).await;
    cluster.shutdown().await.unwrap();
    book.check();

    let state = book.0.lock();
    for (one, past) in &state.pasts {
        assert!(past.dropped, "{one:?} is kept: {past:?}");
        let mut last = BTreeMap::new();
        for number in &past.told {
            let before = last.insert(state.asked[number].sender, *number);
            assert!(before < Some(*number), "{one:?} was told {number} after {before:?}");
        }
    }
    for (number, asked) in &state.asked {
        assert!(asked.ran.len() <= 1, "{number} ran twice: {asked:?}");
        assert!(
            asked.ran.iter().all(|one| one.0 == asked.id),
            "{number} ran elsewhere: {asked:?}"
        );
        let is_lost = state.owed.contains(number) && asked.ran.is_empty();
        assert!(!is_lost, "{number} was accepted, and did not run: {asked:?}");
    }
    let add = |figure: &AtomicUsize, count| figure.fetch_add(count, Ordering::Relaxed);
    // The first of an ID that was on the node as it died.
    let lives = |one: &&Incarnation| state.pasts[*one].node.starts_with("b-") && !before.contains(*one);
    let anew = killed
        .iter()
        .filter(lives)
        .filter(|one| state.pasts.keys().any(|other| other.0 == one.0 && other.1 > one.1));
    add(&figures.asked, state.asked.len());
    add(&figures.incarnations, state.pasts.len());
    add(&figures.owed, state.owed.len());
    add(&figures.made_anew, anew.count());
}

/// All is well: each ID can be had, called and ended, and once it has ended there is none.
async fn at_the_end(cluster: &Cluster, book: &Book) {
    for at in 0..IDS {
        let name = book.1.one_of(&NODES);
        let (host, id) = (cluster.host(name), format!("clerk-{at}"));
        let clerks = rt::ActorRoute::new(&host, CLERK);
        let actor = loop {
            let number = book.begin((name, SENDERS), &id);
            let made = clerks.get_or_create::<_, Line>(&id, text(&number.to_string()));
            match made.timeout(60 * SECOND).await {
                Ok(made) => {
                    if let Some(actor) = made.reference() {
                        break actor.clone();
                    }
                }
                // As the factory and the Entry Spot were told to.
                Err(error) => assert_eq!(
                    error.kind(),
                    Some(ErrorKind::InternalFailure),
                    "{id} from {name}: {error}"
                ),
            }
        };
        book.is_there(&actor);
        let number = book.begin((name, SENDERS), &id);
        let clerk = clerks.of(&id);
        let hear = const { rt::Method::send("storm.clerk.hear") };
        clerk.send(hear, text(&number.to_string())).await.unwrap();
        book.0.lock().owed.insert(number);
        let ended = clerks.destroy(&actor).timeout(60 * SECOND).await;
        assert!(matches!(ended, Ok(true)), "{actor:?}: {ended:?}");
        book.is_gone(&actor);
        assert_eq!(clerks.find(&id).await.unwrap(), None, "{id}");
        assert_eq!(clerks.destroy(&actor).await.ok(), Some(false), "{id}");
    }
}

/// REQ: AC-010, AC-053, AC-068, AC-070, AC-082, AC-102
#[test]
fn twenty_storms_over_actors() {
    let figures = Figures::default();
    explore(24, async |cluster| storm(cluster, &figures).await);
    println!("{figures:?}");
    for (figure, least) in [
        (figures.asked, 20_000),
        (figures.incarnations, 1_000),
        (figures.owed, 1_000),
        (figures.made_anew, 100),
    ] {
        let figure = figure.into_inner();
        assert!(figure >= least, "no more than {figure}");
    }
}
