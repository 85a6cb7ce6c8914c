//! What every [`Transport`] has to pass: named cases, over a transport that the caller makes. Cargo feature `testing`.
//!
//! An implementation's own crate has this as one of its tests. Each case is a test of its name there, and runs in a
//! process of its own, so that a case that ends the process or never returns is a failure like any other.
//!
//! ```no_run
//! use std::sync::Arc;
//! use zlink_runtime::testing::transport::Suite;
//! use zlink_runtime::transport::{LinkConfig, LinkTransport};
//!
//! fn suite() -> Suite {
//!     // Your transport in the place of this one.
//!     Suite::over(|| Arc::new(LinkTransport::new(LinkConfig::default())))
//!         .speaks_zmtp()
//!         .known_failure("two_lanes_over_a_unix_socket", "no Unix sockets yet: issue 17")
//! }
//! zlink_runtime::transport_conformance!(suite());
//! # fn main() {}
//! ```
//!
//! What a transport has to know of the records it carries: the first byte is the protocol's version, the second the
//! record's kind. [`Peer::takes_permit`](crate::transport::Peer::takes_permit) tells which of them wait for a permit;
//! [`spend`](crate::transport::spend) takes off a request's remaining time what it has waited for room.
//! It must not look at anything else.
//!
//! The cases use `tcp://` endpoints on the loopback interface, one of them an `ipc://` one, and up to 4,200
//! descriptors. They hold on a busy machine: what they wait for has ten seconds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::missing_panics_doc,
    reason = "it fails tests, and its numbers are small"
)]

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::transport::{BoxFuture, Transport};

mod basics;
mod budget;
mod cancel;
mod crowd;
mod hostile;
#[doc(hidden)]
pub mod kit;
mod permits;
mod process;

#[doc(hidden)]
pub use crowd::soak;
pub use process::Child;

/// One thing that every transport does.
#[derive(Clone, Copy)]
pub struct Conformance {
    /// Its name, and that of its test.
    pub name: &'static str,
    /// Whether it sends raw ZMTP bytes: only where the transport speaks that.
    pub needs_zmtp: bool,
    /// How many threads its runtime has.
    pub threads: usize,
    /// Runs it. It panics where the transport does not conform.
    pub run: fn(Rig) -> BoxFuture<'static, ()>,
}

impl fmt::Debug for Conformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Conformance").field(&self.name).finish()
    }
}

/// Every case, in the order of [`transport_conformance!`](crate::transport_conformance)'s tests.
#[must_use]
pub const fn cases() -> &'static [Conformance] {
    macro_rules! table {
        (() $($(#[$attribute:meta])* $room:ident::$name:ident on $threads:literal;)*) => {
            const { &[$(Conformance {
                name: stringify!($name),
                needs_zmtp: matches!(stringify!($room).as_bytes(), b"hostile"),
                threads: $threads,
                run: |rig| Box::pin($room::$name(rig)),
            }),*] }
        };
    }
    crate::__testing_transport_cases!([table]())
}

type Make = Arc<dyn Fn() -> Arc<dyn Transport> + Send + Sync>;

/// The cases, over one kind of transport.
#[derive(Clone)]
pub struct Suite {
    make: Make,
    zmtp: bool,
    known: Vec<(&'static str, &'static str)>,
    left_out: Vec<(&'static str, &'static str)>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suite")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl Suite {
    /// The cases over what `make` makes, within a tokio runtime: a case makes two, one for either side.
    pub fn over<T: Transport>(make: impl Fn() -> Arc<T> + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(move || make()),
            zmtp: false,
            known: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// It speaks ZMTP 3.1 on `tcp://` endpoints: raw and hostile connections are tried too. They are left out
    /// otherwise.
    #[must_use]
    pub fn speaks_zmtp(mut self) -> Self {
        self.zmtp = true;
        self
    }

    /// The case `name` fails, and why. The suite fails when it passes, so that the list never says too much.
    ///
    /// # Panics
    /// Where no case has that name.
    #[must_use]
    pub fn known_failure(mut self, name: &'static str, reason: &'static str) -> Self {
        assert!(cases().iter().any(|case| case.name == name), "no case is named {name}");
        self.known.push((name, reason));
        self
    }

    /// The case `name` is not even tried, and why: one that is known to fail, and too costly to see again each time.
    ///
    /// # Panics
    /// Where no case has that name.
    #[must_use]
    pub fn left_out(mut self, name: &'static str, reason: &'static str) -> Self {
        assert!(cases().iter().any(|case| case.name == name), "no case is named {name}");
        self.left_out.push((name, reason));
        self
    }

    /// Runs the case `name` as the test of that name in `module`, for
    /// [`transport_conformance!`](crate::transport_conformance).
    ///
    /// # Panics
    /// Where the case fails and is not known to, or passes and is known to fail.
    pub fn run(&self, name: &str, module: &str) {
        let case = cases().iter().find(|case| case.name == name).expect("a case");
        if case.needs_zmtp && !self.zmtp {
            println!("left out: this transport does not speak ZMTP");
            return;
        }
        if let Some((_, reason)) = self.left_out.iter().find(|(left_out, _)| *left_out == name) {
            println!("left out: {reason}");
            return;
        }
        let test = match module.split_once("::") {
            Some((_, within)) => format!("{within}::{name}"),
            None => name.to_owned(),
        };
        if process::Role::of_this_process(self, case, &test) {
            return;
        }
        let known = self.known.iter().find(|(known, _)| *known == name);
        match (process::run_apart(&test), known) {
            (Ok(()), None) => {}
            (Ok(()), Some((_, reason))) => panic!("{name} passes, and was known to fail: {reason}"),
            (Err(said), None) => panic!("{name} fails:\n{said}"),
            (Err(said), Some((_, reason))) => println!("{name} fails, as is known: {reason}\n{said}"),
        }
    }
}

/// What a case runs on.
#[derive(Clone)]
pub struct Rig {
    make: Make,
    test: String,
    sides: Arc<[OnceLock<Arc<dyn Transport>>; 2]>,
}

impl fmt::Debug for Rig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rig").field("test", &self.test).finish_non_exhaustive()
    }
}

