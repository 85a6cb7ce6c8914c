//! Where objects were found last, for a while: found routes only, never that there is none. Pure: it is told the time.
//!
//! A route is shared with those that have used it: they ask it, and need no look here, as long as it holds. It must not know
//! how a route is found, nor what it leads to.

use std::borrow::Borrow;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A table of so many is small.
const SMALL: usize = 1024;

/// A moment: how long its clock has run.
type Moment = Duration;

/// Routes by ID. `K` names an object, `R` is what a route says.
#[derive(Debug)]
pub(crate) struct RouteCache<K: Eq + Hash, R> {
    max_age: Duration,
    capacity: usize,
    routes: HashSet<ById<K, R>>,
    /// In the order they came; some are gone by now.
    order: VecDeque<Arc<Known<K, R>>>,
    /// How often all that was found before has become worthless.
    epoch: u64,
}

/// A route that was found.
#[derive(Debug)]
pub(crate) struct Known<K, R> {
    id: K,
    version: u64,
    until: Moment,
    epoch: u64,
    /// Whether the cache has it. What is not there holds nowhere.
    is_there: AtomicBool,
    route: R,
}

impl<K, R> Known<K, R> {
    /// Whether it may be used at that moment of that epoch.
    #[inline]
    pub(crate) fn holds(&self, now: Moment, epoch: u64) -> bool {
        self.is_there() && now < self.until && epoch == self.epoch
    }

    /// Whether nothing was heard against it; it may have become too old.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Acquire)
    }

    /// How long it may still be used.
    pub(crate) fn left(&self, now: Moment) -> Duration {
        self.until.saturating_sub(now)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn route(&self) -> &R {
        &self.route
    }

    fn is_gone(&self) {
        self.is_there.store(false, Ordering::Release);
    }
}

/// The same, found by its ID.
#[derive(Debug)]
struct ById<K, R>(Arc<Known<K, R>>);

impl<K: Eq, R> PartialEq for ById<K, R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}
impl<K: Eq, R> Eq for ById<K, R> {}
impl<K: Hash, R> Hash for ById<K, R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}
impl<K, R> Borrow<K> for ById<K, R> {
    fn borrow(&self) -> &K {
        &self.0.id
    }
}

impl<K: Eq + Hash, R> RouteCache<K, R> {
    /// Of at most `capacity` routes, each for at most `max_age`; zero keeps none.
    pub(crate) fn new(max_age: Duration, capacity: usize) -> Self {
        Self {
            max_age,
            capacity,
            routes: HashSet::new(),
            order: VecDeque::new(),
            epoch: 0,
        }
    }

    /// Changes the age of what comes from here on. What is there stays as long as it was to.
    pub(crate) fn set_max_age(&mut self, max_age: Duration) {
        self.max_age = max_age;
    }

    /// How long what comes from here on may be used.
    pub(crate) fn max_age(&self) -> Duration {
        self.max_age
    }

