//! From the names in types to what they lead to.
//!
//! It must not know where a type may stand beyond the nesting that no place allows.

use std::collections::HashMap;

use super::names::{Decl, DeclKind, Names};
use super::{Import, Unit};
use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::ir::{DeclRef, Int, Scalar, Type};
use crate::source::Span;
use crate::syntax::{self, Path, TypeKind, suggest};

const SCALARS: &[(&str, Scalar)] = &[
    ("bool", Scalar::Bool),
    ("i8", Scalar::Int(Int::I8)),
    ("i16", Scalar::Int(Int::I16)),
    ("i32", Scalar::Int(Int::I32)),
    ("i64", Scalar::Int(Int::I64)),
    ("u8", Scalar::Int(Int::U8)),
    ("u16", Scalar::Int(Int::U16)),
    ("u32", Scalar::Int(Int::U32)),
    ("u64", Scalar::Int(Int::U64)),
    ("f32", Scalar::F32),
    ("f64", Scalar::F64),
    ("string", Scalar::String),
    ("bytes", Scalar::Bytes),
    ("uuid", Scalar::Uuid),
    ("timestamp", Scalar::Timestamp),
    ("duration", Scalar::Duration),
    ("spot_id", Scalar::SpotId),
    ("actor_id", Scalar::ActorId),
    ("spot_ref", Scalar::SpotRef),
    ("actor_ref", Scalar::ActorRef),
];
const GENERIC: &[&str] = &["list", "optional", "map"];

/// The scalar of that name.
pub(super) fn scalar(name: &str) -> Option<Scalar> {
    SCALARS
        .iter()
        .find(|(text, _)| *text == name)
        .map(|(_, scalar)| *scalar)
}

/// Whether the language itself has a type of that name.
pub(super) fn is_built_in(name: &str) -> bool {
    scalar(name).is_some() || GENERIC.contains(&name)
}

/// Names as one unit sees them.
pub(super) struct Lookup<'a, 's> {
    pub(super) units: &'a [Unit<'a>],
    pub(super) names: &'a [Names<'a>],
    /// The unit.
    pub(super) at: usize,
    /// For each struct placed so far, the levels of structs in it.
    pub(super) struct_levels: &'s mut HashMap<DeclRef, u32>,
    pub(super) sink: &'s mut Sink,
}

impl Lookup<'_, '_> {
    pub(super) fn report(&mut self, item: Diagnostic) {
        self.sink.report(item);
    }

    fn imports(&self) -> &[Import<'_>] {
        self.units.get(self.at).map_or(&[], |unit| &unit.imports)
    }

    /// The declaration a path names, with the unit it is in.
    pub(super) fn find(&mut self, path: &Path) -> Option<(DeclRef, Decl)> {
        let unit = match &path.namespace {
            None => self.at,
            Some(namespace) => self.imported(path, namespace)?,
        };
        let decl = self.names.get(unit).and_then(|names| names.get(&path.name.value));
        let Some(decl) = decl else {
            self.unknown(path, unit);
            return None;
        };
        Some((
            DeclRef {
                namespace: unit,
                index: decl.index,
            },
            decl,
        ))
    }

    fn imported(&mut self, path: &Path, namespace: &syntax::Name) -> Option<usize> {
        let units = self.units;
        let name_of = |unit: usize| units.get(unit)?.file.namespace.as_ref().map(|name| name.value.as_str());
        let found = self
            .imports()
            .iter()
            .filter_map(|import| import.unit)
            .find(|unit| name_of(*unit) == Some(&namespace.value));
        if found.is_some() {
            return found;
        }
        if name_of(self.at) == Some(&namespace.value) {
            return Some(self.at);
        }
        // An import that could not be loaded may be the one.
        let whole = self
            .imports()
            .iter()
            .all(|import| import.unit.is_some_and(|unit| name_of(unit).is_some()));
        if whole {
            let message = format!("the namespace `{}` is not imported", namespace.value);
            let imported = self
                .imports()
                .iter()
                .filter_map(|import| import.unit)
                .filter_map(name_of);
            let help = match suggest(self.sink, namespace.span, &namespace.value, imported) {
                Some(near) => format!("did you mean `{near}.{}`?", path.name.value),
                None => "list its file under `imports`; what an import imports itself is not visible here".to_owned(),
            };
            self.report(Diagnostic::new(Code::NotImported, namespace.span, message).help(help));
        }
        None
    }

