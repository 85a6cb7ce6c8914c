//! What travels between nodes is the runtime's own: there is nothing to build or to read it with.

fn main() {
    let _frame = zlink_runtime::wire::RecordHead::default();
}
