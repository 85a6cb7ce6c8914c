//! Model check: a route that was found before a loss, or that was forgotten, is not used.
//!
//! `RUSTFLAGS="--cfg zlink_loom" cargo test -p zlink-runtime --lib --release loom_`

use std::sync::Arc;

use loom::thread;

use super::Route;

/// One finds it anew, after a loss; another has been refused by what was known before.
#[test]
fn loom_a_route_from_before_a_loss_is_not_used_after_it() {
    loom::model(|| {
        let route = Arc::new(Route::default());
        assert!(!route.holds(5, 0), "nothing is known");
        route.is_found(10, 1, 0);
        let finder = {
            let route = route.clone();
            thread::spawn(move || route.is_found(20, 2, 1))
        };
        let refused = {
            let route = route.clone();
            thread::spawn(move || route.forget(1))
        };
        if route.holds(5, 1) {
            assert_eq!(
                route.version(),
                2,
                "whoever knows of the loss goes by what was found after it"
            );
        }
        finder.join().unwrap();
        refused.join().unwrap();
        assert!(!route.holds(5, 0));
        assert!(!route.holds(20, 1), "and never beyond its age");
    });
}

/// What a caller was sent by, and refused, is gone for that caller's next call.
#[test]
fn loom_what_refused_a_call_is_not_asked_again() {
    loom::model(|| {
        let route = Arc::new(Route::default());
        route.is_found(10, 3, 0);
        let other = {
            let route = route.clone();
            thread::spawn(move || route.forget(2))
        };
        route.forget(3);
        assert!(!route.holds(5, 0));
        other.join().unwrap();
        assert!(!route.holds(5, 0));
    });
}
