//! What a provider is told, and what is told of a provider: keys and bytes, and no more.

use std::collections::BTreeSet;
use std::path::Path;

use syn::UseTree;
use tempfile::TempDir;
use zlink_runtime::location::{LocationStore, MemoryStore, RedisStore, SqliteStore};

use crate::kit::{batch, key, put, value, write};
use crate::server::Server;

fn names(tree: &UseTree, into: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => names(&path.tree, into),
        UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, into)),
        UseTree::Name(name) => drop(into.insert(name.ident.to_string())),
        UseTree::Rename(name) => drop(into.insert(name.rename.to_string())),
        UseTree::Glob(_) => drop(into.insert("*".to_owned())),
    }
}

/// Everything public of stores, by name: keys, batches, pages, blobs, the providers and their faults. No layout of keys, no
/// lease, no descriptor.
///
/// REQ: LS-006, LS-069
#[test]
fn this_is_public_of_stores_and_no_more() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/location.rs")).unwrap();
    let mut public = BTreeSet::new();
    for item in syn::parse_file(&text).unwrap().items {
        match item {
            syn::Item::Use(item) if matches!(item.vis, syn::Visibility::Public(_)) => names(&item.tree, &mut public),
            syn::Item::Mod(item) => assert!(!matches!(item.vis, syn::Visibility::Public(_)), "{}", item.ident),
            syn::Item::Trait(item) => drop(public.insert(item.ident.to_string())),
            syn::Item::Type(item) => drop(public.insert(item.ident.to_string())),
            _ => {}
        }
    }
    let expected = "Batch BlobPut BlobRef BlobRenewed BlobSource BlobStore BootClock BoxFuture Condition Cursor Fault Faults Key \
                    LocationStore LocationTiming MemoryStore Mutation OpenError Operation Page ProbeError Read ReadMany \
                    RedisBlobStore RedisStore Revision Scan Scanned SqliteBlobStore SqliteStore StoreError \
                    StoreSource StoreTime Stored StoredBlob Written check_blob check_read_many check_retention probe";
    let public: Vec<_> = public.iter().map(String::as_str).collect();
    assert_eq!(public.join(" "), expected);
}

/// Under the keys that hosts use, too, a provider keeps whatever bytes it is given.
///
/// REQ: LS-006
#[tokio::test]
async fn a_provider_looks_into_no_value() {
    let folder = TempDir::new().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("s.db")).await.unwrap();
    let noise: Vec<u8> = (0..=255).collect();
    let server = Server::new();
    let redis = RedisStore::open(&server.address(), "surface").await.unwrap();
    for store in [&MemoryStore::new() as &dyn LocationStore, &sqlite, &redis] {
        for name in ["lease/x", "node/shop/x", "server/stock/x", "taken/x/y", "a:1:x"] {
            for bytes in [Vec::new(), noise.clone()] {
                write(store, &batch([], [put(name, bytes.clone())])).await.unwrap();
                assert_eq!(value(store, name).await.unwrap().unwrap(), bytes, "{name}");
                assert!(store.read(&key(name)).await.unwrap().found.is_some());
            }
        }
    }
}

/// The files below `folder` that ask the clock of the day.
fn asking(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            asking(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let asks = ["SystemTime", "ClockId::Realtime"]
                .into_iter()
                .any(|clock| text.contains(clock));
            let name = path.strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
            into.extend(asks.then(|| name.display().to_string()));
        }
    }
}

/// People set the clock of the day, so it decides nothing: it makes the IDs of flows, the time of a store, which judges
/// retention, and what users send as a time. `tests/processes/clocks.rs` lets it jump.
///
/// REQ: LS-031
#[test]
fn nothing_else_asks_the_clock_of_the_day() {
    let mut found = BTreeSet::new();
    asking(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut found);
    let found: Vec<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["channel/flow.rs", "location/key.rs", "message/time.rs"]);
}
