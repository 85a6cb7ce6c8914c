//! Messages that require themselves, so that no value of them can be built.
//!
//! It must not know anything but required fields and unions.

use std::collections::HashMap;

use super::Unit;
use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::ir::{DeclRef, Schema, Type};

/// A message or a union.
type Thing = (bool, DeclRef);

/// Reports each message that has no value. Works forward from those that have one, so its time is that of
/// reading the schema, whatever the shape.
pub(super) fn check(schema: &Schema, units: &[Unit<'_>], sink: &mut Sink) {
    let mut needs: HashMap<DeclRef, usize> = HashMap::new();
    let mut users: HashMap<Thing, Vec<Thing>> = HashMap::new();
    let mut ready: Vec<Thing> = Vec::new();
    for (namespace, it) in schema.namespaces.iter().enumerate() {
        for (index, message) in it.messages.iter().enumerate() {
            let at = DeclRef { namespace, index };
            let mut count = 0;
            for field in message.fields() {
                let needed = match &field.ty {
                    _ if !field.required => continue,
                    Type::Message(needed) => (false, *needed),
                    Type::Union(needed) => (true, *needed),
                    _ => continue,
                };
                users.entry(needed).or_default().push((false, at));
                count += 1;
            }
            needs.insert(at, count);
            if count == 0 {
                ready.push((false, at));
            }
        }
        let written = units.get(namespace).map_or(&[][..], |unit| &unit.file.unions);
        for (index, union) in it.unions.iter().enumerate() {
            let whole = written
                .get(index)
                .and_then(|it| it.members.as_ref())
                .is_some_and(|it| it.len() == union.members.len());
            if !whole || union.members.is_empty() {
                // A member that is wrong has been reported; it may be the one that makes values possible.
                ready.push((true, DeclRef { namespace, index }));
            }
            for member in &union.members {
                users
                    .entry((false, member.message))
                    .or_default()
                    .push((true, DeclRef { namespace, index }));
            }
        }
    }
    while let Some(thing) = ready.pop() {
        // Each list is taken once, so a union that several members make possible counts once.
        for user in users.remove(&thing).unwrap_or_default() {
            match user {
                (true, _) => ready.push(user),
                (false, at) => {
                    let Some(count) = needs.get_mut(&at) else { continue };
                    *count -= 1;
                    if *count == 0 {
                        ready.push(user);
                    }
                }
            }
        }
    }
    let mut endless: Vec<DeclRef> = needs
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(at, _)| at)
        .collect();
    endless.sort_unstable();
    for at in endless {
        report(schema, units, at, sink);
    }
}

fn report(schema: &Schema, units: &[Unit<'_>], at: DeclRef, sink: &mut Sink) {
    let written = units
        .get(at.namespace)
        .and_then(|unit| unit.file.messages.get(at.index));
    let Some(written) = written else { return };
    let name = &schema.message(at).name;
    let item = Diagnostic::new(
        Code::EndlessMessage,
        written.name.span,
        format!("no value of `{name}` can exist: it requires itself"),
    );
    sink.report(item.help("remove `required` from a field on the way back to it"));
}
