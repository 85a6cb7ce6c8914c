//! Structs: which types they may hold, and where each field stands.
//!
//! It must not know messages.

use super::lookup::Lookup;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, DeclRef, Doc, Scalar, Type};
use crate::syntax;

/// The largest struct in bytes: it stands inline in a table, whose size has 16 bits.
const MAX_SIZE: u32 = 32 << 10;
/// Structs in structs. Each level is a level of recursion in every reader.
const MAX_NESTING: u32 = 16;

/// Sizes of what is inline, as far as it is resolved.
pub(super) struct Sizes<'a> {
    /// Namespaces before this one.
    pub(super) before: &'a [ir::Namespace],
    /// What this one has.
    pub(super) enums: &'a [ir::Enum],
    pub(super) structs: &'a [ir::Struct],
}

impl Sizes<'_> {
    /// Size and alignment of a field of that type in a table.
    pub(super) fn inline(&self, ty: &Type) -> (u32, u32) {
        match ty {
            Type::Enum(at) => {
                let enums = self
                    .before
                    .get(at.namespace)
                    .map_or(self.enums, |namespace| &namespace.enums);
                let size = enums.get(at.index).map_or(1, |it| it.repr.size());
                (size, size)
            }
            Type::Struct(at) => {
                let structs = self
                    .before
                    .get(at.namespace)
                    .map_or(self.structs, |namespace| &namespace.structs);
                structs.get(at.index).map_or((1, 1), |it| (it.size, it.align))
            }
            Type::Optional(inner) => self.inline(inner),
            Type::Scalar(scalar) => scalar_size(*scalar).unwrap_or((4, 4)),
            Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => (4, 4),
        }
    }
}

/// Size and alignment of a scalar that is inline.
fn scalar_size(scalar: Scalar) -> Option<(u32, u32)> {
    Some(match scalar {
        Scalar::Bool => (1, 1),
        Scalar::Int(int) => (int.size(), int.size()),
        Scalar::F32 => (4, 4),
        Scalar::F64 | Scalar::Timestamp | Scalar::Duration => (8, 8),
        Scalar::Uuid => (16, 1),
        Scalar::String | Scalar::Bytes | Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef => {
            return None;
        }
    })
}

/// The structs of a file, laid out.
pub(super) fn structs(
    written: &[syntax::Struct],
    lookup: &mut Lookup<'_, '_>,
    before: &[ir::Namespace],
    enums: &[ir::Enum],
) -> Vec<ir::Struct> {
    let structs = written.iter().map(|it| unplaced(it, lookup)).collect();
    let mut layout = Layout {
        written,
        before,
        at: lookup.at,
        enums,
        structs,
        state: vec![State::New; written.len()],
    };
    for index in 0..written.len() {
        layout.place(index, 0, lookup);
    }
    layout.structs
}

/// A struct with its types, but no layout yet.
fn unplaced(it: &syntax::Struct, lookup: &mut Lookup<'_, '_>) -> ir::Struct {
    if it.fields.as_ref().is_some_and(Vec::is_empty) {
        let item = Diagnostic::new(Code::NoFields, it.name.span, "a struct needs a field");
        lookup.report(item.help("write `{ x: f32, y: f32 }`, or make it a message, which can grow"));
    }
    let mut fields = Vec::new();
    for field in it.fields.iter().flatten() {
        let Some(written) = &field.ty else { continue };
        let Some(ty) = lookup.ty(written) else { continue };
        let allowed = match &ty {
            Type::Scalar(scalar) => scalar_size(*scalar).is_some(),
            Type::Enum(_) | Type::Struct(_) => true,
            Type::List(_) | Type::Optional(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => false,
        };
        if allowed {
            fields.push(ir::StructField {
                name: field.name.value.clone(),
                doc: Doc(field.doc.clone()),
                ty,
                offset: 0,
            });
        } else {
            let item = Diagnostic::new(
                Code::TypeNotAllowed,
                written.span,
                "a struct has a fixed size: it cannot hold this type",
            );
            lookup.report(
                item.help("use scalars, enums, `uuid`, `timestamp`, `duration` and structs, or make it a message"),
            );
        }
    }
    ir::Struct {
        name: it.name.value.clone(),
        doc: Doc(it.doc.clone()),
        fields,
        size: 1,
        align: 1,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    /// Placed, with the levels of structs below it.
    Done(u32),
}

struct Layout<'a> {
    written: &'a [syntax::Struct],
    before: &'a [ir::Namespace],
    at: usize,
    enums: &'a [ir::Enum],
    structs: Vec<ir::Struct>,
    state: Vec<State>,
}

impl Layout<'_> {
    /// Lays out a struct and those in it; returns the levels below it.
    fn place(&mut self, index: usize, depth: u32, lookup: &mut Lookup<'_, '_>) -> u32 {
        let (Some(written), Some(state)) = (self.written.get(index), self.state.get_mut(index)) else {
            return 0;
        };
        match *state {
            State::Done(levels) => return levels,
            State::Open => {
                let item = Diagnostic::new(
                    Code::StructCycle,
                    written.name.span,
                    format!("the struct `{}` contains itself", written.name.value),
                );
                lookup.report(item.help("make one of them a message: a message is held by reference"));
                return 0;
            }
            State::New => *state = State::Open,
        }
        let mut levels = 0;
        let mut end: u32 = 0;
        let mut align: u32 = 1;
        let mut fields = self
            .structs
            .get_mut(index)
            .map(|it| std::mem::take(&mut it.fields))
            .unwrap_or_default();
        for field in &mut fields {
            if let Type::Struct(at) = &field.ty {
                levels = levels.max(1 + self.levels(*at, depth, lookup));
            }
            let sizes = Sizes {
                before: self.before,
                enums: self.enums,
                structs: &self.structs,
            };
            let (size, field_align) = sizes.inline(&field.ty);
            field.offset = end.next_multiple_of(field_align);
            end = field.offset.saturating_add(size).min(MAX_SIZE * 2);
            align = align.max(field_align);
        }
        let size = end.next_multiple_of(align);
        if size > MAX_SIZE || levels > MAX_NESTING {
            let message = if size > MAX_SIZE {
                format!("a struct has at most {MAX_SIZE} bytes")
            } else {
                format!("structs are nested at most {MAX_NESTING} deep")
            };
            lookup.report(Diagnostic::new(Code::StructTooLarge, written.name.span, message).help("make it a message"));
            levels = 0;
        }
        if let Some(it) = self.structs.get_mut(index) {
            *it = ir::Struct {
                fields,
                size: size.min(MAX_SIZE),
                align,
                ..it.clone()
            };
        }
        if let Some(state) = self.state.get_mut(index) {
            *state = State::Done(levels);
        }
        lookup.struct_levels.insert(
            DeclRef {
                namespace: self.at,
                index,
            },
            levels,
        );
        levels
    }

    fn levels(&mut self, at: DeclRef, depth: u32, lookup: &mut Lookup<'_, '_>) -> u32 {
        if at.namespace != self.at {
            return lookup.struct_levels.get(&at).copied().unwrap_or(0);
        }
        // Recursion stops here; the struct above reports it.
        if depth > MAX_NESTING {
            MAX_NESTING
        } else {
            self.place(at.index, depth + 1, lookup)
        }
    }
}
