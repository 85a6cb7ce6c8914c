//! What was written to what it means: names, types, ids, layouts.
//!
//! It must not know YAML or files. Units come in import order; each is resolved once, in one pass per kind of
//! declaration, and every mistake of every unit is reported.

mod data;
mod endless;
mod fanouts;
mod fields;
mod layout;
mod lookup;
mod names;
mod objects;
mod services;

use std::collections::HashMap;

use lookup::Lookup;
use names::Names;

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::ir::{self, Doc};
use crate::name;
use crate::syntax::{File, Name};

/// A file with its imports.
pub(crate) struct Unit<'a> {
    pub(crate) file: &'a File,
    pub(crate) imports: Vec<Import<'a>>,
}

/// An import: what was written, and the unit it leads to, which comes before this one. A file that could not
/// be loaded leads nowhere, and has been reported.
pub(crate) struct Import<'a> {
    pub(crate) written: &'a Name,
    pub(crate) unit: Option<usize>,
}

/// The meaning of `units`. It is only whole where `sink` got no error from it, nor from the steps before.
pub(crate) fn resolve(units: &[Unit<'_>], sink: &mut Sink) -> ir::Schema {
    namespaces_differ(units, sink);
    let names: Vec<Names<'_>> = units.iter().map(|unit| Names::of(unit.file, sink)).collect();
    let mut namespaces = Vec::with_capacity(units.len());
    let mut struct_levels = HashMap::new();
    for (at, unit) in units.iter().enumerate() {
        let mut lookup = Lookup {
            units,
            names: &names,
            at,
            struct_levels: &mut struct_levels,
            sink,
        };
        let namespace = namespace(unit, &mut lookup, &namespaces);
        namespaces.push(namespace);
    }
    let schema = ir::Schema { namespaces };
    endless::check(&schema, units, sink);
    schema
}

fn namespace(unit: &Unit<'_>, lookup: &mut Lookup<'_, '_>, before: &[ir::Namespace]) -> ir::Namespace {
    let file = unit.file;
    let version = file.version.as_ref().map_or(1, |version| version.value);
    let metadata = file
        .metadata
        .iter()
        .filter_map(|key| data::metadata_key(key, lookup))
        .collect();
    let enums: Vec<ir::Enum> = file.enums.iter().map(|it| data::enumeration(it, lookup)).collect();
    let structs = layout::structs(&file.structs, lookup, before, &enums);
    let unions = file.unions.iter().map(|it| data::union(it, lookup)).collect();
    let sizes = layout::Sizes {
        before,
        enums: &enums,
        structs: &structs,
    };
    let messages = file
        .messages
        .iter()
        .map(|it| fields::message(it, version, lookup, &sizes))
        .collect();
    let prefix = file.namespace.as_ref().map_or("", |name| name.value.as_str());
    let services = file
        .services
        .iter()
        .map(|it| services::service(it, prefix, lookup))
        .collect();
    let fanouts = file
        .fanouts
        .iter()
        .map(|it| fanouts::fanout(it, prefix, lookup))
        .collect();
    let (spots, actors) = objects::objects(file, prefix, lookup);
    let mut imports: Vec<usize> = unit.imports.iter().filter_map(|import| import.unit).collect();
    imports.sort_unstable();
    imports.dedup();
    ir::Namespace {
        name: prefix.to_owned(),
        version,
        doc: Doc(file.doc.clone()),
        imports,
        metadata,
        enums,
        structs,
        unions,
        messages,
        services,
        fanouts,
        spots,
        actors,
    }
}

/// Each namespace becomes a module; `a.b` and `a_b` would be the same one.
fn namespaces_differ(units: &[Unit<'_>], sink: &mut Sink) {
    let mut seen = HashMap::new();
    for name in units.iter().filter_map(|unit| unit.file.namespace.as_ref()) {
        let Some(other) = seen.insert(name::module(&name.value), name) else {
            continue;
        };
        sink.report(clash(name, other));
    }
}

/// Two files whose namespaces are one module.
pub(crate) fn clash(name: &Name, other: &Name) -> Diagnostic {
    let (message, help) = if name.value == other.value {
        let message = format!("the namespace `{}` is that of another file, too", name.value);
        (message, "rename one of them, or make one file of both")
    } else {
        let names = format!("`{}` and `{}`", other.value, name.value);
        let message = format!("the namespaces {names} are one module in generated code");
        (message, "rename one of them; `.` and `_` count as the same")
    };
    Diagnostic::new(Code::NamespaceClash, name.span, message)
        .at(other.span, "the other one")
        .help(help)
}
