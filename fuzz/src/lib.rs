//! What is fuzzed, and the bounds that every input must keep: no panic, memory in proportion to the input, no hang.
//!
//! It must not know an engine: `targets/` has one line each for libFuzzer, and the tests replay the seeds.

mod link;
mod memory;

use std::time::{Duration, Instant};

use zlink_generated::test_every_type::All;
use zlink_runtime::rt;

/// One thing that reads what strangers write.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of its folder of seeds.
    pub name: &'static str,
    read: fn(&[u8]),
    /// How many bytes an input may make it allocate, all in all: so many for each of its own, and so many more.
    memory: (usize, usize),
}

/// Records: heads, names, blocks, and the service messages in them.
pub const RECORD: Target = Target {
    name: "record",
    read: zlink_runtime::fuzz::record,
    memory: (256, 64 << 10),
};
/// A FlatBuffers message with every type there is.
pub const CODEC: Target = Target {
    name: "codec",
    read: codec,
    memory: (2048, 64 << 10),
};
/// What a connection brings: greeting, handshake, frames, joined records.
pub const LINK: Target = Target {
    name: "link",
    read: link::read,
    memory: (256, 256 << 10),
};
/// A schema in YAML, its lock, and their findings as text.
pub const SCHEMA: Target = Target {
    name: "schema",
    read: schema_text,
    memory: (16 << 10, 4 << 20),
};

/// All of them.
pub const TARGETS: [Target; 4] = [RECORD, CODEC, LINK, SCHEMA];

/// How long one input may take on a busy machine: far more than any needs, far less than a hang.
const PATIENCE: Duration = Duration::from_secs(10);

impl Target {
    /// Reads one input and holds it to the bounds.
    ///
    /// # Panics
    /// Where it breaks one.
    pub fn run(&self, input: &[u8]) {
        let begin = Instant::now();
        let allocated = memory::allocated_by(|| (self.read)(input));
        let (each, more) = self.memory;
        let most = input.len() * each + more;
        assert!(
            allocated <= most,
            "{} bytes of {} made it allocate {allocated}, over {most}",
            input.len(),
            self.name
        );
        assert!(
            begin.elapsed() < PATIENCE,
            "{} bytes of {} took {:?}",
            input.len(),
            self.name,
            begin.elapsed()
        );
    }
}

/// What decodes is encoded again, unless an unknown union member forbids it, and then decodes to the same bytes.
fn codec(input: &[u8]) {
    let Ok(value) = rt::decode::<All>(input) else { return };
    let Ok(first) = rt::encode(&value, <[u8]>::to_vec) else {
        return;
    };
    let again = rt::decode::<All>(&first).expect("what was encoded decodes");
    let second = rt::encode(&again, <[u8]>::to_vec).expect("what was decoded from our own bytes encodes");
    assert_eq!(first, second, "a message changes on its way");
}

fn schema_text(input: &[u8]) {
    // Whether it is a schema is for others to test.
    let _ = zlink_codegen::fuzz_load(input);
}
