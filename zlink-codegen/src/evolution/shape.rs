//! Whether two types are the same on the wire, whatever they are called.
//!
//! It must not know how a difference is reported. A name that stands on both sides counts as the same: what changed
//! in its declaration is told there.

use std::collections::{BTreeMap, HashSet};

use super::contract::{Contract, Enum, Message, Use};

/// Beyond so many pairs of types, two are taken for different: nobody renames that much at once.
const MAX_PAIRS: usize = 1_000;

/// The declarations of both sides.
#[derive(Clone, Copy)]
pub(super) struct Shapes<'c> {
    pub(super) old: &'c Contract,
    pub(super) new: &'c Contract,
}

/// What a name is.
enum Kind<'c> {
    Enum(&'c Enum),
    Struct(&'c [(String, String)]),
    Union(&'c BTreeMap<u8, Use<String>>),
    Message(&'c Message),
    /// Built in, or of another file.
    Other(&'c str),
}

type Pairs<'c> = Vec<(&'c str, &'c str)>;

impl<'c> Shapes<'c> {
    /// Whether bytes of either type are bytes of the other, with the same meaning.
    pub(super) fn same(self, old: &'c str, new: &'c str) -> bool {
        let mut seen = HashSet::new();
        let mut left = vec![(old, new)];
        while let Some((old, new)) = left.pop() {
            // Types lead back to themselves: a pair that is being looked at is taken to hold.
            if seen.insert((old, new)) && (seen.len() > MAX_PAIRS || !self.step(old, new, &mut left)) {
                return false;
            }
        }
        true
    }

    /// Whether the two agree, provided that the pairs added to `left` do.
    fn step(self, old: &'c str, new: &'c str, left: &mut Pairs<'c>) -> bool {
        let (old, new) = (plain(old), plain(new));
        if let (Some((head, before)), Some((other, now))) = (inner(old), inner(new)) {
            left.push((before, now));
            return head == other;
        }
        let named = old == new;
        if !named && self.new.declares(old) && self.old.declares(new) {
            // Nothing was renamed: the two were told apart before, and are now.
            return false;
        }
        match (kind(self.old, old), kind(self.new, new)) {
            (Kind::Enum(before), Kind::Enum(now)) => {
                named || before.ty == now.ty && values(&before.values, &now.values)
            }
            (Kind::Enum(it), Kind::Other(ty)) | (Kind::Other(ty), Kind::Enum(it)) => it.ty == ty,
            (Kind::Struct(before), Kind::Struct(now)) => {
                if !named {
                    left.extend(
                        before
                            .iter()
                            .zip(now)
                            .map(|((_, old), (_, new))| (old.as_str(), new.as_str())),
                    );
                }
                named || before.len() == now.len()
            }
            (Kind::Union(before), Kind::Union(now)) => named || tags(before, now, left),
            (Kind::Message(before), Kind::Message(now)) => named || fields(before, now, left),
            (Kind::Other(_), Kind::Other(_)) => named,
            _ => false,
        }
    }
}

/// The type that stands for all that are the same to a reader of bytes.
fn plain(ty: &str) -> &str {
    match ty {
        "timestamp" | "duration" => "i64",
        "actor_id" => "spot_id",
        "actor_ref" => "spot_ref",
        "list<u8>" => "bytes",
        _ => ty,
    }
}

/// `list<Money>` as its two words.
pub(super) fn inner(ty: &str) -> Option<(&str, &str)> {
    ty.strip_suffix('>')?.split_once('<')
}

fn kind<'c>(contract: &'c Contract, name: &'c str) -> Kind<'c> {
    if let Some(it) = contract.enums.get(name) {
        Kind::Enum(it)
    } else if let Some(it) = contract.structs.get(name) {
        Kind::Struct(it)
    } else if let Some(it) = contract.unions.get(name) {
        Kind::Union(it)
    } else if let Some(it) = contract.messages.get(name) {
        Kind::Message(it)
    } else {
        Kind::Other(name)
    }
}

/// Whether no number means one value here and another there.
fn values(old: &BTreeMap<i128, Use<String>>, new: &BTreeMap<i128, Use<String>>) -> bool {
    old.iter()
        .all(|(number, old)| new.get(number).is_none_or(|new| old == new))
}

fn tags<'c>(old: &'c BTreeMap<u8, Use<String>>, new: &'c BTreeMap<u8, Use<String>>, left: &mut Pairs<'c>) -> bool {
    old.iter().all(|(tag, old)| match (old, new.get(tag)) {
        (_, None) | (Use::Gone(_), Some(Use::Gone(_))) => true,
        (Use::Now(old), Some(Use::Now(new))) => {
            left.push((old, new));
            true
        }
        _ => false,
    })
}

fn fields<'c>(old: &'c Message, new: &'c Message, left: &mut Pairs<'c>) -> bool {
    let ids: HashSet<u16> = old.fields.keys().chain(new.fields.keys()).copied().collect();
    ids.into_iter()
        .all(|id| match (old.fields.get(&id), new.fields.get(&id)) {
            (Some(Use::Now(old)), Some(Use::Now(new))) => {
                left.push((&old.ty, &new.ty));
                (old.required, old.max) == (new.required, new.max)
            }
            // Whoever does not know a field passes it over, unless it must be there.
            (Some(Use::Now(field)), None) | (None, Some(Use::Now(field))) => !field.required,
            (Some(Use::Now(_)), Some(Use::Gone(_))) | (Some(Use::Gone(_)), Some(Use::Now(_))) => false,
            _ => true,
        })
}
