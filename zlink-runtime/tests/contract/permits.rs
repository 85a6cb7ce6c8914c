//! LEAVE THIS FILE: another developer writes it on branch contract2 (chapters 03 and 10). You keep topology.rs and channel.rs.
