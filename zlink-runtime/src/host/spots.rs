//! What can be asked of the Spots that the Location Store knows, by operators: one of them, or page after page.
//!
//! What it answers is true of a moment in the past, and no target for messages. It decides nothing.

use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::id::{MeshName, ObjectId, ObjectKind, ObjectRef, SpotId, SpotKind, SpotRef, SpotType};
use crate::limit::PAGE_ENTRIES;
use crate::location::{AuthorityError, Cursor, Filter, Listed, Resolved, SpotRecord, SpotState};

use super::Host;

/// Which Spots [`Host::list_spots`] shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotQuery {
    filter: Filter,
    size: usize,
}

impl SpotQuery {
    /// All of that kind, 100 on a page.
    #[must_use]
    pub const fn new(kind: SpotKind) -> Self {
        let filter = Filter {
            kind: ObjectKind::of_spot(kind),
            stable_type: None,
            mesh: None,
        };
        Self { filter, size: 100 }
    }

    /// Of these, those of one type.
    #[must_use]
    pub fn of_type(mut self, stable_type: SpotType) -> Self {
        self.filter.stable_type = Some(stable_type);
        self
    }

    /// Of these, those of one mesh.
    #[must_use]
    pub fn in_mesh(mut self, mesh: MeshName) -> Self {
        self.filter.mesh = Some(mesh);
        self
    }

    /// So many on a page, 1 to 1,000.
    #[must_use]
    pub const fn page_size(mut self, size: usize) -> Self {
        self.size = size;
        self
    }
}

/// Some of the Spots that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPage {
    /// They; maybe fewer than fit, even none, although there are more.
    pub spots: Vec<SpotEntry>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<SpotCursor>,
}

/// A place between two pages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpotCursor(Cursor);

/// A Spot, as the Location Store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotEntry {
    /// Which one it is, and where.
    pub reference: SpotRef,
    /// Its kind.
    pub kind: SpotKind,
    /// Its type.
    pub stable_type: SpotType,
    /// How it stands.
    pub state: SpotEntryState,
}

/// How a Spot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpotEntryState {
    /// Somebody makes it. Nobody can send to it yet.
    Creating,
    /// It takes messages.
    Ready,
    /// Its owner is dead, or cut off from the store. It stays so until it is released.
    Unavailable,
}

impl SpotEntry {
    fn new(record: SpotRecord, stands: bool) -> Option<Self> {
        let ObjectRef::Spot(reference) = record.reference() else {
            return None;
        };
        Some(Self {
            reference,
            state: match record.state {
                _ if !stands => SpotEntryState::Unavailable,
                SpotState::Creating => SpotEntryState::Creating,
                SpotState::Ready => SpotEntryState::Ready,
            },
            kind: record.kind.spot()?,
            stable_type: record.stable_type,
        })
    }
}

impl Host {
    /// What the Location Store says of the Spot with this ID; `None` where there is none. It is read anew each time.
    ///
    /// # Errors
    /// [`CallError::Argument`] where the ID is none. [`ErrorKind::NotConfigured`] where the host has no Location Store; otherwise
    /// that it failed, which never means that there is no such Spot. Dropping the future harms nothing.
    pub async fn find_spot(&self, id: impl AsRef<str>) -> Result<Option<SpotEntry>, CallError> {
        let id = SpotId::new(id).map_err(|error| ArgumentError::new("id", error.to_string()))?;
        match self.spots()?.resolve(&ObjectId::Spot(id)).await {
            Resolved::Ready(record) | Resolved::Creating(record) => Ok(SpotEntry::new(record, true)),
            Resolved::Unavailable(record) => Ok(SpotEntry::new(record, false)),
            Resolved::Missing => Ok(None),
            Resolved::Failed(error) => Err(failed(&error)),
        }
    }

    /// The next Spots that `query` shows, from `after` on, or from the beginning. In one round from the beginning to the
    /// last page each is shown at most once; what comes or goes meanwhile may be shown or not.
    ///
    /// # Errors
    /// As [`Host::find_spot`], and for a page of 0 or more than 1,000, before anything is read. No part of a page is shown.
    pub async fn list_spots(&self, query: &SpotQuery, after: Option<&SpotCursor>) -> Result<SpotPage, CallError> {
        if !(1..=PAGE_ENTRIES).contains(&query.size) {
            let problem = format!("is {}; it must be 1 to {PAGE_ENTRIES}", query.size);
            return Err(CallError::Argument(ArgumentError::new("page size", problem)));
        }
        let after = after.map(|cursor| cursor.0.clone());
        let page = self.spots()?.page(&query.filter, query.size, after).await;
        let (listed, next) = page.map_err(|error| failed(&error))?;
        let entry = |Listed { record, stands }| SpotEntry::new(record, stands);
        Ok(SpotPage {
            spots: listed.into_iter().filter_map(entry).collect(),
            next: next.map(SpotCursor),
        })
    }

    fn spots(&self) -> Result<&crate::location::Reader, CallError> {
        let location = self.0.location.as_ref().ok_or_else(|| {
            let text = "this host has no Location Store";
            CallError::from(Error::not_executed(ErrorKind::NotConfigured, text))
        })?;
        Ok(location.spots())
    }
}

fn failed(error: &AuthorityError) -> CallError {
    Error::not_executed(error.kind(), error.to_string()).into()
}
