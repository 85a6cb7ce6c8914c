//! Carts that stand around a cart of the kit.

/// The handlers of a cart that stands around another, its first field.
macro_rules! as_a_cart {
    () => {
        async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
            self.0.add(turn, message).await
        }

        async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
            self.0.view(turn, request).await
        }
    };
}
pub(crate) use as_a_cart;
