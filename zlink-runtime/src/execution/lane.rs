//! Which lane of a gate goes next: lifecycle before application, and not for ever.
//!
//! Pure: it is told which lanes are ready, and knows no queue.

use crate::limit::LIFECYCLE_RUN;

/// One of the two lanes of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Payload and ticks.
    Application,
    /// Join, leave, relocation, closing.
    Lifecycle,
}

/// The memory of one gate between two choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chooser {
    /// Lifecycle turns in a row.
    run: u8,
    /// The application lane is owed a turn.
    debt: bool,
}

impl Chooser {
    /// The lane of the next turn; `None` where neither is ready.
    pub(super) fn pick(&mut self, application: bool, lifecycle: bool) -> Option<Lane> {
        if application && (self.debt || !lifecycle) {
            *self = Self::default();
            return Some(Lane::Application);
        }
        if !lifecycle {
            return None;
        }
        self.run += 1;
        if self.run == LIFECYCLE_RUN {
            self.run = 0;
            self.debt = true;
        }
        Some(Lane::Lifecycle)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the contract says, step by step.
    #[derive(Default)]
    struct Model {
        counter: u32,
        debt: bool,
    }

    impl Model {
        fn pick(&mut self, application: bool, lifecycle: bool) -> Option<Lane> {
            match (application, lifecycle) {
                (false, false) => None,
                (true, true) if self.debt => {
                    self.debt = false;
                    self.counter = 0;
                    Some(Lane::Application)
                }
                (_, true) => {
                    self.counter += 1;
                    if self.counter == 16 {
                        self.counter = 0;
                        self.debt = true;
                    }
                    Some(Lane::Lifecycle)
                }
                (true, false) => {
                    self.counter = 0;
                    self.debt = false;
                    Some(Lane::Application)
                }
            }
        }
    }

    proptest! {
        /// REQ: EX-41, EX-43, EX-44
        #[test]
        fn it_picks_as_the_contract_says(ready in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.9)), 0..400)) {
            let (mut chooser, mut model) = (Chooser::default(), Model::default());
            for (application, lifecycle) in ready {
                prop_assert_eq!(chooser.pick(application, lifecycle), model.pick(application, lifecycle));
            }
        }
    }

    /// REQ: EX-43
    #[test]
    fn an_endless_lifecycle_stream_lets_an_application_turn_in_after_sixteen() {
        let mut chooser = Chooser::default();
        let picks: Vec<_> = (0..34).map(|_| chooser.pick(true, true).unwrap()).collect();
        let places: Vec<_> = (0..34).filter(|at| picks[*at] == Lane::Application).collect();
        assert_eq!(places, [16, 33]);
    }

    /// REQ: EX-44
    #[test]
    fn debt_outlives_an_empty_application_lane_and_is_cleared_by_one_turn() {
        let mut chooser = Chooser::default();
        for _ in 0..40 {
            assert_eq!(chooser.pick(false, true), Some(Lane::Lifecycle));
        }
        assert_eq!(chooser.pick(true, true), Some(Lane::Application));
        assert_eq!(chooser.pick(true, true), Some(Lane::Lifecycle));
    }
}
