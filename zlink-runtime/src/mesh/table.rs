//! The peers of one scope: who is known, and which link to each is used. Pure; what must happen is returned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use crate::id::{Generation, LinkId, Rid, SpotId};
use crate::wire::{RejectReason, Update};

use crate::limit::{LOST_PEERS, MAX_WEIGHT};

use super::info::{NodeInfo, Refusal, channels_from_wire};
use super::peer::PeerLink;
use super::{ObjectRole, PeerView, Placement};

/// Runs that are remembered as replaced by later ones.
const REPLACED_RUNS: usize = 1024;

/// Peers by RID.
#[derive(Debug, Default)]
pub(super) struct Table {
    peers: BTreeMap<Rid, Entry>,
    /// Whether one peer may have many links and none is preferred: the clients of a ClientServer server.
    keyed_by_link: bool,
    links: BTreeMap<LinkId, Arc<PeerLink>>,
    /// Runs that later ones have replaced, the latest last: they stay out, also where their successors are forgotten.
    replaced: VecDeque<(Rid, Generation)>,
    version: u64,
}

#[derive(Debug)]
struct Entry {
    info: NodeInfo,
    ready: Option<Arc<PeerLink>>,
    /// The link of its run that was admitted last.
    newest: LinkId,
    /// When its last link was lost.
    lost: Option<Instant>,
    /// Whether the Location Store lists it; `None` where it never did.
    listed: Option<bool>,
}

/// What a newly admitted link means for those that are there.
#[derive(Debug)]
pub(super) enum Placed {
    /// It is the one to use. The other, if any, has ended: close it.
    Used { replaces: Option<Arc<PeerLink>> },
    /// It is the one to use. The other finishes what it carries.
    Preferred { over: Arc<PeerLink> },
    /// The other stays the one to use; this one finishes what it carries.
    Spare,
    /// It must not be admitted.
    Refused(Refusal),
}

impl Table {
    pub(super) fn new(keyed_by_link: bool) -> Self {
        Self {
            keyed_by_link,
            ..Self::default()
        }
    }

    /// Places a link that passed admission. `local` decides between two that were dialled at the same moment: the one
    /// dialled by the smaller RID stays.
    pub(super) fn place(&mut self, local: &Rid, link: &Arc<PeerLink>, info: NodeInfo) -> Placed {
        if self.keyed_by_link {
            self.links.insert(link.id(), link.clone());
            return Placed::Used { replaces: None };
        }
        let is_this = |(rid, run): &(Rid, Generation)| *run == info.generation && *rid == info.rid;
        let has_ended = || {
            let text = format!("that run of {} has ended; a later one took its place", info.rid);
            Placed::Refused(Refusal::new(RejectReason::StaleGeneration, text))
        };
        if self.replaced.iter().any(is_this) {
            return has_ended();
        }
        let Some(entry) = self.peers.get_mut(&info.rid) else {
            let rid = info.rid.clone();
            let entry = Entry {
                info,
                ready: Some(link.clone()),
                newest: link.id(),
                lost: None,
                listed: None,
            };
            self.peers.insert(rid, entry);
            self.links.insert(link.id(), link.clone());
            return Placed::Used { replaces: None };
        };
        let same_run = entry.info.generation == info.generation;
        // Whoever is admitted was there after its link had been numbered, so the run with the later number is the later one,
        // whichever was heard of first: the last words of a run that was killed may come after its successor.
        if !same_run && link.id() < entry.newest {
            return has_ended();
        }
        if same_run && info.revision < entry.info.revision {
            let text = format!("revision {} is older than {}", info.revision, entry.info.revision);
            return Placed::Refused(Refusal::new(RejectReason::StaleRevision, text));
        }
        let placed = match &entry.ready {
            Some(used) if same_run && used.link().peer().dialled != link.link().peer().dialled => {
                let smaller_dialled = link.link().peer().dialled == (*local < info.rid);
                if smaller_dialled {
                    Placed::Preferred { over: used.clone() }
                } else {
                    Placed::Spare
                }
            }
            Some(used) if same_run && link.link().peer().dialled => {
                let text = format!("there is a link to {} already", used.rid());
                return Placed::Refused(Refusal::new(RejectReason::Duplicate, text));
            }
            // The newest admitted one wins: whoever dials again has given up the one before.
            used => Placed::Used { replaces: used.clone() },
        };
        if !same_run {
            if self.replaced.len() == REPLACED_RUNS {
                self.replaced.pop_front();
            }
            self.replaced.push_back((info.rid.clone(), entry.info.generation));
        }
        entry.info = info;
        entry.newest = link.id();
        entry.lost = None;
        if !matches!(placed, Placed::Spare)
            && let Some(before) = entry.ready.replace(link.clone())
        {
            before.is_used_no_more();
        }
        self.links.insert(link.id(), link.clone());
        placed
    }

