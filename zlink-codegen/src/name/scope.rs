//! Identifiers of one scope of a target language: each taken once.
//!
//! It must not know which language.

use std::collections::BTreeMap;

/// The identifiers taken in one scope.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Each with the number to try next for a name that wants it too.
    taken: BTreeMap<String, u32>,
}

impl Scope {
    /// A scope in which `reserved` is taken from the start: words of the language without an escape, and names
    /// the back end puts there itself.
    pub fn new<'a>(reserved: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            taken: reserved.into_iter().map(|name| (name.to_owned(), 2)).collect(),
        }
    }

    /// Takes `wanted`, or where it is taken the first free of `wanted_2`, `wanted_3`, ….
    pub fn claim(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.taken.contains_key(&name) {
            let number = self.taken.entry(wanted.to_owned()).or_insert(2);
            name = format!("{wanted}_{number}");
            *number += 1;
        }
        self.taken.insert(name.clone(), 2);
        name
    }
}

/// One identifier per name, all different, none of `reserved`.
///
/// A name that already is in the form `form` gives always keeps it; the others follow in the order of their
/// spelling. So the result depends on the set of names only, not on their order in the schema, and adding a
/// name never takes the identifier of one that is written as it is used.
pub fn assign<'a>(
    names: &[&str],
    form: impl Fn(&str) -> String,
    reserved: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let mut scope = Scope::new(reserved);
    let mut idents: Vec<String> = names.iter().map(|name| form(name)).collect();
    let forms = names.iter().zip(&idents).enumerate();
    let mut order: Vec<(bool, &str, usize)> = forms.map(|(at, (name, form))| (form != name, *name, at)).collect();
    order.sort_unstable();
    for (_, _, at) in order {
        if let Some(ident) = idents.get_mut(at) {
            *ident = scope.claim(ident);
        }
    }
    idents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{camel, snake};

    #[test]
    fn no_two_names_share_an_identifier() {
        let names = ["FooBar", "foo_bar", "fooBar", "foo_bar_2", "new"];
        assert_eq!(
            assign(&names, snake, ["new"]),
            ["foo_bar_3", "foo_bar", "foo_bar_4", "foo_bar_2", "new_2"]
        );
        assert_eq!(assign(&["self"], camel, ["Self"]), ["Self_2"]);
    }

    #[test]
    fn the_order_of_names_does_not_matter() {
        let one = assign(&["a_b", "aB", "AB"], snake, []);
        let two = assign(&["AB", "a_b", "aB"], snake, []);
        assert_eq!((&one[0], &one[1], &one[2]), (&two[1], &two[2], &two[0]));
    }
}
