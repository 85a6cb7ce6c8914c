//! How often a host proves that it is alive, and how long others believe it.

use std::time::Duration;

/// The times of a host that uses a Location Store.
///
/// Hosts that share a store may differ in them: what others must know of a host stands in its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationTiming {
    /// Between two renewals of the host's lease: 5 s where it is not set.
    pub renew_interval: Duration,
    /// How long a lease holds that is not renewed: 15 s where it is not set.
    pub lease_ttl: Duration,
    /// How long one operation of the store may take before it counts as failed: 3 s where it is not set.
    pub renew_timeout: Duration,
    /// By how much a host stops to use its own lease earlier, and others count it out later: 5 s where it is not set.
    pub fencing_margin: Duration,
    /// Between two looks at what the store lists: 1 s where it is not set. At most `renew_interval` and
    /// `renew_timeout` together: whoever looks more seldom cannot tell a dead host from one that could not renew.
    pub poll_interval: Duration,
    /// For how long a failing store counts as a short outage in the host's status: 30 s where it is not set. It
    /// extends nothing.
    pub store_failure_grace: Duration,
}

impl Default for LocationTiming {
    fn default() -> Self {
        Self {
            renew_interval: Duration::from_secs(5),
            lease_ttl: Duration::from_secs(15),
            renew_timeout: Duration::from_secs(3),
            fencing_margin: Duration::from_secs(5),
            poll_interval: Duration::from_secs(1),
            store_failure_grace: Duration::from_secs(30),
        }
    }
}

/// The longest of these times that is taken; far above any that makes sense, so that sums of them are safe.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl LocationTiming {
    /// Everything that is wrong with it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let all = [
            ("renew_interval", self.renew_interval),
            ("lease_ttl", self.lease_ttl),
            ("renew_timeout", self.renew_timeout),
            ("fencing_margin", self.fencing_margin),
            ("poll_interval", self.poll_interval),
            ("store_failure_grace", self.store_failure_grace),
        ];
        let mut problems: Vec<_> = all
            .iter()
            .filter(|(_, time)| time.as_millis() == 0 || *time > LONGEST)
            .map(|(name, time)| format!("{name} is {time:?}; it must be 1 ms to 24 h"))
            .collect();
        if !problems.is_empty() {
            return problems;
        }
        if self.poll_interval > self.patience() {
            problems.push(format!(
                "poll_interval {:?} must be at most renew_interval {:?} + renew_timeout {:?}, or between two looks an outage \
                 could pass unseen, and no host would ever be counted out",
                self.poll_interval, self.renew_interval, self.renew_timeout
            ));
        }
        if self.renew_interval + self.renew_timeout + self.fencing_margin >= self.lease_ttl {
            problems.push(format!(
                "renew_interval {:?} + renew_timeout {:?} must be less than lease_ttl {:?} - fencing_margin {:?}, or one \
                 slow renewal would stop the host",
                self.renew_interval, self.renew_timeout, self.lease_ttl, self.fencing_margin
            ));
        }
        problems
    }

    /// For how long a lease is usable by its own host, counted from before the write that renewed it.
    pub(super) fn usable(&self) -> Duration {
        self.lease_ttl.saturating_sub(self.fencing_margin)
    }

    /// In what time every living host has renewed its lease, once the store can be used.
    pub(super) fn patience(&self) -> Duration {
        self.renew_interval + self.renew_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// REQ: LS-030, NET-1005
    #[test]
    fn a_renewal_and_its_timeout_must_fit_before_the_host_stops() {
        let timing = LocationTiming::default();
        assert!(timing.problems().is_empty());
        let slow = |renew_interval| LocationTiming {
            renew_interval,
            ..timing
        };
        assert!(slow(secs(7) - Duration::from_millis(1)).problems().is_empty());
        assert_eq!(slow(secs(7)).problems().len(), 1, "7 + 3 = 15 - 5");
        assert_eq!(slow(secs(10)).problems().len(), 1);
        assert_eq!(slow(Duration::ZERO).problems().len(), 1);
        assert_eq!(slow(Duration::MAX).problems().len(), 1);
        let margin = LocationTiming {
            fencing_margin: secs(20),
            ..timing
        };
        assert_eq!(margin.problems().len(), 1);
    }

    /// REQ: LS-057
    #[test]
    fn who_looks_too_seldom_to_see_the_dead_is_refused() {
        let looks = |poll_interval| LocationTiming {
            poll_interval,
            ..LocationTiming::default()
        };
        assert!(looks(secs(8)).problems().is_empty());
        let problems = looks(secs(8) + Duration::from_millis(1)).problems();
        assert!(
            problems.len() == 1 && problems[0].contains("poll_interval"),
            "{problems:?}"
        );
    }
}
