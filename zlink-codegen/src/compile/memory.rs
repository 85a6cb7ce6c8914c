//! Schemas from memory, for fuzzing: the whole front end, and no file.
//!
//! It must not know the file system.

use std::cell::Cell;
use std::io;
use std::path::Path;

use super::Program;
use super::program::Files;

/// One file under so many names, whatever they are; and for a lock, none.
struct One<'a>(&'a [u8], Cell<usize>);

/// Imports that are walked: what they bring counts as one input, whose bound on memory would mean nothing with more.
const NAMES: usize = 16;

impl Files for One<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let names = self.1.get();
        if names == 0 || path.to_string_lossy().ends_with(".lock.yaml") {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.1.set(names - 1);
        // Imports get the same text, so that the ways between files are walked too.
        Ok(self.0.to_vec())
    }
}

/// Two texts: a schema and its lock.
struct Two<'a>(&'a [u8], &'a [u8]);

impl Files for Two<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let lock = path.to_string_lossy().ends_with(".lock.yaml");
        Ok(if lock { self.1 } else { self.0 }.to_vec())
    }
}

/// Runs `bytes` through everything that reads a schema, rendering included, and tells whether it is one.
///
/// A schema is also written as a lock, which must read back as that contract; and `bytes` are read as a lock.
#[doc(hidden)]
#[must_use]
pub fn fuzz_load(bytes: &[u8]) -> bool {
    let one = One(bytes, Cell::new(NAMES));
    let mut program = Program::new(&one);
    let root = program.load(Path::new("fuzz.yaml"));
    let schema = root.and_then(|root| program.resolve(root));
    let mut lock = None;
    if let (Some(schema), Some(root)) = (&schema, root) {
        let checked = program.check_lock(schema, schema.namespaces.len() - 1, root, false);
        lock = checked.and_then(|checked| checked.accepted);
    }
    let findings = program.finish();
    let _ = findings.human(false);
    if let Some(lock) = lock {
        assert_eq!(
            again(bytes, lock.as_bytes()).as_deref(),
            Some(lock.as_str()),
            "a lock reads back as what was written"
        );
    }
    let _ = again(BASE, bytes);
    schema.is_some()
}

/// A schema for `bytes` to be the lock of.
const BASE: &[u8] = b"{ zlink: 1, namespace: a, version: 1, messages: { M: { fields: { x: { id: 0, type: u8 } } } } }";

/// The lock that would be accepted for a schema that has one already.
fn again(schema: &[u8], lock: &[u8]) -> Option<String> {
    let two = Two(schema, lock);
    let mut program = Program::new(&two);
    let root = program.load(Path::new("fuzz.yaml"))?;
    let schema = program.resolve(root)?;
    program
        .check_lock(&schema, schema.namespaces.len() - 1, root, true)?
        .accepted
}
