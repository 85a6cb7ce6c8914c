//! Back ends: each turns the IR into files of one language.
//!
//! They see neither syntax nor each other.

#[cfg(feature = "cli")]
pub mod docs;
pub mod flatbuffers;
#[cfg(feature = "cli")]
pub mod python;
pub mod rust;
#[cfg(feature = "cli")]
pub mod tera;
#[cfg(feature = "cli")]
pub mod typescript;

#[cfg(feature = "cli")]
use crate::ir::{Doc, Namespace};

/// The doc of a namespace for a language without meshes: what is in it and cannot be called from there is named, so that
/// nobody looks for it in vain.
#[cfg(feature = "cli")]
fn doc_without_objects(namespace: &Namespace) -> Doc {
    let spots = namespace.spots.iter().map(|it| it.name.as_str());
    let names: Vec<&str> = spots
        .chain(namespace.actors.iter().map(|it| it.name.as_str()))
        .collect();
    if names.is_empty() {
        return namespace.doc.clone();
    }
    let said = namespace
        .doc
        .0
        .as_deref()
        .map(str::trim_end)
        .filter(|said| !said.is_empty());
    let own = said.map_or_else(|| format!("The namespace `{}`.", namespace.name), str::to_owned);
    let note = format!(
        "Spots and Actors ({}) are called from hosts that have an object role in a mesh. Here are their messages.",
        names.join(", ")
    );
    Doc(Some(format!("{own}\n\n{note}")))
}