    fn unknown(&mut self, path: &Path, unit: usize) {
        let name = &path.name.value;
        let units = self.units;
        let elsewhere = self.imports().iter().filter_map(|import| import.unit).find(|unit| {
            path.namespace.is_none() && self.names.get(*unit).is_some_and(|names| names.get(name).is_some())
        });
        let elsewhere = elsewhere.and_then(|unit| units.get(unit)?.file.namespace.as_ref());
        let near = {
            let own = self.names.get(unit).map_or(&[][..], |names| &names.order);
            let built_in = SCALARS
                .iter()
                .map(|(text, _)| *text)
                .filter(|_| path.namespace.is_none());
            suggest(self.sink, path.span, name, own.iter().copied().chain(built_in))
        };
        let item = Diagnostic::new(Code::UnknownType, path.name.span, format!("`{name}` is not declared"));
        let item = match (elsewhere, near) {
            (Some(namespace), _) => item.help(format!("write `{}.{name}`: it is declared there", namespace.value)),
            (None, Some(near)) => item.help(format!("did you mean `{near}`?")),
            (None, None) => {
                item.help("declare it under `messages`, `structs`, `unions` or `enums`, or import its file")
            }
        };
        self.report(item);
    }

    /// The message a path names.
    pub(super) fn message(&mut self, path: &Path, what: &str) -> Option<DeclRef> {
        let built_in = path.namespace.is_none() && is_built_in(&path.name.value);
        let kind = if built_in {
            "a built-in type"
        } else {
            let (at, decl) = self.find(path)?;
            if decl.kind == DeclKind::Message {
                return Some(at);
            }
            decl.kind.describe()
        };
        let message = format!("{what} is a message, and `{}` is {kind}", path.name.value);
        self.report(Diagnostic::new(Code::WrongKind, path.span, message).help("wrap it in a message"));
        None
    }

    /// A type, in whatever place.
    pub(super) fn ty(&mut self, ty: &syntax::Type) -> Option<Type> {
        match &ty.kind {
            TypeKind::Named(path) => self.named(path),
            TypeKind::Of(head, inner) => {
                let inner_ty = self.ty(inner);
                if !GENERIC.contains(&head.value.as_str()) {
                    let item = Diagnostic::new(Code::UnknownType, head.span, format!("`{}<…>` is no type", head.value));
                    let item = match suggest(self.sink, head.span, &head.value, GENERIC.iter().copied()) {
                        Some(near) => item.help(format!("did you mean `{near}<…>`?")),
                        None => item.help("there are `list<…>`, `optional<…>` and `map<…>`"),
                    };
                    self.report(item);
                    return None;
                }
                self.generic(&head.value, inner.span, inner_ty?)
            }
        }
    }

    fn named(&mut self, path: &Path) -> Option<Type> {
        if path.namespace.is_none() {
            if let Some(scalar) = scalar(&path.name.value) {
                return Some(Type::Scalar(scalar));
            }
            if GENERIC.contains(&path.name.value.as_str()) {
                let message = format!("`{0}` needs a type: `{0}<…>`", path.name.value);
                self.report(Diagnostic::new(Code::BadType, path.span, message));
                return None;
            }
        }
        let (at, decl) = self.find(path)?;
        Some(match decl.kind {
            DeclKind::Enum => Type::Enum(at),
            DeclKind::Struct => Type::Struct(at),
            DeclKind::Union => Type::Union(at),
            DeclKind::Message => Type::Message(at),
        })
    }

    fn generic(&mut self, head: &str, span: Span, inner: Type) -> Option<Type> {
        let nested = matches!(inner, Type::List(_) | Type::Optional(_) | Type::Map(_));
        let optional = matches!(&inner, Type::Enum(_))
            || matches!(&inner, Type::Scalar(scalar) if !matches!(scalar, Scalar::String | Scalar::Bytes));
        let (allowed, help) = match head {
            "optional" => (
                optional,
                "strings, bytes, lists and maps may be empty, messages and unions may be absent as they are",
            ),
            _ => (!nested, "declare a message with that field, and name it here"),
        };
        if !allowed {
            let message = if head == "optional" {
                "`optional<…>` takes a scalar or an enum"
            } else {
                "`list<…>` and `map<…>` take no type that is itself a list, map or optional"
            };
            self.report(Diagnostic::new(Code::TypeNotAllowed, span, message).help(help));
            return None;
        }
        let inner = Box::new(inner);
        Some(match head {
            "list" => Type::List(inner),
            "map" => Type::Map(inner),
            _ => Type::Optional(inner),
        })
    }
}
