//! `init`: a new project that builds, runs, and passes its test.
//!
//! The project is in the templates beside this file. It must not know the schema language or what is generated.

mod name;
mod origin;
mod place;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Console, FINE, Format, TROUBLE, number};
use crate::output::Tree;
use name::Name;
use origin::Origin;

/// The files, and where they go.
const TEMPLATES: &[(&str, &str)] = &[
    (".gitignore", include_str!("init/gitignore.in")),
    ("Cargo.toml", include_str!("init/Cargo.toml.in")),
    ("README.md", include_str!("init/README.md.in")),
    ("build.rs", include_str!("init/build.rs.in")),
    ("schemas/{{namespace}}.yaml", include_str!("init/schema.yaml.in")),
    ("src/lib.rs", include_str!("init/lib.rs.in")),
    ("src/main.rs", include_str!("init/main.rs.in")),
    ("tests/cluster.rs", include_str!("init/cluster.rs.in")),
];

/// What the command line asks for.
pub(super) struct Request {
    pub(super) dir: PathBuf,
    pub(super) name: Option<String>,
    pub(super) runtime_path: Option<PathBuf>,
    pub(super) format: Format,
}

/// Why there is no project, and what to do about it.
#[derive(Debug)]
struct Refused {
    message: String,
    help: String,
}

impl Refused {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        let (message, help) = (message.into(), help.into());
        Self { message, help }
    }
}

/// A project that was written.
struct Created {
    name: Name,
    origin: Origin,
    files: Vec<String>,
    /// The manifest of a workspace that the project lies in.
    workspace: Option<PathBuf>,
}

pub(super) fn run(request: &Request, console: &mut Console<'_>) -> u8 {
    match (create(request), request.format) {
        (Ok(created), Format::Human) => {
            created.tell(&request.dir, console);
            FINE
        }
        (Ok(created), Format::Json) => created.write(&request.dir, console),
        (Err(refused), Format::Human) => {
            console.say(format_args!("error: {}\nhelp: {}", refused.message, refused.help));
            TROUBLE
        }
        (Err(refused), Format::Json) => {
            // The exit code is the same whether or not this can be written.
            let _ = writeln!(
                console.out,
                "{:#}",
                json!({ "error": refused.message, "help": refused.help })
            );
            TROUBLE
        }
    }
}

/// All that can be refused is refused before anything is written.
fn create(request: &Request) -> Result<Created, Refused> {
    let name = match &request.name {
        Some(name) => Name::new(name)?,
        None => Name::of_folder(&request.dir)?,
    };
    let origin = Origin::find(request.runtime_path.as_deref())?;
    place::check(&request.dir)?;
    let tree = project(&name, &origin)?;
    place::write(&tree, &request.dir)?;
    Ok(Created {
        name,
        origin,
        files: tree.iter().map(|(path, _)| path.to_owned()).collect(),
        workspace: place::workspace(&request.dir),
    })
}

fn project(name: &Name, origin: &Origin) -> Result<Tree, Refused> {
    let namespace = name.namespace();
    let (camel, upper) = (crate::name::camel(&namespace), crate::name::upper(&namespace));
    let (runtime, codegen) = (origin.of("zlink-runtime"), origin.of("zlink-codegen"));
    let values = [
        ("name", name.as_str()),
        ("namespace", &namespace),
        ("camel", &camel),
        ("upper", &upper),
        ("rust", env!("CARGO_PKG_RUST_VERSION")),
        ("note", origin.note()),
        ("runtime", &runtime),
        ("codegen", &codegen),
    ];
    let mut tree = Tree::default();
    for (path, template) in TEMPLATES {
        tree.add(render(path, &values), render(template, &values))
            .map_err(|refused| Refused::new(refused.to_string(), "this is a bug of zlink-codegen"))?;
    }
    Ok(tree)
}

/// `template` with every `{{key}}` replaced, in one pass: a value is never read again. An unknown key stays.
fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, inside)) = rest.split_once("{{") {
        text.push_str(before);
        let known = inside
            .split_once("}}")
            .and_then(|(key, after)| Some((values.iter().find(|(name, _)| *name == key)?.1, after)));
        let (value, after) = known.unwrap_or(("{{", inside));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

impl Created {
    fn tell(&self, dir: &Path, console: &mut Console<'_>) {
        let (name, files) = (self.name.as_str(), number(self.files.len(), "file"));
        console.say(format_args!(
            "created the project `{name}`: {files} in {}",
            dir.display()
        ));
        if let Some(workspace) = &self.workspace {
            console.say(format_args!(
                "note: {} is a workspace: add the folder to its `members`, or to its `exclude`, unless it is there",
                workspace.display()
            ));
        }
        if let Some(warning) = self.origin.warning() {
            console.say(format_args!("warning: {warning}"));
        }
        console.say(format_args!("next:"));
        for (command, what) in self.next(dir) {
            console.say(format_args!("  {}", format!("{command:<12}{what}").trim_end()));
        }
    }

    fn write(&self, dir: &Path, console: &mut Console<'_>) -> u8 {
        let next: Vec<_> = self.next(dir).into_iter().map(|(command, _)| command).collect();
        let created = json!({
            "dir": dir.to_string_lossy(),
            "name": self.name.as_str(),
            "namespace": self.name.namespace(),
            "files": self.files,
            "zlink": self.origin.root().map_or(json!({ "version": origin::VERSION }), |root| json!({ "path": root })),
            "workspace": self.workspace.as_ref().map(|path| path.to_string_lossy()),
            "next": next,
        });
        if writeln!(console.out, "{created:#}").is_err() {
            TROUBLE
        } else {
            FINE
        }
    }

    /// The commands to go on with, and what they do.
    fn next(&self, dir: &Path) -> Vec<(String, &'static str)> {
        let mut next = Vec::new();
        if dir != Path::new(".") {
            next.push((format!("cd {}", quoted(&dir.to_string_lossy())), ""));
        }
        next.push((
            "cargo test".to_owned(),
            "  a server is killed, missed, and comes back, in virtual time",
        ));
        next.push((
            "cargo run".to_owned(),
            "  a node that serves and one that calls it, until Ctrl-C",
        ));
        next
    }
}

/// As a shell reads it back.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@,:=".contains(c);
    if path.chars().all(plain) && !path.starts_with('-') {
        path.to_owned()
    } else {
        let dashed = if path.starts_with('-') { "./" } else { "" };
        format!("'{dashed}{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_once_and_everything_else_stays() {
        let values = [("a", "{{b}}"), ("b", "2")];
        assert_eq!(render("x{{a}}y{{b}}{{c}}{{", &values), "x{{b}}y2{{c}}{{");
    }

    #[test]
    fn every_key_of_the_templates_has_a_value() {
        let name = Name::new("hello").expect("a name");
        let tree = project(&name, &Origin::Registry).expect("a project");
        assert_eq!(tree.iter().count(), TEMPLATES.len());
        for (path, content) in tree.iter() {
            let text = String::from_utf8_lossy(content);
            assert!(!path.contains("{{") && !text.contains("{{"), "{path}:\n{text}");
        }
    }

    #[test]
    fn a_shell_reads_a_path_as_it_is() {
        for (path, shown) in [
            ("../a_1/b.c", "../a_1/b.c"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("-a", "'./-a'"),
        ] {
            assert_eq!(quoted(path), shown);
        }
    }
}
