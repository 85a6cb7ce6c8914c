//! The files of a run: each read and parsed once, imports followed.
//!
//! It must not know what declarations mean.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Sink};
use crate::ir;
use crate::lint;
use crate::load::{self, Node};
use crate::resolve::{self, Import, Unit};
use crate::source::{FileId, Sources, Span};
use crate::syntax::{self, File, Name};

/// Files that one schema may bring in, itself included.
const MAX_FILES: usize = 256;

/// Bytes of an import.
const MAX_PATH: usize = 1024;

/// Where files come from.
pub(crate) trait Files {
    /// The bytes of a file, bounded as [`load::read_file`] does.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The path as findings show it.
    fn shown(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The file system.
pub(crate) struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        load::read_file(path)
    }
}

/// A file that is YAML.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) id: FileId,
    pub(crate) tree: Node,
    pub(crate) file: File,
    /// For each import as written, the file; nothing where it has none.
    imports: Vec<Option<usize>>,
    /// Whether all of the file, and of what it imports, is right so far.
    good: bool,
}

#[derive(Clone, Copy)]
enum State {
    /// Its imports are being followed.
    Open,
    /// It cannot be read or is no YAML, which has been reported.
    Broken,
    Loaded(usize),
}

/// All files of a run and what was found in them.
pub(crate) struct Program<'f> {
    files: &'f dyn Files,
    pub(crate) sources: Sources,
    pub(crate) sink: Sink,
    loaded: Vec<Loaded>,
    states: HashMap<PathBuf, State>,
    /// Each path that was asked for, in order.
    read: Vec<PathBuf>,
    /// How many more files the schema at hand may bring in.
    room: usize,
    pub(super) held: Held,
}

/// What the files so far declare, with its namespace, that a stored value of what their locks say is not read back as.
#[derive(Default)]
pub(super) struct Held {
    /// The files that were looked at.
    pub(super) seen: HashSet<usize>,
    pub(super) changed: HashSet<String>,
}

