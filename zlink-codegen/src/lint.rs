//! What is legal and probably not meant. One rule per function.
//!
//! It must not know files; it sees one file as it was written.

mod actors;
mod fanout;

use std::collections::{BTreeMap, HashSet};

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::name;
use crate::resolve::Import;
use crate::syntax::{File, Name, Path, SpotKind, Type, TypeKind};

/// Reports what is odd in a file. `imports` are its imports with the namespaces they bring.
pub(crate) fn lint(file: &File, imports: &[(&Import<'_>, Option<&str>)], sink: &mut Sink) {
    unused_imports(file, imports, sink);
    type_case(file, sink);
    member_case(file, sink);
    same_in_other_case(file, sink);
    for service in file.services.iter().filter(|service| service.methods.is_empty()) {
        let item = Diagnostic::new(
            Code::EmptyService,
            service.name.span,
            format!("the service `{}` has no methods", service.name.value),
        );
        sink.report(item.help("add one, or remove the service"));
    }
    fanout::empty(file, sink);
    fanout::shared_channel(file, sink);
    fanout::wildcards(file, sink);
    fanout::within_words(file, sink);
    idle(file, sink);
    never_activated(file, sink);
    actors::no_entry(file, sink);
    actors::never_joined(file, sink);
    actors::never_yields(file, sink);
}

fn idle(file: &File, sink: &mut Sink) {
    let spots = file.spots.iter().filter(|it| {
        it.methods.is_empty() && it.subscriptions.is_empty() && it.timers.is_empty() && it.members.is_empty()
    });
    let actors = file
        .actors
        .iter()
        .filter(|it| it.methods.is_empty() && it.timers.is_empty());
    let spots = spots.map(|it| ("Spot", &it.name));
    for (what, name) in spots.chain(actors.map(|it| ("Actor", &it.name))) {
        let message = format!("the {what} `{}` has nothing to do", name.value);
        sink.report(Diagnostic::new(Code::IdleObject, name.span, message).help("add `methods`, or remove it"));
    }
}

/// Nothing else makes an Instance Spot.
fn never_activated(file: &File, sink: &mut Sink) {
    let instances = file.spots.iter().filter(|it| it.kind == Some(SpotKind::Instance));
    for it in instances.filter(|it| !it.methods.is_empty() && !it.methods.iter().any(|it| it.activates)) {
        let message = format!("no message makes a Spot `{}`, so none will ever exist", it.name.value);
        let item = Diagnostic::new(Code::NeverActivated, it.name.span, message);
        sink.report(item.help("write `activates: true` at the methods that may come first"));
    }
}

fn unused_imports(file: &File, imports: &[(&Import<'_>, Option<&str>)], sink: &mut Sink) {
    let used = namespaces(file);
    for (import, namespace) in imports {
        if namespace.is_some_and(|namespace| !used.contains(namespace)) {
            let item = Diagnostic::new(
                Code::UnusedImport,
                import.written.span,
                format!("`{}` is not used", import.written.value),
            );
            sink.report(item.help("remove it"));
        }
    }
}

/// All namespaces that the types of a file name.
fn namespaces(file: &File) -> HashSet<&str> {
    fn of(ty: &Type) -> Option<&Path> {
        match &ty.kind {
            TypeKind::Named(path) => Some(path),
            TypeKind::Of(_, inner) => of(inner),
        }
    }
    let fields = file
        .messages
        .iter()
        .flat_map(|it| &it.fields)
        .filter_map(|field| field.ty.as_ref());
    let parts = file
        .structs
        .iter()
        .flat_map(|it| it.fields.iter().flatten())
        .filter_map(|field| field.ty.as_ref());
    let types = fields.chain(parts).filter_map(of);
    let members = file
        .unions
        .iter()
        .flat_map(|it| it.members.iter().flatten())
        .map(|member| &member.message);
    let services = file.services.iter().flat_map(|it| &it.methods);
    let spots = file.spots.iter().flat_map(|it| &it.methods);
    let objects = spots.chain(file.actors.iter().flat_map(|it| &it.methods));
    let methods = services.chain(objects.map(|it| &it.method));
    let creates = file.spots.iter().filter_map(|it| it.create.as_ref());
    let joins = file.actors.iter().flat_map(|it| it.joins.iter().map(|(_, join)| join));
    let admissions = creates
        .chain(file.actors.iter().filter_map(|it| it.create.as_ref()))
        .chain(joins);
    let admissions: Vec<_> = admissions.collect();
    let relocations = file.spots.iter().map(|it| &it.relocation);
    let relocations = relocations.chain(file.actors.iter().map(|it| &it.relocation)).flatten();
    let exchanged = methods
        .flat_map(|it| [&it.send, &it.request, &it.reply])
        .flatten()
        .chain(admissions.iter().filter_map(|it| it.reply.as_ref()))
        .chain(relocations.filter_map(|it| it.state.as_ref()))
        .filter_map(|it| it.value.as_ref())
        .chain(admissions.iter().filter_map(|it| it.request.as_ref()))
        .chain(
            file.spots
                .iter()
                .flat_map(|it| &it.subscriptions)
                .filter_map(|it| it.message.as_ref()),
        )
        .chain(
            file.fanouts
                .iter()
                .flat_map(|it| &it.events)
                .filter_map(|it| it.message.as_ref()),
        );
    types
        .chain(members)
        .chain(exchanged)
        .filter_map(|path| path.namespace.as_ref())
        .map(|name| name.value.as_str())
        .collect()
}

/// The names of types.
fn types(file: &File) -> impl Iterator<Item = &Name> {
    let enums = file.enums.iter().map(|it| &it.name);
    let structs = file.structs.iter().map(|it| &it.name);
    let unions = file.unions.iter().map(|it| &it.name);
    enums
        .chain(structs)
        .chain(unions)
        .chain(file.messages.iter().map(|it| &it.name))
}

/// The groups of names that become names of one scope.
fn members(file: &File) -> impl Iterator<Item = Vec<&Name>> {
    let enums = file
        .enums
        .iter()
        .map(|it| it.values.iter().flatten().map(|value| &value.name).collect());
    let structs = file
        .structs
        .iter()
        .map(|it| it.fields.iter().flatten().map(|field| &field.name).collect());
    let messages = file
        .messages
        .iter()
        .map(|it| it.fields.iter().map(|field| &field.name).collect());
    let services = file
        .services
        .iter()
        .map(|it| it.methods.iter().map(|method| &method.name).collect());
    let fanouts = file
        .fanouts
        .iter()
        .map(|it| it.events.iter().map(|event| &event.name).collect());
    let spots = file.spots.iter().map(|it| {
        let methods = it.methods.iter().map(|it| &it.method.name);
        methods.chain(it.subscriptions.iter().map(|it| &it.name)).collect()
    });
    let actors = file
        .actors
        .iter()
        .map(|it| it.methods.iter().map(|it| &it.method.name).collect());
    let timers = file
        .spots
        .iter()
        .map(|it| &it.timers)
        .chain(file.actors.iter().map(|it| &it.timers));
    let timers = timers.map(|it| it.iter().map(|it| &it.name).collect());
    // A context and a turn are called by the one name, whichever they are of.
    let objects = file.spots.iter().map(|it| &it.name);
    let objects = [objects.chain(file.actors.iter().map(|it| &it.name)).collect()];
    let data = enums.chain(structs).chain(messages).chain(services);
    data.chain(fanouts)
        .chain(spots)
        .chain(actors)
        .chain(timers)
        .chain(objects)
}

fn type_case(file: &File, sink: &mut Sink) {
    for it in types(file) {
        if !it.value.starts_with(|c: char| c.is_ascii_uppercase()) || it.value.contains('_') {
            let item = Diagnostic::new(
                Code::TypeCase,
                it.span,
                format!("the type `{}` is not in UpperCamelCase", it.value),
            );
            sink.report(item.help(format!("write `{}`", name::camel(&it.value))));
        }
    }
}

fn member_case(file: &File, sink: &mut Sink) {
    for it in members(file).flatten() {
        if it.value.contains(|c: char| c.is_ascii_uppercase()) {
            let item = Diagnostic::new(
                Code::MemberCase,
                it.span,
                format!("`{}` is not in snake_case", it.value),
            );
            sink.report(item.help(format!("write `{}`", name::snake(&it.value))));
        }
    }
}

/// Generated code gives one of them a number at its end, which nobody enjoys.
fn same_in_other_case(file: &File, sink: &mut Sink) {
    for group in std::iter::once(types(file).collect()).chain(members(file)) {
        let mut seen: BTreeMap<String, &Name> = BTreeMap::new();
        for it in group {
            let Some(first) = seen.insert(name::snake(&it.value), it) else {
                continue;
            };
            let message = if first.value == it.value {
                format!("a Spot and an Actor are called `{}`", it.value)
            } else {
                format!("`{}` and `{}` are one name in some languages", first.value, it.value)
            };
            let item = Diagnostic::new(Code::SameInOtherCase, it.span, message).at(first.span, "the other one");
            sink.report(item.help("rename one of them, or generated code has to number them"));
        }
    }
}
