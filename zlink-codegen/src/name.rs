//! Names: their case forms, reserved words, and identifiers that never collide.
//!
//! It must not know what a name stands for. Schemas keep names as written; a back end asks here for the form
//! its language wants.

mod scope;
mod words;

pub use scope::{Scope, assign};
pub use words::{rust_ident, words};

/// `snake_case`
#[must_use]
pub fn snake(name: &str) -> String {
    words(name).join("_")
}

/// `SCREAMING_SNAKE_CASE`
#[must_use]
pub fn upper(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// `UpperCamelCase`
#[must_use]
pub fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    for word in words(name) {
        // Two numbers side by side would read as one: `V1_2` and `V12` are different names.
        if camel.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit()) {
            camel.push('_');
        }
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(letters);
    }
    camel
}

/// `lowerCamelCase`
#[must_use]
pub fn lower_camel(name: &str) -> String {
    let camel = camel(name);
    let mut letters = camel.chars();
    letters
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(letters)
        .collect()
}

/// The module, file stem or package of a namespace: its words joined by `_`.
///
/// `zlink.wire` becomes `zlink_wire`. The loader refuses to bring `zlink.wire` and `zlink_wire` together, so
/// that this is one-to-one within a schema.
#[must_use]
pub fn module(namespace: &str) -> String {
    namespace.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_forms() {
        for (name, s, c, l, u) in [
            (
                "ChargeRequest",
                "charge_request",
                "ChargeRequest",
                "chargeRequest",
                "CHARGE_REQUEST",
            ),
            (
                "display_name",
                "display_name",
                "DisplayName",
                "displayName",
                "DISPLAY_NAME",
            ),
            ("HTTPServer", "http_server", "HttpServer", "httpServer", "HTTP_SERVER"),
            (
                "system-events",
                "system_events",
                "SystemEvents",
                "systemEvents",
                "SYSTEM_EVENTS",
            ),
            ("Vec2", "vec2", "Vec2", "vec2", "VEC2"),
            ("V1_2", "v1_2", "V1_2", "v1_2", "V1_2"),
            ("x", "x", "X", "x", "X"),
            ("__odd__name_", "odd_name", "OddName", "oddName", "ODD_NAME"),
            ("größe1", "gr_e1", "GrE1", "grE1", "GR_E1"),
            ("userID", "user_id", "UserId", "userId", "USER_ID"),
        ] {
            assert_eq!(
                (snake(name), camel(name), lower_camel(name), upper(name)),
                (s.into(), c.into(), l.into(), u.into())
            );
        }
        assert_eq!(module("zlink.wire"), "zlink_wire");
    }

    #[test]
    fn forms_are_stable_under_themselves() {
        for name in ["ChargeRequest", "userID", "a1b2", "V1_2", "X2Y", "ALL_CAPS"] {
            assert_eq!(snake(&snake(name)), snake(name));
            assert_eq!(camel(&camel(name)), camel(name), "{name}");
        }
    }
}