impl<'f> Program<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Self {
        Self {
            files,
            sources: Sources::default(),
            sink: Sink::default(),
            loaded: Vec::new(),
            states: HashMap::new(),
            read: Vec::new(),
            room: 0,
            held: Held::default(),
        }
    }

    #[cfg(feature = "cli")]
    /// Ends this run and begins one with other files, whose findings join those of this one.
    pub(crate) fn then<'n>(self, files: &'n dyn Files) -> (Vec<Loaded>, Program<'n>) {
        let next = Program {
            sources: self.sources,
            sink: self.sink,
            ..Program::new(files)
        };
        (self.loaded, next)
    }

    /// Loads a schema and what it imports.
    pub(crate) fn load(&mut self, path: &Path) -> Option<usize> {
        self.room = MAX_FILES;
        let path = normal(path);
        match self.states.get(&path) {
            Some(State::Loaded(at)) => Some(*at),
            Some(_) => None,
            None => match self.read(&path) {
                Ok(bytes) => self.open(path, bytes),
                Err(error) => {
                    self.unreadable(&path, &format!("the file cannot be read: {error}"));
                    self.states.insert(path, State::Broken);
                    None
                }
            },
        }
    }

    /// Reports what a caller asked for and the file system refuses.
    pub(crate) fn unreadable(&mut self, path: &Path, message: &str) {
        let file = self.sources.add(self.files.shown(path), "");
        self.sink
            .report(Diagnostic::new(Code::Unreadable, Sources::top(file), message));
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Loaded> {
        self.loaded.get(at)
    }

    /// Each path that was read or tried, in order.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.read
    }

    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.read.push(path.to_owned());
        self.files.read(path)
    }

    /// The same for a lock, whose absence is not an error.
    pub(super) fn read_lock(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn open(&mut self, path: PathBuf, bytes: Vec<u8>) -> Option<usize> {
        self.states.insert(path.clone(), State::Open);
        let before = self.sink.errors();
        let (id, result) = load::to_text(&mut self.sources, &self.files.shown(&path), bytes);
        let tree = match result {
            Ok(()) => self
                .sources
                .get(id)
                .and_then(|source| load::parse(id, source, &mut self.sink)),
            Err(item) => {
                self.sink.report(item);
                None
            }
        };
        let file = match (&tree, self.sources.get(id)) {
            (Some(tree), Some(source)) => Some(syntax::lower(tree, source, &mut self.sink)),
            _ => None,
        };
        let (Some(tree), Some(mut file)) = (tree, file) else {
            self.states.insert(path, State::Broken);
            return None;
        };
        if file.imports.len() >= MAX_FILES {
            self.too_many(
                file.imports
                    .get(MAX_FILES - 1)
                    .map_or(Sources::top(id), |import| import.span),
            );
            file.imports.truncate(MAX_FILES - 1);
        }
        let imports: Vec<Option<usize>> = file.imports.iter().map(|import| self.import(&path, import)).collect();
        self.twice(&file.imports, &imports);
        let parts = imports
            .iter()
            .all(|import| import.and_then(|at| self.loaded.get(at)).is_some_and(|it| it.good));
        let good = parts && self.sink.errors() == before;
        let at = self.loaded.len();
        self.loaded.push(Loaded {
            path: path.clone(),
            id,
            tree,
            file,
            imports,
            good,
        });
        self.states.insert(path, State::Loaded(at));
        Some(at)
    }

    fn import(&mut self, from: &Path, import: &Name) -> Option<usize> {
        let written = Path::new(&import.value);
        let relative = written.is_relative() && !import.value.contains('\\') && import.value.len() <= MAX_PATH;
        if !relative || !is_schema(written) {
            let item = Diagnostic::new(
                Code::ImportPath,
                import.span,
                "an import is a relative path to a schema, with `/` and `.yaml`",
            );
            self.sink
                .report(item.help("write `common.yaml` or `../shared/common.yaml`"));
            return None;
        }
        let path = normal(&from.parent().unwrap_or(Path::new("")).join(written));
        match self.states.get(&path) {
            Some(State::Loaded(at)) => return Some(*at),
            Some(State::Broken) => return None,
            Some(State::Open) => {
                let item = Diagnostic::new(
                    Code::ImportCycle,
                    import.span,
                    format!("`{}` imports this file, directly or through others", path.display()),
                );
                self.sink
                    .report(item.help("move what both need into a third file that both import"));
                return None;
            }
            None => {}
        }
        if self.room <= 1 {
            self.too_many(import.span);
            return None;
        }
        self.room -= 1;
        match self.read(&path) {
            Ok(bytes) => self.open(path, bytes),
            Err(error) => {
                // No state: each import of it is told, at its own place.
                let item = Diagnostic::new(
                    if leads_nowhere(&error) {
                        Code::ImportUnreadable
                    } else {
                        Code::Unreadable
                    },
                    import.span,
                    format!("`{}` cannot be read: {error}", path.display()),
                );
                self.sink
                    .report(item.help("an import is relative to the file it stands in"));
                None
            }
        }
    }

    fn too_many(&mut self, span: Span) {
        let message = format!("a schema brings in at most {MAX_FILES} files");
        self.sink.report(Diagnostic::new(Code::TooManyFiles, span, message));
    }

    fn twice(&mut self, written: &[Name], imports: &[Option<usize>]) {
        let mut seen = HashMap::new();
        for (name, import) in written.iter().zip(imports) {
            let Some(import) = import else { continue };
            if let Some(first) = seen.insert(*import, name.span) {
                let item = Diagnostic::new(
                    Code::ImportTwice,
                    name.span,
                    format!("`{}` is imported already", name.value),
                );
                self.sink.report(
                    item.label("again here")
                        .at(first, "first here")
                        .help("remove one of them"),
                );
            }
        }
    }

    /// The files a schema consists of: each after the ones it imports, the root last.
    pub(crate) fn closure(&self, root: usize) -> Vec<usize> {
        // Files are stored after what they import, so their numbers are in that order already.
        let mut wanted = vec![false; self.loaded.len()];
        if let Some(flag) = wanted.get_mut(root) {
            *flag = true;
        }
        for at in (0..=root).rev() {
            if wanted.get(at) != Some(&true) {
                continue;
            }
            for import in self
                .loaded
                .get(at)
                .into_iter()
                .flat_map(|it| it.imports.iter().flatten())
            {
                if let Some(flag) = wanted.get_mut(*import) {
                    *flag = true;
                }
            }
        }
        wanted
            .iter()
            .enumerate()
            .filter(|(_, wanted)| **wanted)
            .map(|(at, _)| at)
            .collect()
    }

    /// What a schema means, where nothing in it is wrong. Mistakes are reported in any case.
    pub(crate) fn resolve(&mut self, root: usize) -> Option<ir::Schema> {
        let closure = self.closure(root);
        let unit_of: HashMap<usize, usize> = closure.iter().enumerate().map(|(unit, at)| (*at, unit)).collect();
        let mut units = Vec::with_capacity(closure.len());
        for at in &closure {
            let loaded = self.loaded.get(*at)?;
            let imports = loaded.file.imports.iter().zip(&loaded.imports);
            let imports = imports.map(|(written, at)| Import {
                written,
                unit: at.and_then(|at| unit_of.get(&at).copied()),
            });
            units.push(Unit {
                file: &loaded.file,
                imports: imports.collect(),
            });
        }
        let before = self.sink.errors();
        let schema = resolve::resolve(&units, &mut self.sink);
        let good = self.loaded.get(root).is_some_and(|it| it.good);
        if !good || self.sink.errors() > before {
            return None;
        }
        // What is odd only matters once nothing is wrong.
        for unit in &units {
            let name = |import: &Import<'_>| {
                units
                    .get(import.unit?)?
                    .file
                    .namespace
                    .as_ref()
                    .map(|name| name.value.as_str())
            };
            let imports: Vec<_> = unit.imports.iter().map(|import| (import, name(import))).collect();
            lint::lint(unit.file, &imports, &mut self.sink);
        }
        Some(schema)
    }

    /// Ends the run.
    pub(crate) fn finish(self) -> Diagnostics {
        self.sink.finish(self.sources)
    }
}

/// Whether there is no such file, so that the path is wrong, and not the file system.
fn leads_nowhere(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(
        error.kind(),
        NotFound | NotADirectory | IsADirectory | InvalidInput | InvalidFilename
    )
}

/// Whether a path has the name of a schema: `.yaml`, and not a lock.
pub(crate) fn is_schema(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.ends_with(".yaml") && !name.ends_with(".lock.yaml")
}

/// The path without `.` and, as far as its text tells, without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            _ => normal.push(part),
        }
    }
    normal
}
