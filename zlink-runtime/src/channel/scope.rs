//! What one dispatch owns beside its message: values that its filters and its handler hand each other, and drop together.
//! It must not know what they are.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// Belongs to one message on its way through filters and handler: a number, and one value of any type that they hand each
/// other. It ends with the handler, however that ends, and before a request is answered.
///
/// # Examples
/// ```
/// # use zlink_runtime::prelude::*;
/// # use zlink_runtime::{Filter, FilterContext, Next};
/// /// Who asks, as a filter found out.
/// struct User(String);
///
/// struct KnowsUsers;
///
/// impl Filter for KnowsUsers {
///     async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
///         if let Some(name) = context.metadata().get("user") {
///             context.scope().set(User(name.to_owned()));
///         }
///         next.run().await
///     }
/// }
///
/// fn greet(context: &ChannelContext<'_>) -> String {
///     match context.scope().get::<User>() {
///         Some(user) => format!("hello {}", user.0),
///         None => "hello".to_owned(),
///     }
/// }
/// ```
pub struct HandlerScope {
    number: u64,
    values: Mutex<Vec<(TypeId, Value)>>,
}

type Value = Arc<dyn Any + Send + Sync>;

impl HandlerScope {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            values: Mutex::default(),
        }
    }

    /// Its number, which no other dispatch of its host has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Keeps `value`, in place of one of the same type, until the dispatch ends.
    pub fn set<T: Send + Sync + 'static>(&self, value: T) {
        let value: Value = Arc::new(value);
        let mut values = self.values.lock();
        let kept = values.iter_mut().find(|(of, _)| *of == TypeId::of::<T>());
        let replaced = match kept {
            Some((_, kept)) => Some(std::mem::replace(kept, value)),
            None => {
                values.push((TypeId::of::<T>(), value));
                None
            }
        };
        // Its drop is a user's code, and may come back here.
        drop(values);
        drop(replaced);
    }

    /// The value of that type, if one was set.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let values = self.values.lock();
        let (_, value) = values.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        value.clone().downcast().ok()
    }
}

impl fmt::Debug for HandlerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerScope({})", self.number)
    }
}
