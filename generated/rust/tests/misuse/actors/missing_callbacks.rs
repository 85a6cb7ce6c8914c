//! An Actor has every callback that its schema names, and shows the context that it was made with.

use zlink_generated::depot::{InspectorActor, InspectorContext};
use zlink_runtime::prelude::*;

struct Inspector;

impl InspectorActor for Inspector {
    async fn create(_: InspectorContext) -> Result<Self, HandlerError> {
        Ok(Inspector)
    }
}

fn main() {}
