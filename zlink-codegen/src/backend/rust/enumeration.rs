//! Enums: open ones, which keep numbers they have no name for.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Context, doc, names, types};
use crate::ir::Enum;
use crate::name::camel;

impl Context<'_> {
    pub(super) fn enumeration(&self, index: usize, it: &Enum) -> TokenStream {
        let ident = &self.own().enums[index];
        let doc = doc::attributes(&it.doc, &format!("The enum `{}`.", it.name));
        let repr = types::int_type(it.repr);
        let size = Literal::u32_unsuffixed(it.repr.size());
        let value_names: Vec<&str> = it.values.iter().map(|value| value.name.as_str()).collect();
        let variants = names::idents(&value_names, camel, &["Unknown"]);
        let numbers: Vec<TokenStream> = it.values.iter().map(|value| number(value.number)).collect();
        let declared = it.values.iter().zip(&variants).map(|(value, variant)| {
            let doc = doc::attributes(&value.doc, &format!("`{}`, number {}.", value.name, value.number));
            let default = (value.number == 0).then(|| quote!(#[default]));
            quote! { #doc #default #variant }
        });
        quote! {
            #doc
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub enum #ident {
                #(#declared,)*
                /// A number without a name here, as a newer program may send; it is kept.
                Unknown(#repr),
            }

            impl #ident {
                /// Its number on the wire.
                #[must_use]
                pub const fn to_wire(self) -> #repr {
                    match self {
                        #(Self::#variants => #numbers,)*
                        Self::Unknown(number) => number,
                    }
                }

                /// The value with this number.
                #[must_use]
                pub const fn from_wire(number: #repr) -> Self {
                    match number {
                        #(#numbers => Self::#variants,)*
                        number => Self::Unknown(number),
                    }
                }
            }

            impl rt::Inline for #ident {
                type Bytes = [u8; #size];
                const ALIGN: usize = #size;

                #[inline]
                fn to_bytes(&self) -> [u8; #size] {
                    self.to_wire().to_le_bytes()
                }

                #[inline]
                fn from_bytes(bytes: &[u8; #size]) -> Self {
                    Self::from_wire(#repr::from_le_bytes(*bytes))
                }

                #[inline]
                fn is_elided(&self) -> bool {
                    self.to_wire() == 0
                }
            }
        }
    }
}

/// A number as an expression and a pattern.
fn number(number: i128) -> TokenStream {
    let literal = Literal::u128_unsuffixed(number.unsigned_abs());
    if number < 0 {
        quote!(-#literal)
    } else {
        quote!(#literal)
    }
}
