//! A message that requires a union has no default: nobody can say which member it would be.

use zlink_generated::test_every_type::All;

fn main() {
    let _all = All::default();
}
