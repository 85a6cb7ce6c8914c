//! Generates the code for the quickstart's schema.

fn main() {
    zlink_codegen::compile("../quickstart/schemas/billing.yaml");
}
