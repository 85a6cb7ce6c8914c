//! An exchange with a Spot: whoever knows the Spots says where it is, and hears where that was wrong.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Execution};
use crate::id::LinkId;
use crate::limit::ROUTE_READY_TIME;
use crate::mesh::Lookup;
use crate::transport::BoxFuture;

use super::super::found::Found;
use super::super::objects::SpotTo;
use super::super::outbound::Outbound;
use super::super::own::Kind;
use super::super::way::Target;
use super::{Exchange, Route, Ways};

/// Where a Spot's node is, if that can be said at once.
enum Hop {
    Ready(Route),
    /// Its link may come.
    Known,
}

fn hop(outbound: &Outbound, found: &Found, kind: Kind) -> Result<Hop, Error> {
    let (name, rid) = (&found.place.mesh, &found.place.node);
    let Some(mesh) = outbound.mesh(name) else {
        let text = format!("the object lives in mesh {name:?}, in which this process has no node");
        return Err(Error::not_executed(ErrorKind::Unavailable, text));
    };
    if rid == mesh.own.rid() {
        return Ok(Hop::Ready(Route::Own(mesh.own, kind)));
    }
    match mesh.path.links.upgrade().ok_or_else(Outbound::shutting_down)?.find(rid) {
        Lookup::Ready(peer) => Ok(Hop::Ready(Route::Link(peer))),
        Lookup::Known => Ok(Hop::Known),
        Lookup::Client | Lookup::Unknown => {
            let text = format!("the object lives on {rid}, which this process has no link with");
            Err(Error::not_executed(ErrorKind::Unavailable, text))
        }
    }
}

pub(crate) fn no_role() -> Error {
    let text = "no mesh of this process has an object role; give one object_client() or object_server(…)";
    Error::not_executed(ErrorKind::NotConfigured, text)
}

impl Exchange {
    /// The way to where a Spot is known to be; `None` where it must be asked for.
    pub(super) fn spot_route(&self, spot: &SpotTo) -> Result<Option<(Route, Found)>, Error> {
        let objects = self.way.outbound.objects().ok_or_else(no_role)?;
        if let Some((link, found)) = spot.elsewhere(&*objects) {
            let found = match &spot.intent {
                None => found,
                Some(intent) => objects.may_activate(found, intent),
            };
            return Ok(Some((Route::Link(link), found)));
        }
        let known = match &spot.fixed {
            Some(found) => Some((found.clone(), None)),
            None => objects.known(spot),
        };
        let Some((found, known)) = known else {
            spot.is_found(None);
            return Ok(None);
        };
        let hop = hop(&self.way.outbound, &found, self.own_kind());
        spot.is_found(match &hop {
            Ok(Hop::Ready(Route::Link(link))) => known.map(|known| (known, link)),
            _ => None,
        });
        match hop {
            Ok(Hop::Ready(route)) => Ok(Some((route, found))),
            Ok(Hop::Known) => Ok(None),
            Err(error) if spot.fixed.is_some() => Err(error),
            // Nothing was sent: whoever knows the Spots is asked again.
            Err(_) => {
                objects.misled(&spot.id, found.lead);
                Ok(None)
            }
        }
    }

    /// Asks where it is, and waits a second for the link of its node.
    pub(super) fn find_spot(
        &mut self,
        spot: Arc<SpotTo>,
        ended: Vec<LinkId>,
    ) -> BoxFuture<'static, Result<Ways, Error>> {
        let (outbound, in_turn) = (self.way.outbound.clone(), self.way.in_turn());
        let kind = self.own_kind();
        let deadline = self.send_deadline();
        Box::pin(async move {
            let objects = outbound.objects().ok_or_else(no_role)?;
            let finding = async {
                let found = match &spot.fixed {
                    Some(found) => found.clone(),
                    None => objects.clone().find(spot.clone()).await?,
                };
                if let Hop::Ready(route) = hop(&outbound, &found, kind)?
                    && !ended.contains(&route.id())
                {
                    return Ok((route, Some(found)));
                }
                let mesh = outbound.mesh(&found.place.mesh).ok_or_else(no_role)?;
                let links = mesh.path.links.upgrade().ok_or_else(Outbound::shutting_down)?;
                let ready = links.ready(&found.place.node, &ended);
                match tokio::time::timeout(ROUTE_READY_TIME, ready).await {
                    Ok(peer) => Ok((Route::Link(peer), Some(found))),
                    Err(_) => {
                        objects.misled(&spot.id, found.lead);
                        let text = format!(
                            "the link to {}, where the object lives, was not ready in time",
                            found.place.node
                        );
                        Err(Error::not_executed(ErrorKind::Unavailable, text))
                    }
                }
            };
            let bounded = async {
                match deadline {
                    None => finding.await,
                    Some(at) => tokio::time::timeout_at(at, finding).await.unwrap_or_else(|_| {
                        let text = "the object was not found within the send timeout";
                        Err(Error::not_executed(ErrorKind::DeadlineExceeded, text))
                    }),
                }
            };
            tokio::select! {
                biased;
                () = outbound.refuses(in_turn) => Err(Outbound::shutting_down()),
                found = bounded => found,
            }
        })
    }

    /// It goes there now.
    ///
    /// # Errors
    /// Where the turn that calls would wait for itself.
    pub(super) fn note_spot(&mut self, route: &Route) -> Result<(), Error> {
        let (Target::Spot(spot), Some(found)) = (&self.way.target, &self.found) else {
            return Ok(());
        };
        self.sent_by = found.lead;
        if self.timeout.is_some() && route.is_own() {
            let objects = self.way.outbound.objects().ok_or_else(no_role)?;
            objects.may_wait_for(&spot.id)?;
        }
        Ok(())
    }

    /// Where a call was sent, it was refused: what led there may be old.
    pub(super) fn note_misled(&self, error: &Error) {
        let Target::Spot(spot) = &self.way.target else { return };
        let old = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound);
        if old
            && error.execution() == Execution::NotExecuted
            && let Some(objects) = self.way.outbound.objects()
        {
            objects.misled(&spot.id, self.sent_by);
        }
    }
}
