//! Messages: a struct of owned fields, and its codec.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::types::Storage;
use super::{Context, doc, names};
use crate::ir::{DeclRef, Field, Message, Scalar, Slot, Type};
use crate::name::{snake, upper};

/// A field with what is derived from it.
struct Member<'a> {
    field: &'a Field,
    ident: Ident,
    /// The constant that describes it to the codec.
    rules: Ident,
    boxed: bool,
}

impl Context<'_> {
    pub(super) fn message(&self, index: usize, it: &Message) -> TokenStream {
        let at = DeclRef {
            namespace: self.at,
            index,
        };
        let ident = &self.own().messages[index];
        let doc = doc::attributes(&it.doc, &format!("The message `{}`.", it.name));
        let default = self.graph.has_default(at).then(|| quote!(, Default));
        let members = self.members(at, it);
        let declared = members.iter().map(|member| self.declaration(member));
        let rules = members.iter().map(|member| self.rules(member));
        let constants = (!members.is_empty()).then(|| quote! { impl #ident { #(#rules)* } });
        let codec = self.codec(ident, &members);
        let message = self.message_impl(ident, it);
        quote! {
            #doc
            #[derive(Clone, Debug, PartialEq #default)]
            pub struct #ident {
                #(#declared,)*
            }

            #constants
            #codec
            #message
        }
    }

    fn members<'m>(&self, at: DeclRef, it: &'m Message) -> Vec<Member<'m>> {
        let fields: Vec<&Field> = it
            .slots
            .iter()
            .filter_map(|slot| match slot {
                Slot::Field(field) => Some(field),
                Slot::Reserved { .. } => None,
            })
            .collect();
        let field_names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let idents = names::idents(&field_names, snake, &[]);
        let rules = names::idents(&field_names, upper, &[]);
        let boxed = |field: &Field| self.graph.boxed(at, field);
        let members = fields.into_iter().zip(idents).zip(rules);
        members
            .map(|((field, ident), rules)| Member {
                field,
                ident,
                rules,
                boxed: boxed(field),
            })
            .collect()
    }

    fn declaration(&self, member: &Member<'_>) -> TokenStream {
        let (field, ident) = (member.field, &member.ident);
        let doc = doc::attributes(&field.doc, &format!("The field `{}`.", field.name));
        let mut ty = self.value_type(&field.ty);
        if member.boxed {
            ty = quote!(rt::Box<#ty>);
        }
        if has_no_default(&field.ty) && !field.required {
            ty = quote!(rt::Option<#ty>);
        }
        quote! { #doc pub #ident: #ty }
    }

    fn rules(&self, member: &Member<'_>) -> TokenStream {
        let (field, rules) = (member.field, &member.rules);
        let (id, name) = (Literal::u16_unsuffixed(field.id), &field.name);
        let required = field.required.then(|| quote!(.required()));
        let max = field.max.map(|max| {
            let max = Literal::u32_unsuffixed(max);
            quote!(.max(#max))
        });
        quote! { const #rules: rt::Field = rt::Field::new(#id, #name)#required #max; }
    }

    fn codec(&self, ident: &Ident, members: &[Member<'_>]) -> TokenStream {
        let offsets: Vec<&Member<'_>> = members
            .iter()
            .filter(|member| self.storage(&member.field.ty) == Storage::Offset)
            .collect();
        let children = offsets.iter().map(|member| self.child(member));
        // Wide before narrow leaves no padding between them.
        let mut by_width: Vec<&Member<'_>> = members.iter().collect();
        by_width.sort_by_key(|member| std::cmp::Reverse(self.align(&member.field.ty)));
        let slots = by_width.iter().map(|member| self.slot(member));
        let reads = members.iter().map(|member| self.read(member));
        let write = if members.is_empty() {
            quote! { rt::Ok(writer.table()?.end()) }
        } else {
            quote! {
                #(#children)*
                let mut table = writer.table()?;
                #(#slots)*
                rt::Ok(table.end())
            }
        };
        let table = if members.is_empty() {
            quote! { at.table()?; }
        } else if offsets.is_empty() {
            quote! { let table = at.table()?; }
        } else {
            quote! { let mut table = at.table()?; }
        };
        quote! {
            impl rt::Value for #ident {
                fn write(&self, writer: &mut rt::Writer) -> rt::Result<rt::Offset, rt::EncodeError> {
                    #write
                }

                fn read(at: rt::At<'_, '_>) -> rt::Result<Self, rt::DecodeError> {
                    #table
                    rt::Ok(Self { #(#reads,)* })
                }
            }
        }
    }

    /// Writes what stands behind an offset.
    fn child(&self, member: &Member<'_>) -> TokenStream {
        let (field, ident, rules) = (member.field, &member.ident, &member.rules);
        let local = local(field);
        let write = match &field.ty {
            Type::Scalar(Scalar::String) => quote!(string(Self::#rules, &self.#ident)),
            Type::Scalar(Scalar::Bytes) => quote!(bytes(Self::#rules, &self.#ident)),
            Type::List(item) => match self.storage(item) {
                Storage::Inline => quote!(inlines(Self::#rules, &self.#ident)),
                Storage::Offset => quote!(list(Self::#rules, &self.#ident)),
            },
            Type::Map(value) => match self.storage(value) {
                Storage::Inline => quote!(inline_map(Self::#rules, &self.#ident)),
                Storage::Offset => quote!(map(Self::#rules, &self.#ident)),
            },
            _ if field.required => quote!(value(Self::#rules, rt::Some(&self.#ident))),
            _ => quote!(value(Self::#rules, self.#ident.as_ref())),
        };
        quote! { let #local = writer.#write?; }
    }

    /// Writes a field's slot.
    fn slot(&self, member: &Member<'_>) -> TokenStream {
        let (field, ident, rules) = (member.field, &member.ident, &member.rules);
        match (self.storage(&field.ty), &field.ty) {
            (Storage::Offset, _) => {
                let local = local(field);
                quote! { table.offset(Self::#rules, #local); }
            }
            (Storage::Inline, Type::Optional(_)) => quote! { table.optional(Self::#rules, self.#ident); },
            (Storage::Inline, _) => quote! { table.inline(Self::#rules, self.#ident); },
        }
    }

    /// Reads a field.
    fn read(&self, member: &Member<'_>) -> TokenStream {
        let (field, ident, rules) = (member.field, &member.ident, &member.rules);
        let read = match &field.ty {
            Type::Scalar(Scalar::String) => quote!(string(Self::#rules)?),
            Type::Scalar(Scalar::Bytes) => quote!(bytes(Self::#rules)?.to_vec()),
            Type::List(item) => match self.storage(item) {
                Storage::Inline => quote!(inlines(Self::#rules)?),
                Storage::Offset => quote!(list(Self::#rules)?),
            },
            Type::Map(value) => match self.storage(value) {
                Storage::Inline => quote!(inline_map(Self::#rules)?),
                Storage::Offset => quote!(map(Self::#rules)?),
            },
            Type::Optional(_) => quote!(optional(Self::#rules)?),
            ty if self.storage(ty) == Storage::Inline => quote!(inline(Self::#rules)?),
            _ if field.required => quote!(required(Self::#rules)?),
            _ => quote!(value(Self::#rules)?),
        };
        quote! { #ident: table.#read }
    }

    fn message_impl(&self, ident: &Ident, it: &Message) -> TokenStream {
        let name = format!("{}.{}", self.schema.namespaces[self.at].name, it.name);
        quote! {
            impl rt::Message for #ident {
                const NAME: &'static str = #name;
            }
        }
    }
}

/// What a field's written value is called until its table names it.
fn local(field: &Field) -> Ident {
    format_ident!("f{}", field.id)
}

/// Whether absence is told by an `Option`.
fn has_no_default(ty: &Type) -> bool {
    match ty {
        Type::Message(_) | Type::Union(_) => true,
        Type::Scalar(scalar) => {
            matches!(
                scalar,
                Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef
            )
        }
        Type::List(_) | Type::Optional(_) | Type::Map(_) | Type::Enum(_) | Type::Struct(_) => false,
    }
}
