//! Timers of one name: each registration ends the one before, ticks that wait included.

use std::time::Duration;

use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const HALF: Duration = Duration::from_millis(500);

/// REQ: SP-131, EX-64
#[tokio::test(start_paused = true)]
async fn a_timer_that_is_started_anew_has_none_of_its_old_ticks() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 195).await?;
        let (one, _) = room(&host, "one", "ticks").await?;
        cluster.advance(HALF).await;
        // At half a second: from then on every second, and no more at the full ones.
        look(&one, "overrun skip").await?;
        for number in 1..4 {
            cluster.advance(SECOND - HALF / 2).await;
            assert_eq!(world.count("ticks"), number - 1, "{:?}", world.log());
            cluster.advance(HALF / 2).await;
            cluster.advance(Duration::from_millis(20)).await;
            assert_eq!(world.count("ticks"), number, "{:?}", world.log());
        }
        // A tick waits behind a turn that starts its timer anew, and is not run.
        one.say(text("gate")).await?;
        let anew = tokio::spawn(one.look(text("overrun skip")).into_future());
        cluster.advance(SECOND + HALF / 2).await;
        assert_eq!(cluster.host("owner").status().jobs.queued, 2);
        world.open(1);
        anew.await??;
        cluster.advance(SECOND - HALF / 2).await;
        assert_eq!(world.count("ticks"), 3, "{:?}", world.log());
        cluster.advance(HALF).await;
        assert_eq!(world.count("ticks"), 4, "{:?}", world.log());
        // Nor is one that waits behind the turn that ends its timer.
        one.say(text("gate")).await?;
        let ended = tokio::spawn(one.look(text("timer tick")).into_future());
        cluster.advance(SECOND).await;
        world.open(1);
        assert_eq!(ended.await??.text, "tick true");
        cluster.advance(5 * SECOND).await;
        assert_eq!(world.count("ticks"), 4, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}
