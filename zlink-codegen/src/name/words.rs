//! How a name falls into words, and which words Rust keeps for itself.
//!
//! It must not know scopes.

/// The words of a name, in lower case: split at everything that is no letter or digit, before a capital that
/// follows a small letter or digit, and before the last capital of a run (`HTTPServer` is `http`, `server`).
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words = Vec::new();
    let (mut start, mut at) = (0, 0);
    // Build scripts do this unoptimised and several times a name: a loop over an index is a fraction of what iterators cost.
    while at <= bytes.len() {
        let letter = bytes.get(at).copied().unwrap_or(b' ');
        let inside = letter.is_ascii_alphanumeric();
        if at > start {
            let begins = letter.is_ascii_uppercase()
                && (!bytes[at - 1].is_ascii_uppercase() || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if begins || !inside {
                words.push(name[start..at].to_ascii_lowercase());
                start = at;
            }
        }
        at += 1;
        if !inside {
            start = at;
        }
    }
    words
}

/// Words that cannot be an identifier, not even a raw one.
const NEVER: &[&str] = &["self", "Self", "super", "crate", "_"];

/// Strict and reserved keywords of all editions up to 2024; `r#` makes an identifier of them.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// An identifier as Rust source has it: `r#type` for a keyword, `self_` for the few words that have no raw form,
/// `_1st` before a digit.
///
/// It maps `self` and `self_` to one identifier. Where both may occur, reserve the former in the
/// [`Scope`](super::Scope), which then hands out `self_2`.
#[must_use]
pub fn rust_ident(name: &str) -> String {
    if NEVER.contains(&name) || name.is_empty() {
        format!("{name}_")
    } else if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_rust_are_escaped() {
        assert_eq!(rust_ident("type"), "r#type");
        assert_eq!(rust_ident("gen"), "r#gen");
        assert_eq!(rust_ident("Self"), "Self_");
        assert_eq!(rust_ident("self"), "self_");
        assert_eq!(rust_ident("order"), "order");
        for word in KEYWORDS {
            syn::parse_str::<syn::Ident>(&rust_ident(word)).expect("an identifier");
        }
        for word in NEVER {
            syn::parse_str::<syn::Ident>(&rust_ident(word)).expect("an identifier");
        }
    }
}
