//! Unions are open: a newer program may send a member that is not known here.

use zlink_generated::test_common::Shape;

fn radius(shape: &Shape) -> f64 {
    match shape {
        Shape::Circle(circle) => circle.radius,
    }
}

fn main() {
    radius(&Shape::Unknown(2));
}
