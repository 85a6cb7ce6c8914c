//! A turn stays with its handler: no task of its own can run with it.

use zlink_runtime::rt::YieldTurn;

struct Room;

fn on_another_thread(task: impl Future<Output = ()> + Send + 'static) {
    drop(task);
}

async fn settle(turn: &mut YieldTurn<'_, Room>) {
    on_another_thread(async move {
        turn.state();
    });
}

fn main() {}
