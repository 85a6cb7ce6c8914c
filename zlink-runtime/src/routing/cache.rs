//! Where objects were found last, for a while: found routes only, never that there is none. Pure: it is told the time.
//!
//! It must not know how a route is found, nor what it leads to.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Routes by ID. `K` names an object, `R` is what a route says.
#[derive(Debug)]
pub(crate) struct RouteCache<K, R> {
    max_age: Duration,
    capacity: usize,
    routes: HashMap<K, Entry<R>>,
    /// In the order they came; some are gone, or newer by now.
    order: VecDeque<(K, u64)>,
    /// How often all that was found before has become worthless.
    epoch: u64,
}

#[derive(Debug)]
struct Entry<R> {
    version: u64,
    until: Instant,
    route: R,
}

impl<K: Clone + Eq + Hash, R: Clone> RouteCache<K, R> {
    /// Of at most `capacity` routes, each for at most `max_age`; zero keeps none.
    pub(crate) fn new(max_age: Duration, capacity: usize) -> Self {
        Self {
            max_age,
            capacity,
            routes: HashMap::new(),
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
            self.order.clear();
        }
    }

    /// The route of `id`, while it may be used.
    pub(crate) fn get(&mut self, id: &K, now: Instant) -> Option<R> {
        let entry = self.routes.get(id)?;
        if now < entry.until {
            return Some(entry.route.clone());
        }
        self.routes.remove(id);
        None
    }

    /// Takes in what was found, unless something newer is known. Whether it did.
    pub(crate) fn put(&mut self, id: K, version: u64, route: R, now: Instant) -> bool {
        if self.max_age.is_zero() || self.routes.get(&id).is_some_and(|known| known.version > version) {
            return false;
        }
        let entry = Entry {
            version,
            until: now + self.max_age,
            route,
        };
        self.order.push_back((id.clone(), version));
        self.routes.insert(id, entry);
        while self.routes.len() > self.capacity {
            let Some((oldest, version)) = self.order.pop_front() else {
                break;
            };
            self.forget(&oldest, version);
        }
        if self.order.len() > 2 * self.capacity {
            let routes = &self.routes;
            self.order
                .retain(|(id, version)| routes.get(id).is_some_and(|entry| entry.version == *version));
        }
        true
    }

    /// What version `version` or an older one says of `id` is wrong.
    pub(crate) fn forget(&mut self, id: &K, version: u64) {
        if self.routes.get(id).is_some_and(|entry| entry.version <= version) {
            self.routes.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(15);

    fn cache() -> (RouteCache<&'static str, &'static str>, Instant) {
        (RouteCache::new(AGE, 3), Instant::now())
    }

    /// REQ: RT-004
    #[test]
    fn a_route_is_used_for_its_age() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "there", now);
        assert_eq!(cache.get(&"a", now + AGE - Duration::from_nanos(1)), Some("there"));
        assert_eq!(cache.get(&"a", now + AGE), None);
        let mut off = RouteCache::new(Duration::ZERO, 3);
        off.put("a", 6, "there", now);
        assert_eq!(off.get(&"a", now), None, "0 is off");
    }

    /// REQ: RT-005
    #[test]
    fn an_older_notice_erases_nothing_newer() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "old", now);
        cache.put("a", 7, "new", now);
        cache.forget(&"a", 5);
        cache.put("a", 6, "late", now);
        assert_eq!(cache.get(&"a", now), Some("new"));
        cache.forget(&"a", 7);
        assert_eq!(cache.get(&"a", now), None);
    }

    /// REQ: RT-005
    #[test]
    fn a_new_epoch_begins_empty() {
        let (mut cache, now) = cache();
        cache.put("a", 5, "there", now);
        cache.begin_epoch(0);
        assert_eq!(cache.get(&"a", now), Some("there"));
        cache.begin_epoch(1);
        assert_eq!(cache.get(&"a", now), None);
        cache.put("a", 2, "anew", now);
        cache.begin_epoch(1);
        assert_eq!(cache.get(&"a", now), Some("anew"), "versions begin anew, too");
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
            (cache.get(&"old", later), cache.get(&"new", later)),
            (Some("there"), None)
        );
        assert_eq!(cache.get(&"old", now + AGE), None);
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
        assert_eq!(cache.get(&"a", now), None);
        assert_eq!(cache.get(&"b", now), Some("b"), "the newest of it stays");
        assert_eq!(cache.get(&"e", now), Some("e"));
    }
}
