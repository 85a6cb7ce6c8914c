//! Chapter 10: how many jobs may wait, who waits for whom, and how a host under pressure slows its peers.

mod apply;
mod completion;
mod count;
mod flood;
mod pressure;
mod settings;
mod turns;
mod watching;

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use zlink_generated::contract::{Brief, Note, OrdersHandler, orders_server};
use zlink_runtime::prelude::*;

use crate::kit::{Desk, Way, serving};

/// Serves `orders`, one handler at a time, with `jobs` permits; it pauses its peers when all are in use.
async fn narrow(way: Way, desk: &Desk, jobs: u32) -> Host {
    let orders = orders_server(desk.clone()).dispatch_limit(1);
    serving(way, orders, |host| host.max_queued_jobs(jobs).pressure(100, 99)).await
}

/// A handler that blocks its thread until it is opened, as no handler should.
#[derive(Clone, Default)]
struct Blocking(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Blocking {
    fn runs(&self) -> usize {
        self.0.0.lock().1
    }

    fn open(&self) {
        self.0.0.lock().0 = true;
        self.0.1.notify_all();
    }

    fn run(&self) {
        let mut state = self.0.0.lock();
        state.1 += 1;
        self.0.1.wait_while(&mut state, |state| !state.0);
    }
}

impl OrdersHandler for Blocking {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run();
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run();
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        self.run();
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.run();
        Ok(())
    }
}
