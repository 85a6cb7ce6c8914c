//! Structs: `Copy`, of fixed layout.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Context, doc, names};
use crate::ir::Struct;
use crate::name::snake;

impl Context<'_> {
    pub(super) fn structure(&self, index: usize, it: &Struct) -> TokenStream {
        let ident = &self.own().structs[index];
        let doc = doc::attributes(&it.doc, &format!("The struct `{}`.", it.name));
        let field_names: Vec<&str> = it.fields.iter().map(|field| field.name.as_str()).collect();
        let idents = names::idents(&field_names, snake, &[]);
        let declared = it.fields.iter().zip(&idents).map(|(field, ident)| {
            let doc = doc::attributes(&field.doc, &format!("The field `{}`.", field.name));
            let ty = self.value_type(&field.ty);
            quote! { #doc pub #ident: #ty }
        });
        let offsets: Vec<Literal> = it
            .fields
            .iter()
            .map(|field| Literal::u32_unsuffixed(field.offset))
            .collect();
        let size = Literal::u32_unsuffixed(it.size);
        let align = Literal::u32_unsuffixed(it.align);
        quote! {
            #doc
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            pub struct #ident {
                #(#declared,)*
            }

            impl rt::Inline for #ident {
                type Bytes = [u8; #size];
                const ALIGN: usize = #align;

                #[inline]
                fn to_bytes(&self) -> [u8; #size] {
                    let mut bytes = [0; #size];
                    #(rt::store(&mut bytes, #offsets, &self.#idents);)*
                    bytes
                }

                #[inline]
                fn from_bytes(bytes: &[u8; #size]) -> Self {
                    Self { #(#idents: rt::load(bytes, #offsets),)* }
                }
            }
        }
    }
}