    /// Nothing more can be sent on a link. What came on it may still wait to be read. Only that one goes: a later link
    /// of the same peer stays. Returns whether it was in use.
    pub(super) fn ending(&mut self, link: &PeerLink, now: Instant) -> bool {
        let Some(entry) = self.peers.get_mut(link.rid()) else {
            return false;
        };
        if entry.ready.as_ref().is_none_or(|used| used.id() != link.id()) {
            return false;
        }
        // Another one can only be there while it retires; it takes nothing new, and the intent dials again at once.
        entry.ready = None;
        link.is_used_no_more();
        entry.lost = Some(now);
        self.bound_lost();
        true
    }

    /// A link has ended. Returns whether that changes how its peer stands.
    pub(super) fn remove(&mut self, link: &PeerLink, in_order: bool, now: Instant) -> bool {
        self.links.remove(&link.id());
        let used = self.ending(link, now);
        let gone = self.peers.get(link.rid()).is_some_and(|entry| {
            let same_run = entry.info.generation == link.generation();
            in_order && same_run && entry.ready.is_none() && entry.info.is_draining()
        });
        if gone {
            self.peers.remove(link.rid());
        }
        used || gone
    }

    /// Forgets the peer that was lost first where too many are remembered: who comes under ever new RIDs must not make
    /// this side remember them all.
    fn bound_lost(&mut self) {
        let lost = self.peers.iter().filter_map(|(rid, entry)| Some((entry.lost?, rid)));
        if lost.clone().count() > LOST_PEERS
            && let Some(oldest) = lost.min().map(|(_, rid)| rid.clone())
        {
            self.peers.remove(&oldest);
        }
    }

    /// Forgets peers without a link that were lost before `before`, unless `kept` wants them.
    pub(super) fn forget(&mut self, before: Instant, kept: impl Fn(&Rid) -> bool) -> bool {
        let known = self.peers.len();
        self.peers
            .retain(|rid, entry| entry.ready.is_some() || entry.lost.is_none_or(|at| at > before) || kept(rid));
        self.peers.len() != known
    }