    /// In a new epoch nothing holds that was found before.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.routes.clear();
            self.order.drain(..).for_each(|known| known.is_gone());
        }
    }

    /// The route of `id`, while it may be used.
    pub(crate) fn get(&mut self, id: &K, now: Moment) -> Option<&Arc<Known<K, R>>> {
        let known = &self.routes.get(id)?.0;
        known.holds(now, self.epoch).then_some(known)
    }

    /// Whether what version `version` says would be the newest of `id`, and is to be kept at all.
    pub(crate) fn takes(&self, id: &K, version: u64) -> bool {
        let newer = self.routes.get(id).is_some_and(|known| known.0.version > version);
        !self.max_age.is_zero() && !newer
    }

    /// Takes in what was found, unless something newer is known.
    pub(crate) fn put(&mut self, id: K, version: u64, route: R, now: Moment) {
        if !self.takes(&id, version) {
            return;
        }
        self.drop_old(now);
        let known = Arc::new(Known {
            id,
            version,
            until: now.saturating_add(self.max_age),
            epoch: self.epoch,
            is_there: AtomicBool::new(true),
            route,
        });
        if let Some(before) = self.routes.replace(ById(known.clone())) {
            before.0.is_gone();
        }
        self.order.push_back(known);
        while self.routes.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(&oldest);
        }
        if self.order.len() > 2 * self.routes.len().max(SMALL.min(self.capacity)) {
            self.order.retain(|known| known.is_there());
        }
    }

    /// Forgets what has become too old, of whatever came first.
    pub(crate) fn drop_old(&mut self, now: Moment) {
        while let Some(oldest) = self.order.pop_front_if(|known| !known.holds(now, self.epoch)) {
            self.remove(&oldest);
        }
        // Many came at once, and are gone.
        if self.order.capacity() > SMALL && self.order.len() < self.order.capacity() / 4 {
            self.order.shrink_to(2 * self.order.len());
            self.routes.shrink_to(2 * self.routes.len());
        }
    }

    /// What version `version` or an older one says of `id` is wrong.
    pub(crate) fn forget(&mut self, id: &K, version: u64) {
        if let Some(known) = self.routes.get(id)
            && known.0.version <= version
        {
            known.0.is_gone();
            self.routes.remove(id);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    /// For how many it has room.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.routes.capacity().max(self.order.capacity())
    }

    /// Forgets that one, and none that came in its place.
    pub(crate) fn remove(&mut self, known: &Arc<Known<K, R>>) {
        if known.is_there() {
            known.is_gone();
            self.routes.remove(&known.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(15);

    type Cache = RouteCache<&'static str, &'static str>;

    fn cache() -> (Cache, Moment) {
        (RouteCache::new(AGE, 3), Duration::from_secs(1_000_000))
    }

    fn get(cache: &mut Cache, id: &'static str, now: Moment) -> Option<&'static str> {
        cache.get(&id, now).map(|known| *known.route())
    }

    /// REQ: RT-004
    #[test]
    fn a_route_is_used_for_its_age() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "there", now);
        assert_eq!(get(&mut cache, "a", now + AGE - Duration::from_nanos(1)), Some("there"));
        assert_eq!(get(&mut cache, "a", now + AGE), None);
        let mut off = RouteCache::new(Duration::ZERO, 3);
        off.put("a", 6, "there", now);
        assert_eq!(get(&mut off, "a", now), None, "0 is off");
    }

    /// REQ: RT-005
    #[test]
    fn an_older_notice_erases_nothing_newer() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "old", now);
        cache.put("a", 7, "new", now);
        cache.forget(&"a", 5);
        cache.put("a", 6, "late", now);
        assert_eq!(get(&mut cache, "a", now), Some("new"));
        cache.forget(&"a", 7);
        assert_eq!(get(&mut cache, "a", now), None);
    }

    /// REQ: RT-005
    #[test]
    fn a_new_epoch_begins_empty() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "there", now);
        cache.begin_epoch(0);
        assert_eq!(get(&mut cache, "a", now), Some("there"));
        cache.begin_epoch(1);
        assert_eq!(get(&mut cache, "a", now), None);
        cache.put("a", 2, "anew", now);
        cache.begin_epoch(1);
        assert_eq!(get(&mut cache, "a", now), Some("anew"), "versions begin anew, too");
    }

    /// REQ: RT-010
    #[test]
    fn another_age_is_for_what_comes_later() {
        let (mut cache, now) = cache();
        cache.put("old", 1, "there", now);
        cache.set_max_age(Duration::from_secs(1));
        cache.put("new", 2, "there", now);
        let later = now + Duration::from_secs(1);
        assert_eq!(
            (get(&mut cache, "old", later), get(&mut cache, "new", later)),
            (Some("there"), None)
        );
        assert_eq!(get(&mut cache, "old", now + AGE), None);
    }

    #[test]
    fn it_never_holds_more_than_its_capacity() {
        let (mut cache, now) = cache();
        for (number, id) in ["a", "b", "c", "d", "b", "e", "b", "b", "b", "b", "b"]
            .into_iter()
            .enumerate()
        {
            cache.put(id, number as u64, id, now);
            assert!(cache.routes.len() <= 3 && cache.order.len() <= 6, "{number}");
        }
        assert_eq!(get(&mut cache, "a", now), None);
        assert_eq!(get(&mut cache, "b", now), Some("b"), "the newest of it stays");
        assert_eq!(get(&mut cache, "e", now), Some("e"));
    }

    #[test]
    fn what_was_forgotten_needs_no_room_behind_what_is_there() {
        let (_, now) = cache();
        let mut cache = RouteCache::<usize, ()>::new(AGE, usize::MAX);
        cache.put(0, 0, (), now);
        for id in 1..100_000 {
            cache.put(id, 0, (), now);
            cache.forget(&id, 0);
        }
        assert_eq!(cache.len(), 1);
        assert!(cache.room() <= 4 * SMALL, "{}", cache.room());
    }

    #[test]
    fn forgetting_one_leaves_what_came_in_its_place() {
        let (mut cache, now) = cache();
        cache.put("a", 0, "before", now);
        let before = cache.get(&"a", now).cloned().unwrap();
        cache.put("a", 0, "after", now);
        cache.remove(&before);
        assert_eq!(get(&mut cache, "a", now), Some("after"));
        let after = cache.get(&"a", now).cloned().unwrap();
        cache.remove(&after);
        assert_eq!(get(&mut cache, "a", now), None);
    }
}
