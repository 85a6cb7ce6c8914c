//! The `zlink-codegen` command.

fn main() {}
