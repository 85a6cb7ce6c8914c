//! Unions: one variant per member, and one for a tag that is not known here.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Context, doc, names};
use crate::ir::{Type, Union};
use crate::name::camel;

impl Context<'_> {
    pub(super) fn union(&self, index: usize, it: &Union) -> TokenStream {
        let ident = &self.own().unions[index];
        let doc = doc::attributes(&it.doc, &format!("The union `{}`.", it.name));
        let messages: Vec<_> = it
            .members
            .iter()
            .map(|member| self.schema.message(member.message))
            .collect();
        let member_names: Vec<&str> = messages.iter().map(|message| message.name.as_str()).collect();
        let variants = names::idents(&member_names, camel, &["Unknown"]);
        let declared = it
            .members
            .iter()
            .zip(&messages)
            .zip(&variants)
            .map(|((member, message), variant)| {
                let doc = doc::attributes(
                    &crate::ir::Doc(None),
                    &format!("`{}`, tag {}.", message.name, member.tag),
                );
                let path = self.path(&Type::Message(member.message));
                quote! { #doc #variant(#path) }
            });
        let tags: Vec<Literal> = it
            .members
            .iter()
            .map(|member| Literal::u8_unsuffixed(member.tag))
            .collect();
        quote! {
            #doc
            #[derive(Clone, Debug, PartialEq)]
            pub enum #ident {
                #(#declared,)*
                /// A member that is not known here, as a newer program may send. Its content was not kept, so it
                /// cannot be encoded again.
                Unknown(u8),
            }

            impl rt::Value for #ident {
                fn write(&self, writer: &mut rt::Writer) -> rt::Result<rt::Offset, rt::EncodeError> {
                    match self {
                        #(Self::#variants(member) => writer.union(#tags, member),)*
                        Self::Unknown(tag) => writer.unknown_union(*tag),
                    }
                }

                fn read(at: rt::At<'_, '_>) -> rt::Result<Self, rt::DecodeError> {
                    <Self as rt::Value>::read_optional(at)?.ok_or_else(rt::no_member)
                }

                fn read_optional(at: rt::At<'_, '_>) -> rt::Result<rt::Option<Self>, rt::DecodeError> {
                    let mut table = at.table()?;
                    rt::Ok(rt::Some(match table.tag()? {
                        0 => return rt::Ok(rt::None),
                        #(#tags => Self::#variants(table.member()?),)*
                        tag => Self::Unknown(tag),
                    }))
                }
            }
        }
    }
}
