//! stub
use crate::permit::Permit;
use crate::transport::BoxFuture;
use std::sync::Arc;
use tokio::runtime::Handle;
pub(crate) trait Job: Send + 'static {
    fn start(self) -> Option<BoxFuture<'static, ()>>;
}
#[derive(Clone)]
pub(crate) struct Workers(Handle);
impl Workers {
    pub(crate) fn spawn(h: &Handle, _n: usize) -> Self {
        Self(h.clone())
    }
    pub(crate) fn stop(&self) {}
}
pub(crate) struct Owner<J> {
    workers: Workers,
    _j: std::marker::PhantomData<fn(J)>,
    limit: usize,
    n: Arc<std::sync::atomic::AtomicUsize>,
}
impl<J: Job> Owner<J> {
    pub(crate) fn new(w: &Workers, limit: usize) -> Self {
        Self {
            workers: w.clone(),
            _j: std::marker::PhantomData,
            limit,
            n: Arc::default(),
        }
    }
    pub(crate) fn admit(&self, job: J, permit: Option<Permit>) -> Result<(), J> {
        let _ = self.limit;
        if let Some(f) = job.start() {
            drop(permit);
            self.n.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let n = self.n.clone();
            self.workers.0.spawn(async move {
                f.await;
                n.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        Ok(())
    }
    pub(crate) fn close(&self) {}
    pub(crate) async fn drained(&self) {}
    pub(crate) fn abandon(&self) -> usize {
        0
    }
}
