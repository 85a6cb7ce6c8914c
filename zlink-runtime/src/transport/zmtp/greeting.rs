//! The 64 bytes that open a connection. It must not know what follows them.

use super::ZmtpError;

/// A greeting's length, in bytes.
pub(super) const GREETING: usize = 64;

const VERSION_AT: usize = 10;
const MECHANISM_AT: usize = 12;
const AS_SERVER_AT: usize = 32;

/// Ours: ZMTP 3.1 with `mechanism`, at most 20 ASCII bytes.
pub(super) fn encode(mechanism: &str, as_server: bool) -> [u8; GREETING] {
    let mut greeting = [0; GREETING];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[VERSION_AT] = 3;
    greeting[VERSION_AT + 1] = 1;
    let name = &mut greeting[MECHANISM_AT..AS_SERVER_AT];
    for (to, from) in name.iter_mut().zip(mechanism.bytes()) {
        *to = from;
    }
    greeting[AS_SERVER_AT] = as_server.into();
    greeting
}

/// Refuses what can be known wrong of a greeting that has only begun to arrive.
pub(super) fn check_start(start: &[u8]) -> Result<(), ZmtpError> {
    if start.first().is_some_and(|byte| *byte != 0xff) || start.get(9).is_some_and(|byte| byte & 1 == 0) {
        return Err(ZmtpError::Signature);
    }
    match start.get(VERSION_AT) {
        Some(major @ 0..3) => Err(ZmtpError::Version(*major)),
        _ => Ok(()),
    }
}

/// Checks the peer's; returns its minor version, which counts only within major 3.
pub(super) fn decode(greeting: &[u8; GREETING], mechanism: &str) -> Result<u8, ZmtpError> {
    check_start(greeting)?;
    let name = &greeting[MECHANISM_AT..AS_SERVER_AT];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    if &name[..end] != mechanism.as_bytes() {
        return Err(ZmtpError::Mechanism(name[..end].escape_ascii().to_string()));
    }
    let (major, minor) = (greeting[VERSION_AT], greeting[VERSION_AT + 1]);
    Ok(if major == 3 { minor } else { 1 })
}
