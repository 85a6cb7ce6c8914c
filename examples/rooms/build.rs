//! Turns the schema into Rust code before the program is compiled.

fn main() {
    zlink_codegen::compile("chat.yaml");
}