impl Rig {
    /// For the test of that whole name, which starts again as a child of itself where a case needs other processes.
    #[must_use]
    pub fn new(suite: &Suite, test: &str) -> Self {
        Self {
            make: suite.make.clone(),
            test: test.to_owned(),
            sides: Arc::default(),
        }
    }

    /// The transport of the side that dials.
    #[must_use]
    pub fn transport(&self) -> &dyn Transport {
        &**self.sides[0].get_or_init(|| (self.make)())
    }

    /// The transport of the side that listens.
    #[must_use]
    pub fn listening(&self) -> &dyn Transport {
        &**self.sides[1].get_or_init(|| (self.make)())
    }
}

/// Makes a test of each case of [`zlink_runtime::testing::transport`](crate::testing::transport), over a [`Suite`].
#[macro_export]
macro_rules! transport_conformance {
    ($suite:expr) => {
        $crate::__testing_transport_cases!([$crate::__testing_transport_test]($suite));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __testing_transport_test {
    (($suite:expr) $($(#[$attribute:meta])* $room:ident::$name:ident on $threads:literal;)*) => {$(
        $(#[$attribute])*
        fn $name() {
            $suite.run(stringify!($name), module_path!());
        }
    )*};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __testing_transport_cases {
    ([$($then:tt)*] $arguments:tt) => {
        $($then)*! {
            $arguments
            /// REQ: PM-40, NET-914
            #[test]
            basics::two_lanes_over_tcp on 1;
            #[test]
            basics::one_lane_over_tcp on 1;
            #[test]
            basics::two_lanes_over_a_unix_socket on 2;
            #[test]
            cancel::dialling_and_binding on 1;
            #[test]
            cancel::sending on 1;
            /// REQ: PM-27
            #[test]
            cancel::receiving on 2;
            /// REQ: PM-37, PM-73, NET-909, NET-912
            #[test]
            crowd::slow_stopped_and_killed_peers_leave_sixteen_others_served on 2;
            #[test]
            crowd::two_hundred_peers on 2;
            #[test]
            crowd::two_thousand_reconnects_with_fixed_identities on 2;
            /// REQ: NET-607
            #[test]
            crowd::each_link_tells_the_run_of_its_peer_and_ends_alone on 1;
            #[test]
            crowd::frames_of_sixteen_mebibytes on 1;
            /// REQ: PM-30, PM-36, PM-91, PM-20
            #[test]
            permits::without_a_permit_nothing_is_received on 1;
            /// REQ: PM-40, PM-41, NET-914
            #[test]
            permits::completions_pass_while_data_stands_still on 1;
            /// REQ: PM-42
            #[test]
            permits::on_one_lane_a_completion_waits_behind_data_only on 1;
            /// REQ: PM-44, PM-42
            #[test]
            permits::who_dialled_one_lane_hears_the_links_own_records_without_a_permit on 1;
            /// REQ: PM-83, PM-86, PM-90, PM-05
            #[test]
            budget::a_paused_peer_is_one_reason_to_wait_and_a_full_budget_another on 1;
            /// REQ: PM-82, PM-87, NET-913
            #[test]
            budget::a_new_link_is_told_at_once_and_a_dealer_tells_nobody on 1;
            /// REQ: PM-101, PM-100
            #[test]
            budget::waiting_senders_go_in_their_order_and_the_budget_holds on 1;
            #[test]
            budget::a_record_larger_than_the_budget_goes_alone on 1;
            /// REQ: MSG-803, MSG-804, MSG-904
            #[test]
            budget::the_greatest_record_passes_and_one_more_byte_does_not on 1;
            /// REQ: PM-71, PM-73, NET-909
            #[test]
            permits::a_flood_leaves_others_their_turn on 1;
            #[test]
            permits::before_admission_four_records_are_read_and_no_permit_is_taken on 1;
            #[test]
            permits::a_link_that_nobody_admits_ends_after_two_seconds on 1;
            /// REQ: NET-911
            #[test]
            permits::the_end_of_a_peer_is_noticed_without_reading_and_its_backlog_is_kept on 1;
            /// REQ: PM-61, PM-100
            #[test]
            permits::who_does_not_read_answers_is_not_read_from on 1;
            /// REQ: PM-35, PM-60
            #[test]
            permits::who_does_not_read_answers_keeps_no_permit on 1;
            /// REQ: MSG-903, NET-912
            #[test]
            hostile::two_thousand_half_open_handshakes on 1;
            /// REQ: MSG-903, MSG-904
            #[test]
            hostile::declared_lengths_allocate_nothing on 1;
            #[test]
            hostile::endless_multipart_is_closed on 1;
            /// REQ: NET-912, MSG-901
            #[test]
            hostile::random_bytes_are_closed_and_nobody_else_suffers on 1;
            #[test]
            basics::what_cannot_be_bound_or_dialled_says_so on 1;
            #[test]
            hostile::running_out_of_descriptors on 1;
        }
    };
}
