//! `breaking`: what a change of schemas breaks, and for whom.
//!
//! It must not know single rules. A raised contract version makes a change legal, not harmless: it is no excuse here.

mod git;

use std::path::{Path, PathBuf};

use super::{Console, Format, TROUBLE, number, paths};
use crate::compile::{Disk, Program, Version};
use crate::diagnostic::{Code, Diagnostics, Level, Severity};
use git::Git;

/// What is compared with what.
pub(super) struct Request {
    /// OLD and NEW; or, with `against`, the schemas.
    pub(super) paths: Vec<PathBuf>,
    pub(super) against: Option<Against>,
    /// Whether a change that only code must follow counts.
    pub(super) source: bool,
    pub(super) format: Format,
}

/// The version that schemas are compared with.
#[derive(Clone, Debug)]
pub(super) enum Against {
    Lock,
    Git(String),
}

impl std::str::FromStr for Against {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "lock" => Ok(Against::Lock),
            Some(("git", revision)) if !revision.is_empty() => Ok(Against::Git(revision.to_owned())),
            _ => Err("write `lock`, or `git:REV` with a commit, branch or tag".to_owned()),
        }
    }
}

pub(super) fn run(request: &Request, console: &mut Console<'_>) -> u8 {
    let compared = match (&request.against, request.paths.as_slice()) {
        (Some(Against::Lock), paths) => Ok(with_locks(paths)),
        (Some(Against::Git(revision)), paths) => with_revision(revision, paths),
        (None, [old, new]) => Ok(with_each_other(old, new)),
        (None, _) => Err("say what to compare: OLD NEW, or --against git:REV or --against lock and schemas".to_owned()),
    };
    let (mut findings, count) = match compared {
        Ok(compared) => compared,
        Err(error) => {
            console.say(format_args!("error: {error}"));
            return TROUBLE;
        }
    };
    // What is odd about either version is not the question.
    findings
        .items
        .retain(|item| item.severity == Severity::Error || item.code.level().is_some() || item.code == Code::NoLock);
    for item in &mut findings.items {
        item.severity = match item.code.level() {
            Some(Level::Source) if !request.source && item.code.severity() == Severity::Note => Severity::Note,
            _ => Severity::Error,
        };
    }
    let code = console.show(&findings, request.format);
    if request.format == Format::Human {
        let of = |level| {
            findings
                .items
                .iter()
                .filter(|item| item.code.level() == Some(level))
                .count()
        };
        let (wire, state, source) = (of(Level::Wire), of(Level::State), of(Level::Source));
        console.say(format_args!(
            "compared {}: {} of WIRE, {state} of STATE, {source} of SOURCE",
            number(count, "namespace"),
            number(wire, "change"),
        ));
    }
    code
}

/// The findings, and how many namespaces were compared.
type Compared = (Diagnostics, usize);

fn with_locks(args: &[PathBuf]) -> Compared {
    let mut program = Program::new(&Disk);
    let mut count = 0;
    for path in paths::schemas(args, &mut program) {
        let Some(root) = program.load(&path) else { continue };
        let Some(schema) = program.resolve(root) else { continue };
        for (namespace, file) in program.closure(root).into_iter().enumerate() {
            program.check_lock(&schema, namespace, file, false);
            count += 1;
        }
    }
    (program.finish(), count)
}

/// Where in a version a file stands.
type Way<'w> = &'w dyn Fn(&Path) -> PathBuf;

fn with_each_other(old: &Path, new: &Path) -> Compared {
    let below = |base: &Path, path: &Path| path.strip_prefix(base).unwrap_or(path).to_owned();
    let mut program = Program::new(&Disk);
    let files = paths::schemas(&[old.to_owned()], &mut program);
    compare(program, &files, &|path| below(old, path), &[new.to_owned()], &|path| {
        below(new, path)
    })
}

fn with_revision(revision: &str, args: &[PathBuf]) -> Result<Compared, String> {
    let git = Git::open(revision, args.first().ok_or("no schema is named")?)?;
    let mut files = Vec::new();
    for path in args {
        files.extend(git.schemas(path)?);
    }
    if files.is_empty() {
        return Err(format!("there is no schema at these paths in `{revision}`"));
    }
    let way: Way<'_> = &|path| git.inside(path).map_or_else(|_| path.to_owned(), PathBuf::from);
    Ok(compare(Program::new(&git), &files, way, args, way))
}

fn compare(mut program: Program<'_>, files: &[PathBuf], was: Way<'_>, args: &[PathBuf], is: Way<'_>) -> Compared {
    let (mut old, mut new) = (Version::default(), Version::default());
    for path in files {
        old.add(&mut program, path, was);
    }
    let (loaded, mut program) = program.then(&Disk);
    for path in paths::schemas(args, &mut program) {
        new.add(&mut program, &path, is);
    }
    old.compare(&loaded, &new, &mut program);
    (program.finish(), old.len())
}
