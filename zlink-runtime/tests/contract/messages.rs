//! Chapter 03: how sends and requests end, what a handler is told, how much fits, and what malformed input does.

mod completion;
mod context;
mod limits;
mod malformed;
mod payload;
