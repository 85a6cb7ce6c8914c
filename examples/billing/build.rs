//! Turns the schema into typed clients, handler traits and codecs.

fn main() {
    zlink_codegen::compile("billing.yaml");
}
