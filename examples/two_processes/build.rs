//! Compiles the schema that both programs share.

fn main() {
    zlink_codegen::compile("schemas/library.yaml");
}
