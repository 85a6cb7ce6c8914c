//! Couriers, and the yards that hire them. Callers name a courier by its ID; which node has it is zlink's business.

use zlink_runtime::prelude::*;
use zlink_runtime::{Admission, MeshBuilder};

zlink_runtime::include_schema!("depot");

use depot::{
    Answer, Ask, Count, CourierActor, CourierContext, CourierTurn, HandOver, Hire, Load, Parcel, YardContext, YardSpot,
    YardTurn,
};

/// More than this nobody can carry.
pub const BAGS: u32 = 20;

/// Makes a node one that has a yard and couriers.
pub fn serves(mesh: MeshBuilder) -> MeshBuilder {
    mesh.object_server(|objects| {
        objects
            .entry(depot::yard_spot::<Yard>())
            .actor(depot::courier_actor::<Courier>())
    })
}

/// The yard of one node; there as long as the node is.
#[derive(Debug)]
pub struct Yard {
    hired: u32,
    turned_away: u32,
}

impl YardSpot for Yard {
    type Courier = Courier;

    async fn start(_context: YardContext) -> Result<Self, HandlerError> {
        Ok(Self {
            hired: 0,
            turned_away: 0,
        })
    }

    /// The courier is made, and nobody can find it yet. What is rejected here never was.
    async fn on_create_courier(
        &mut self,
        _turn: &mut YardTurn<'_>,
        courier: &mut Courier,
        hire: Hire,
    ) -> Result<Admission<Answer>, HandlerError> {
        if hire.bags > BAGS {
            self.turned_away += 1;
            let text = format!("nobody carries {} parcels", hire.bags);
            return Ok(Admission::Rejected(Answer { text }));
        }
        self.hired += 1;
        courier.bags = hire.bags;
        let text = format!("welcome, {}", courier.context.id());
        Ok(Admission::Accepted(Answer { text }))
    }

    async fn count(&mut self, _turn: &mut YardTurn<'_>, _ask: Ask) -> Result<Count, HandlerError> {
        Ok(Count {
            hired: self.hired,
            turned_away: self.turned_away,
        })
    }
}

/// A courier. One handler at a time has `self`, so there is nothing to lock.
#[derive(Debug)]
pub struct Courier {
    context: CourierContext,
    bags: u32,
    parcels: Vec<String>,
}

impl CourierActor for Courier {
    async fn create(context: CourierContext) -> Result<Self, HandlerError> {
        Ok(Self {
            context,
            bags: 0,
            parcels: Vec::new(),
        })
    }

    fn context(&self) -> &CourierContext {
        &self.context
    }

    async fn carry(&mut self, _turn: &mut CourierTurn<'_>, parcel: Parcel) -> Result<(), HandlerError> {
        self.parcels.push(match parcel.from {
            Some(from) => format!("{} (by {from})", parcel.to),
            None => parcel.to,
        });
        Ok(())
    }

    /// One courier calls another as everybody does. What is sent comes there in order; what could not be sent stays here.
    async fn hand_over(&mut self, turn: &mut CourierTurn<'_>, to: HandOver) -> Result<Load, HandlerError> {
        let other = depot::courier_actors(turn).of(&to.courier);
        while let Some(parcel) = self.parcels.first() {
            let (to, from) = (parcel.clone(), Some(turn.id().clone()));
            other.carry(Parcel { to, from }).await?;
            self.parcels.remove(0);
        }
        Ok(self.load())
    }

    async fn show(&mut self, _turn: &mut CourierTurn<'_>, _ask: Ask) -> Result<Load, HandlerError> {
        Ok(self.load())
    }
}

impl Courier {
    fn load(&self) -> Load {
        Load {
            bags: self.bags,
            parcels: self.parcels.clone(),
            node: self.context.node().to_string(),
        }
    }
}
