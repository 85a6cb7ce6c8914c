//! What holds what directly, within one namespace: where a Rust type needs a `Box`, and where it has a default.
//!
//! Imports form no cycle, so a message of another namespace never holds one of this.

use std::collections::HashMap;

use crate::ir::{DeclRef, Field, Message, Scalar, Schema, Type};

/// A message or a union.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Node {
    Message(DeclRef),
    Union(DeclRef),
}

/// The direct holdings of a schema's types.
pub(super) struct Graph {
    /// The group of each node that holds itself, directly or through others of its group.
    group: HashMap<Node, usize>,
    /// Whether each message, by namespace and index, has a default.
    defaults: Vec<Vec<bool>>,
}

/// The fields of a message that hold another message or a union directly: lists and maps hold by pointer anyway.
fn held(message: &Message) -> impl Iterator<Item = (&Field, Node)> {
    message.fields().filter_map(|field| Some((field, node(&field.ty)?)))
}

fn node(ty: &Type) -> Option<Node> {
    match ty {
        Type::Message(at) => Some(Node::Message(*at)),
        Type::Union(at) => Some(Node::Union(*at)),
        Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) | Type::Enum(_) | Type::Struct(_) => None,
    }
}

impl Graph {
    pub(super) fn of(schema: &Schema, namespace: usize) -> Self {
        let it = &schema.namespaces[namespace];
        let mut edges: HashMap<Node, Vec<Node>> = HashMap::new();
        let mut order = Vec::new();
        for (index, message) in it.messages.iter().enumerate() {
            let owner = Node::Message(DeclRef { namespace, index });
            order.push(owner);
            edges.insert(owner, held(message).map(|(_, node)| node).collect());
        }
        for (index, union) in it.unions.iter().enumerate() {
            let owner = Node::Union(DeclRef { namespace, index });
            order.push(owner);
            edges.insert(
                owner,
                union
                    .members
                    .iter()
                    .map(|member| Node::Message(member.message))
                    .collect(),
            );
        }
        Self {
            group: groups(&order, &edges),
            defaults: defaults(schema),
        }
    }

    /// Whether a field of `owner` leads back to `owner`, and so needs a `Box`.
    pub(super) fn boxed(&self, owner: DeclRef, field: &Field) -> bool {
        let held = node(&field.ty).and_then(|node| self.group.get(&node));
        held.is_some() && held == self.group.get(&Node::Message(owner))
    }

    /// Whether a message has a default.
    pub(super) fn has_default(&self, at: DeclRef) -> bool {
        self.defaults
            .get(at.namespace)
            .and_then(|list| list.get(at.index))
            .copied()
            .unwrap_or(false)
    }
}

/// Groups of nodes that reach each other (Kosaraju: finish order forward, then backward from the last finished).
fn groups(order: &[Node], edges: &HashMap<Node, Vec<Node>>) -> HashMap<Node, usize> {
    let mut back: HashMap<Node, Vec<Node>> = HashMap::new();
    for (from, to) in order
        .iter()
        .flat_map(|from| edges[from].iter().map(move |to| (from, to)))
    {
        back.entry(*to).or_default().push(*from);
    }
    let mut finished = Vec::new();
    let mut seen: HashMap<Node, ()> = HashMap::new();
    for &start in order {
        let mut stack = vec![(start, 0)];
        if seen.insert(start, ()).is_some() {
            continue;
        }
        while let Some((node, next)) = stack.pop() {
            match edges.get(&node).and_then(|to| to.get(next)) {
                Some(&to) => {
                    stack.push((node, next + 1));
                    if edges.contains_key(&to) && seen.insert(to, ()).is_none() {
                        stack.push((to, 0));
                    }
                }
                None => finished.push(node),
            }
        }
    }
    let mut group = HashMap::new();
    for (number, &start) in finished.iter().rev().enumerate() {
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if edges.contains_key(&node) && !group.contains_key(&node) {
                group.insert(node, number);
                stack.extend(back.get(&node).into_iter().flatten());
            }
        }
    }
    group
}

/// Which messages have a default: those whose required fields all have one.
fn defaults(schema: &Schema) -> Vec<Vec<bool>> {
    let mut defaults: Vec<Vec<bool>> = schema
        .namespaces
        .iter()
        .map(|it| vec![true; it.messages.len()])
        .collect();
    let mut users: HashMap<DeclRef, Vec<DeclRef>> = HashMap::new();
    let mut without = Vec::new();
    for (namespace, it) in schema.namespaces.iter().enumerate() {
        for (index, message) in it.messages.iter().enumerate() {
            let owner = DeclRef { namespace, index };
            for field in message.fields().filter(|field| field.required) {
                match &field.ty {
                    Type::Union(_)
                    | Type::Scalar(Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef) => {
                        without.push(owner);
                    }
                    Type::Message(at) => users.entry(*at).or_default().push(owner),
                    _ => {}
                }
            }
        }
    }
    while let Some(at) = without.pop() {
        let has = &mut defaults[at.namespace][at.index];
        if std::mem::replace(has, false) {
            without.extend(users.get(&at).into_iter().flatten());
        }
    }
    defaults
}
