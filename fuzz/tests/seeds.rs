//! Replays every seed, and every input that was ever a finding.

#[path = "../../generated/rust/tests/interop/sample.rs"]
mod sample;

use std::fs;
use std::path::Path;

use zlink_fuzz::{TARGETS, Target};

fn replay(target: &Target, folder: &Path) -> usize {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder can be read").path();
        if path.is_file() {
            println!("{}", path.display());
            target.run(&fs::read(&path).expect("a seed can be read"));
            count += 1;
        }
    }
    count
}

/// The codec's seeds are messages as they are encoded now; `ZLINK_BLESS=1` writes them.
#[test]
fn seeds_of_the_codec_are_what_it_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/codec");
    for (name, message) in [("all", sample::all()), ("least", sample::least())] {
        let bytes = zlink_runtime::rt::encode(&message, <[u8]>::to_vec).expect("it encodes");
        let path = folder.join(name);
        if std::env::var_os("ZLINK_BLESS").is_some() {
            fs::create_dir_all(&folder).expect("writable");
            fs::write(&path, &bytes).expect("writable");
        }
        assert_eq!(fs::read(&path).expect("a seed"), bytes, "ZLINK_BLESS=1 renews {name}");
    }
}

#[test]
fn every_seed_keeps_the_bounds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for target in &TARGETS {
        assert!(
            replay(target, &root.join("seeds").join(target.name)) > 0,
            "{} has no seeds",
            target.name
        );
    }
}

/// Each seed cut short at every length, and with each byte changed: what a stranger tries first.
#[test]
fn seeds_that_are_cut_or_changed_keep_the_bounds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for target in TARGETS.iter().filter(|target| target.name != "schema") {
        for file in fs::read_dir(root.join(target.name)).expect("seeds") {
            let seed = fs::read(file.expect("a folder can be read").path()).expect("a seed can be read");
            for at in 0..seed.len().min(1024) {
                target.run(&seed[..at]);
                for value in [0, 1, 0x7f, 0xff, !seed[at]] {
                    let mut changed = seed.clone();
                    changed[at] = value;
                    target.run(&changed);
                }
            }
        }
    }
}