    /// Takes a live change. Older revisions are ignored; returns whether anything changed.
    ///
    /// # Errors
    /// Where it changes what must not change while a link lives, or contradicts the revision it repeats.
    pub(super) fn update(&mut self, from: &PeerLink, update: Update) -> Result<bool, String> {
        let channels = channels_from_wire(update.channels).map_err(|refusal| refusal.text)?;
        let Some(entry) = self
            .peers
            .get_mut(from.rid())
            .filter(|entry| entry.info.generation == from.generation())
        else {
            return Ok(false);
        };
        let names = |channels: &[(crate::id::ChannelName, u16)]| {
            channels.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        if names(&channels) != names(&entry.info.channels) {
            return Err("an update adds or removes a channel, which needs a new link".into());
        }
        let objects = &mut entry.info.objects;
        let placement_weight = update.placement_weight.unwrap_or(objects.placement_weight);
        if placement_weight > MAX_WEIGHT {
            return Err(format!(
                "an update has the placement weight {placement_weight}, over {MAX_WEIGHT}"
            ));
        }
        let same = channels == entry.info.channels
            && update.state == entry.info.state
            && placement_weight == objects.placement_weight;
        match update.revision.cmp(&entry.info.revision) {
            std::cmp::Ordering::Less => Ok(false),
            std::cmp::Ordering::Equal if same => Ok(false),
            std::cmp::Ordering::Equal => Err("an update repeats a revision with other contents".into()),
            std::cmp::Ordering::Greater => {
                entry.info.revision = update.revision;
                entry.info.state = update.state;
                entry.info.channels = channels;
                entry.info.objects.placement_weight = placement_weight;
                Ok(true)
            }
        }
    }

    /// The link to use for that peer; `Some(None)` where it is known and has none.
    pub(super) fn find(&self, rid: &Rid) -> Option<Option<&Arc<PeerLink>>> {
        self.peers.get(rid).map(|entry| entry.ready.as_ref())
    }

    pub(super) fn info(&self, rid: &Rid) -> Option<&NodeInfo> {
        self.peers.get(rid).map(|entry| &entry.info)
    }

    /// The links to the same peer that retire, except the newest of those of the same run.
    pub(super) fn outlived(&self, newest: &PeerLink) -> Vec<Arc<PeerLink>> {
        if self.keyed_by_link {
            return Vec::new();
        }
        let used = self.find(newest.rid()).flatten().map(|used| used.id());
        let links = self.links.values().rev();
        let mut retiring = 0;
        let outlived = links.filter(|link| {
            if link.rid() != newest.rid() || Some(link.id()) == used || !link.is_retiring() {
                return false;
            }
            let same_run = link.generation() == newest.generation();
            retiring += usize::from(same_run);
            !same_run || retiring > 1
        });
        outlived.cloned().collect()
    }

    /// Every admitted link, retiring ones too.
    pub(super) fn links(&self) -> impl Iterator<Item = &Arc<PeerLink>> {
        self.links.values()
    }

    /// The peers as selection is told them next, numbered.
    pub(super) fn next_view(&mut self) -> (u64, Vec<PeerView>) {
        self.version += 1;
        (self.version, self.view())
    }

    /// The Location Store lists these peers now, and no others.
    pub(super) fn listed(&mut self, list: &BTreeSet<Rid>) {
        for (rid, entry) in &mut self.peers {
            entry.listed = match list.contains(rid) {
                true => Some(true),
                false => entry.listed.map(|_| false),
            };
        }
    }

    /// The linked peers that can have Spots and take new work, by RID. Whoever is not listed any more is dead, or does not
    /// know whether it lives, whatever its link says.
    pub(super) fn placements(&self) -> Vec<Placement> {
        let able = self.peers.values().filter(|entry| {
            let info = &entry.info;
            let may_live = entry.listed != Some(false);
            entry.ready.is_some() && may_live && info.role == ObjectRole::Server && !info.is_draining()
        });
        able.map(|entry| Placement {
            rid: entry.info.rid.clone(),
            generation: entry.info.generation,
            objects: entry.info.objects.clone(),
        })
        .collect()
    }

    /// The Entry Spots of the linked peers that take new work.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Rid, SpotId)> {
        let able = self
            .peers
            .values()
            .filter(|entry| entry.ready.is_some() && !entry.info.is_draining());
        able.filter_map(|entry| Some((entry.info.rid.clone(), entry.info.objects.entry.clone()?)))
    }

    /// The peers as selection sees them.
    pub(super) fn view(&self) -> Vec<PeerView> {
        let view = self.peers.values().map(|entry| PeerView {
            rid: entry.info.rid.clone(),
            channels: entry.info.channels.clone(),
            draining: entry.info.is_draining(),
            link: entry.ready.clone(),
        });
        view.collect()
    }
}
