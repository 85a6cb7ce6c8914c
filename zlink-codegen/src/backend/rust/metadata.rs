//! Metadata keys: a typed constant each.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Context, doc};
use crate::ir::MetadataKey;

impl Context<'_> {
    pub(super) fn metadata_key(&self, index: usize, it: &MetadataKey) -> TokenStream {
        let doc = doc::attributes(&it.doc, &format!("The metadata key `{}`.", it.name));
        let (ident, name, ty) = (&self.own().metadata[index], &it.name, self.scalar_type(it.ty));
        let relay = it.relay.then(|| quote!(.relayed()));
        quote! {
            #doc
            pub const #ident: rt::MetadataKey<#ty> = rt::MetadataKey::new(#name)#relay;
        }
    }
}
