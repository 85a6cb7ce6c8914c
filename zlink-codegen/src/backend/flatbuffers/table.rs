//! Tables: messages, and the entries of maps.

use super::{File, clean};
use crate::ir::{Message, Scalar, Slot, Type};

impl File<'_> {
    pub(super) fn message(&mut self, it: &Message, name: &str) {
        self.line("");
        self.doc("", &it.doc);
        self.line(&format!("table {name} {{"));
        let slot_names: Vec<&str> = it
            .slots
            .iter()
            .map(|slot| match slot {
                Slot::Field(field) => field.name.as_str(),
                Slot::Reserved { name } => name.as_str(),
            })
            .collect();
        for ((id, slot), name) in it.slots.iter().enumerate().zip(self.names[self.at].fields(&slot_names)) {
            match slot {
                Slot::Reserved { .. } => self.line(&format!("  {name}: bool (id: {id}, deprecated);")),
                Slot::Field(field) => {
                    self.doc("  ", &field.doc);
                    if let Some(rule) = field
                        .max
                        .map(|max| format!("  /// At most {max} {}.", counted(&field.ty)))
                    {
                        self.line(&clean(&rule));
                    }
                    let ty = self.inner(&field.ty);
                    let null = if is_null(&field.ty) { " = null" } else { "" };
                    let required = if field.required { ", required" } else { "" };
                    self.line(&format!("  {name}: {ty}{null} (id: {id}{required});"));
                }
            }
        }
        self.line("}");
    }

    pub(super) fn entry(&mut self, value: &Type, name: &str) {
        let required = match value {
            Type::Scalar(Scalar::String | Scalar::Bytes | Scalar::SpotId | Scalar::ActorId) => ", required",
            Type::Scalar(Scalar::SpotRef | Scalar::ActorRef) | Type::Union(_) | Type::Message(_) => ", required",
            Type::Scalar(_) | Type::Enum(_) | Type::Struct(_) => "",
            Type::List(_) | Type::Map(_) | Type::Optional(_) => "",
        };
        let ty = self.inner(value);
        self.line("\n/// An entry of a map. A key occurs once; entries are sorted by key.");
        self.line(&format!(
            "table {name} {{\n  key: string (id: 0, required, key);\n  value: {ty} (id: 1{required});\n}}"
        ));
    }
}

/// Whether absence must be asked for: a number is 0 where it is absent, unless its default is null; a UUID is a struct,
/// and those are absent anyway.
fn is_null(ty: &Type) -> bool {
    matches!(ty, Type::Optional(inner) if **inner != Type::Scalar(Scalar::Uuid))
}

fn counted(ty: &Type) -> &'static str {
    match ty {
        Type::Scalar(_) => "bytes",
        _ => "items",
    }
}
