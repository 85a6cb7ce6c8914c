//! What the two programs share: the schema's types, the client and the handler trait.

zlink_runtime::include_schema!("library");
