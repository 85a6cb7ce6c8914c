//! Enums are open: a newer program may send a number that has no name here.

use zlink_generated::test_every_type::Kind;

fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Unspecified => "nothing",
        Kind::Weapon => "a weapon",
        Kind::Potion => "a potion",
    }
}

fn main() {
    describe(Kind::Weapon);
}
