//! What a tick leaves behind where its host ends at once.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use zlink_runtime::prelude::*;
use zlink_runtime::rt::{Created, Tick};
use zlink_runtime::{Overrun, TimerHandle};

use crate::arena::*;
use crate::kit::*;

/// A room whose ticks never end, and end their timer when they are dropped.
struct Ending(World);

struct Ends(World, TimerHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        let still_ran = self.1.cancel();
        self.0.note(format!("the timer ended, it ran: {still_ran}"));
    }
}

impl RoomSpot for Ending {
    async fn create(context: RoomContext, _: Line) -> Result<Created<Self, Line>, HandlerError> {
        let world = context.shared::<World>().cloned();
        let world = world.ok_or_else(|| HandlerError::new("no world was shared"))?;
        Ok(Created::Accepted(Self(world), text("")))
    }

    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        turn.add_timer(ROOM_TICK, Duration::from_secs(1))?;
        Ok(())
    }

    async fn say(&mut self, _: &mut RoomTurn<'_>, _: Line) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn look(&mut self, _: &mut RoomTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        Ok(request)
    }

    async fn settle(_: &mut RoomYieldTurn<'_, Self>, request: Line) -> Result<Line, HandlerError> {
        Ok(request)
    }

    async fn disband(&mut self, _: &mut RoomTurn<'_>, _: Nothing) -> Result<Line, HandlerError> {
        Ok(text(""))
    }

    async fn news(&mut self, _: &mut RoomTurn<'_>, _: Line) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn tick(&mut self, turn: &mut RoomTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        let again = turn.add_timer_with(ROOM_TICK, Duration::from_secs(1), Overrun::default())?;
        let _ends = Ends(self.0.clone(), again);
        self.0.note("tick");
        pending().await
    }
}

/// What is dropped with a turn is the user's, and may ask its Spot for something, such as the end of a timer, whatever the
/// timer's gate is.
///
/// REQ: EX-105, EX-64
#[test]
fn what_a_stopped_tick_leaves_behind_may_end_its_timer() {
    for (provider, is_wide) in PROVIDERS.into_iter().flat_map(|one| [(one, false), (one, true)]) {
        let (tell, told) = mpsc::channel();
        // On a thread of its own: where the stop waits for itself, it waits for ever.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            let log = runtime.block_on(async {
                let (cluster, world) = on(provider, 139);
                serves_with(&cluster, &world, "owner", move |objects| match is_wide {
                    true => objects.spot(wide_room_spot::<Ending>()),
                    false => objects.spot(room_spot::<Ending>()),
                });
                start(&cluster).await.unwrap();
                room_spots(&cluster.host("owner"))
                    .get_or_create("room", text(""))
                    .await
                    .unwrap();
                world.until("tick").await;
                cluster.kill("owner");
                cluster.advance(Duration::from_secs(1)).await;
                world.log()
            });
            tell.send(log).unwrap();
        });
        let log = told.recv_timeout(Duration::from_secs(60)).expect("the stop ends");
        assert_eq!(
            log,
            ["tick", "the timer ended, it ran: false"],
            "{provider:?}, wide: {is_wide}"
        );
    }
}
