//! The Actors that a lobby of the generated arena must name, for tests of Spots: none is ever made.

use zlink_generated::arena::{Look, Move, PlayerActor, PlayerContext, PlayerState, PlayerTurn, PlayerYieldTurn};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Tick;

/// A player that nobody registers.
pub(crate) struct NoPlayer(PlayerContext);

fn never<T>() -> Result<T, HandlerError> {
    Err(HandlerError::new("no player is made in these tests"))
}

impl PlayerActor for NoPlayer {
    async fn create(_: PlayerContext) -> Result<Self, HandlerError> {
        never()
    }

    fn context(&self) -> &PlayerContext {
        &self.0
    }

    async fn walk(&mut self, _: &mut PlayerTurn<'_>, _: Move) -> Result<(), HandlerError> {
        never()
    }

    async fn info(_: &mut PlayerYieldTurn<'_, Self>, _: Look) -> Result<PlayerState, HandlerError> {
        never()
    }

    async fn on_rest(&mut self, _: &mut PlayerTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        never()
    }

    async fn on_level_up(_: &mut PlayerYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}
