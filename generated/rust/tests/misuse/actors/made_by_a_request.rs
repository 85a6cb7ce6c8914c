//! What makes an Actor gets its context and nothing else; the request is for the Entry Spot that admits it.

use zlink_generated::depot::{Ask, Hire, InspectorActor, InspectorContext, InspectorTurn, Status};
use zlink_runtime::prelude::*;

struct Inspector(InspectorContext);

impl InspectorActor for Inspector {
    async fn create(context: InspectorContext, _: Hire) -> Result<Self, HandlerError> {
        Ok(Inspector(context))
    }

    fn context(&self) -> &InspectorContext {
        &self.0
    }

    async fn look(&mut self, _: &mut InspectorTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        Ok(Status::default())
    }
}

fn main() {}
