//! When this host looks for what nobody else will end: before it serves, and then again and again. It must not know what that
//! is, or how it is ended.

use std::sync::Weak;

use crate::location::{AuthorityError, Orphans};

use super::spots::{Inner, Spots};

impl Inner {
    /// Ends what nobody else will end, a page at a time and all of it once in a lease's time, for ever.
    pub(super) async fn take_up(spots: Weak<Self>) {
        let mut orphans = Orphans::default();
        loop {
            let Some(inner) = spots.upgrade() else { return };
            let timing = inner.fence.lease().config().timing;
            let pause = match inner.take_up_some(&mut orphans).await {
                Ok(true) => timing.lease_ttl,
                Ok(false) => timing.poll_interval / 10,
                // It is looked at again.
                Err(_) => timing.poll_interval,
            };
            drop(inner);
            tokio::time::sleep(pause).await;
        }
    }

    async fn take_up_some(&self, orphans: &mut Orphans) -> Result<bool, AuthorityError> {
        if !self.fence.is_open() {
            return Err(AuthorityError::Closed);
        }
        let holds = |id: &_| self.table.lock().get(id).is_some();
        let stepped = orphans.step(&self.authority, holds).await;
        if let Err(error) = &stepped {
            tracing::debug!(target: "zlink::spot", %error, "what dead hosts have left is not looked through now");
        }
        stepped
    }
}

impl Spots {
    /// What dead hosts have left is looked through once, before this host serves; not for long, as it goes on afterwards.
    pub(crate) async fn take_up(&self) {
        let mut orphans = Orphans::default();
        let looking = async { while let Ok(false) = self.0.take_up_some(&mut orphans).await {} };
        let _ = tokio::time::timeout(self.0.fence.lease().config().timing.renew_timeout, looking).await;
    }
}
