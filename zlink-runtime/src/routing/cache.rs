//! Where objects were found last, for a while: found routes only, never that there is none. Pure: it is told the time.
//!
//! It must not know how a route is found, nor what it leads to.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Routes by ID. `K` names an object, `O` one run of an owner's host, `R` is what a route says.
#[derive(Debug)]
pub(crate) struct RouteCache<K, O, R> {
    max_age: Duration,
    capacity: usize,
    routes: HashMap<K, Entry<O, R>>,
    /// In the order they came; some are gone, or newer by now.
    order: VecDeque<(K, u64)>,
    /// Until when the routes of each owner hold, as far as that is known.
    owners: HashMap<O, Instant>,
}

#[derive(Debug)]
struct Entry<O, R> {
    owner: O,
    version: u64,
    until: Instant,
    route: R,
}

impl<K: Clone + Eq + Hash, O: Clone + Eq + Hash, R: Clone> RouteCache<K, O, R> {
    /// Of at most `capacity` routes, each for at most `max_age`; zero keeps none.
    pub(crate) fn new(max_age: Duration, capacity: usize) -> Self {
        Self {
            max_age,
            capacity,
            routes: HashMap::new(),
            order: VecDeque::new(),
            owners: HashMap::new(),
        }
    }

    /// Routes that are taken in from now on are kept for at most `max_age`; those that are there keep their time.
    pub(crate) fn set_max_age(&mut self, max_age: Duration) {
        self.max_age = max_age;
    }

    /// The route of `id`, while it may be used.
    pub(crate) fn get(&mut self, id: &K, now: Instant) -> Option<R> {
        let entry = self.routes.get(id)?;
        let owner_until = self.owners.get(&entry.owner);
        if now < entry.until && owner_until.is_none_or(|until| now < *until) {
            return Some(entry.route.clone());
        }
        self.routes.remove(id);
        None
    }

    /// Takes in what was found, unless something newer is known.
    pub(crate) fn put(&mut self, id: K, owner: O, version: u64, route: R, now: Instant) {
        if self.max_age.is_zero() || self.routes.get(&id).is_some_and(|known| known.version > version) {
            return;
        }
        let entry = Entry {
            owner,
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
    }

    /// What version `version` or an older one says of `id` is wrong.
    pub(crate) fn forget(&mut self, id: &K, version: u64) {
        if self.routes.get(id).is_some_and(|entry| entry.version <= version) {
            self.routes.remove(id);
        }
    }

    /// The routes of `owner` hold until then, and not longer.
    pub(crate) fn owner_holds(&mut self, owner: O, until: Instant) {
        self.owners.insert(owner, until);
    }

    /// That owner is gone, and so are its routes.
    pub(crate) fn owner_is_gone(&mut self, owner: &O) {
        self.owners.remove(owner);
        self.routes.retain(|_, entry| entry.owner != *owner);
    }

    /// Nothing that was found holds any more.
    pub(crate) fn clear(&mut self) {
        self.routes.clear();
        self.order.clear();
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(15);

    fn cache() -> (RouteCache<&'static str, u8, &'static str>, Instant) {
        (RouteCache::new(AGE, 3), Instant::now())
    }

    /// REQ: RT-004, RT-010
    #[test]
    fn a_route_is_used_for_its_age_and_a_new_age_is_for_new_ones() {
        let (mut cache, now) = cache();
        cache.put("a", 1, 5, "there", now);
        assert_eq!(cache.get(&"a", now + AGE - Duration::from_nanos(1)), Some("there"));
        cache.set_max_age(Duration::from_secs(1));
        cache.put("b", 1, 5, "there", now);
        assert_eq!(cache.get(&"b", now + Duration::from_secs(1)), None);
        assert_eq!(cache.get(&"a", now + Duration::from_secs(1)), Some("there"));
        assert_eq!(cache.get(&"a", now + AGE), None);
        cache.set_max_age(Duration::ZERO);
        cache.put("a", 1, 6, "there", now);
        assert_eq!(cache.get(&"a", now), None, "0 is off");
    }

    /// REQ: RT-004, RT-005
    #[test]
    fn all_routes_of_an_owner_end_with_it() {
        let (mut cache, now) = cache();
        cache.put("a", 1, 5, "one", now);
        cache.put("b", 1, 6, "one", now);
        cache.put("c", 2, 7, "two", now);
        cache.owner_holds(1, now + Duration::from_secs(2));
        assert_eq!(cache.get(&"a", now + Duration::from_secs(1)), Some("one"));
        cache.owner_holds(1, now + Duration::from_secs(4));
        assert_eq!(cache.get(&"a", now + Duration::from_secs(3)), Some("one"), "refreshed");
        assert_eq!(cache.get(&"a", now + Duration::from_secs(4)), None);
        cache.owner_is_gone(&1);
        assert_eq!(cache.get(&"b", now), None);
        assert_eq!(cache.get(&"c", now), Some("two"));
    }

    /// REQ: RT-005
    #[test]
    fn an_older_notice_erases_nothing_newer() {
        let (mut cache, now) = cache();
        cache.put("a", 1, 5, "old", now);
        cache.put("a", 2, 7, "new", now);
        cache.forget(&"a", 5);
        cache.put("a", 1, 6, "late", now);
        assert_eq!(cache.get(&"a", now), Some("new"));
        cache.forget(&"a", 7);
        assert_eq!(cache.get(&"a", now), None);
    }

    #[test]
    fn it_never_holds_more_than_its_capacity() {
        let (mut cache, now) = cache();
        for (number, id) in ["a", "b", "c", "d", "b", "e", "b", "b", "b", "b", "b"]
            .into_iter()
            .enumerate()
        {
            cache.put(id, 1, number as u64, id, now);
            assert!(cache.routes.len() <= 3 && cache.order.len() <= 6, "{number}");
        }
        assert_eq!(cache.get(&"a", now), None);
        assert_eq!(cache.get(&"b", now), Some("b"), "the newest of it stays");
        assert_eq!(cache.get(&"e", now), Some("e"));
    }
}
