//! What the two programs share: the schema's types, the publisher and the handler trait.

zlink_runtime::include_schema!("office");
