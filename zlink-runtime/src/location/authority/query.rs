//! Questions over many Spots: pages of what there is, and what a host owns. It must not change anything.

use super::AuthorityError;
use super::capacity::Counts;
use super::reader::{Reader, read};
use super::record::SpotRecord;
use crate::id::{MeshName, ObjectKind, Rid, Space, SpotType};
use crate::limit::READ_KEYS;
use crate::location::name::{self, OwnerId};
use crate::location::{Cursor, HostLease, Key, Page, Scan, Scanned, StoreError, within};

/// Which Spots a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) kind: ObjectKind,
    /// All where `None`.
    pub(crate) stable_type: Option<SpotType>,
    /// All where `None`.
    pub(crate) mesh: Option<MeshName>,
}

impl Filter {
    fn shows(&self, record: &SpotRecord) -> bool {
        self.kind == record.kind
            && self
                .stable_type
                .as_ref()
                .is_none_or(|wanted| *wanted == record.stable_type)
            && self.mesh.as_ref().is_none_or(|wanted| *wanted == record.mesh)
    }
}

/// A Spot on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) record: SpotRecord,
    /// Whether its owner may be alive.
    pub(crate) stands: bool,
}

/// How many entries of the store one page looks at, at most, before it tells how far it has come: a filter that shows
/// almost nothing must not keep its caller for a whole namespace.
const LOOKED_AT: usize = 20_000;

impl Reader {
    /// The next Spots that `filter` shows, at most `size`, which is 1 to 1,000, in the order of their keys; and where to go
    /// on, unless it was the end. There may be fewer, even none, before the end. Each shows some moment of its own, none is
    /// shown twice in one cycle.
    ///
    /// # Errors
    /// The store failed, or the size or the cursor is none. No part of a page is shown.
    pub(crate) async fn page(
        &self,
        filter: &Filter,
        size: usize,
        mut after: Option<Cursor>,
    ) -> Result<(Vec<Listed>, Option<Cursor>), AuthorityError> {
        let prefix = name::space_prefix(filter.kind.space());
        let (mut listed, mut looked_at) = (Vec::new(), 0);
        loop {
            let page = scan(&self.lease, prefix, size - listed.len().min(size), after).await?;
            looked_at += page.entries.len();
            for (key, stored) in &page.entries {
                let record = match SpotRecord::read(stored) {
                    Ok(record) if name::object_key(&record.id) == *key => record,
                    _ => {
                        tracing::warn!(target: "zlink::runtime", %key, "a record of a Spot cannot be read");
                        continue;
                    }
                };
                if filter.shows(&record) {
                    let stands = self.stands(&record).await?;
                    listed.push(Listed { record, stands });
                }
            }
            if page.next.is_none() || listed.len() >= size || looked_at >= LOOKED_AT {
                return Ok((listed, page.next));
            }
            after = page.next;
        }
    }

    /// How many Spots a node has, by the counters in the store: of all types, or of one.
    ///
    /// # Errors
    /// The store failed, or the names are too long for a key.
    pub(crate) async fn counted(
        &self,
        node: &Rid,
        of_type: Option<(ObjectKind, &SpotType)>,
    ) -> Result<Counts, AuthorityError> {
        let key = match of_type {
            Some((kind, of_type)) => name::type_capacity_key(node, kind, of_type),
            None => name::capacity_key(node, Space::Spots),
        };
        let stored = self.one(key.map_err(StoreError::from)?).await?;
        Ok(stored.and_then(|stored| Counts::read(&stored)).unwrap_or_default())
    }

    /// The next Spots that `owner` has by the index in the store, at most 1,000, and where to go on. What cannot be read
    /// is left out.
    ///
    /// # Errors
    /// The store failed.
    pub(crate) async fn owned_by(
        &self,
        owner: OwnerId,
        after: Option<Cursor>,
    ) -> Result<(Vec<SpotRecord>, Option<Cursor>), AuthorityError> {
        let prefix = owner.index_prefix();
        let page = scan(&self.lease, &prefix, READ_KEYS, after).await?;
        let keys: Vec<_> = page
            .entries
            .iter()
            .filter_map(|(key, _)| Key::new(key.as_str().strip_prefix(&prefix)?).ok())
            .collect();
        let mut records = Vec::with_capacity(keys.len());
        for (key, stored) in keys.iter().zip(read(&self.lease, &keys).await?) {
            match stored.as_ref().map(SpotRecord::read) {
                Some(Ok(record)) if record.owner == owner => records.push(record),
                Some(Err(error)) => {
                    tracing::warn!(target: "zlink::runtime", %key, %error, "a record of a Spot cannot be read");
                }
                Some(Ok(_)) | None => {}
            }
        }
        Ok((records, page.next))
    }
}

pub(super) async fn scan(
    lease: &HostLease,
    prefix: &str,
    limit: usize,
    after: Option<Cursor>,
) -> Result<Page, StoreError> {
    let mut scan = Scan::new(prefix, limit)?;
    if let Some(cursor) = after {
        scan = scan.after(cursor);
    }
    let config = lease.config();
    match within(config.timing.renew_timeout, config.store.scan(&scan)).await? {
        Scanned::Page(page) => Ok(page),
        Scanned::Expired => Err(StoreError::Unavailable(
            "the page's place is forgotten; begin anew".into(),
        )),
    }
}
