//! Compiles the schema that desk and screens share.

fn main() {
    zlink_codegen::compile("office.yaml");
}
