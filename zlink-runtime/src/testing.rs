//! What tests of applications and of providers are built with. It must not be needed by anything that runs.

pub mod store;
