//! The `zlink-codegen` command: arguments, output, exit codes.
//!
//! It must not know how a phase does its work.

mod accept;
mod breaking;
mod check;
mod explain;
mod fmt;
mod generate;
mod init;
mod paths;
mod schema;
mod templates;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::diagnostic::{Code, Diagnostics, Severity};

/// Nothing is wrong.
const FINE: u8 = 0;
/// Something is wrong with a schema.
const FINDINGS: u8 = 1;
/// The command line, a file, or this program is wrong.
const TROUBLE: u8 = 2;

/// Compiles zlink schemas, and creates projects.
///
/// Exit codes: 0, fine; 1, findings; 2, usage, I/O, or a bug of zlink-codegen.
#[derive(Parser)]
#[command(name = "zlink-codegen", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks schemas, and compares each with its lock file, where it has one.
    ///
    /// Shows all that is wrong with any of them. Writes nothing.
    Check {
        /// Schemas, or folders: every `*.yaml` below one that is not a lock.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Fail where a lock file is missing or not up to date.
        #[arg(long)]
        locked: bool,
        /// How findings are shown: human, on stderr; json, on stdout.
        #[arg(long, value_enum, default_value_t = Format::Human)]
        format: Format,
    },
    /// Generates code or documentation: a file per namespace, imports included.
    ///
    /// Writes nothing while anything is wrong with a schema, and no file that would stay as it is. In a Rust package,
    /// `zlink_codegen::compile` in build.rs does this by itself.
    Generate {
        /// Schemas, or folders: every `*.yaml` below one that is not a lock.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// The language: `rust`, `python`, `typescript`, or `fbs` for the schema language of flatc; `docs` for Markdown
        /// with an index, `mermaid` or `dot` for the picture of who calls whom alone.
        #[arg(long, value_enum)]
        lang: Lang,
        /// The folder for the files; it is made where there is none.
        #[arg(long)]
        out: PathBuf,
        /// With `--lang rust`: the path of the runtime, as the generated code names it.
        #[arg(long, default_value = "::zlink_runtime::rt")]
        runtime: String,
        /// A folder of templates of your own, `*.tera`: each takes the place of the built-in one of its path there, and
        /// all others stay as they are. Every file of a language has one. Not for `rust`, which has none.
        #[arg(long, value_name = "DIR")]
        templates: Option<PathBuf>,
    },
    /// Makes the schemas as they are the contract: writes their lock files.
    ///
    /// `shop.yaml` gets `shop.lock.yaml` beside it. Keep it in version control: later schemas are compared with it.
    /// What no version may do is refused, and then the lock stays as it was.
    Accept {
        /// Schemas, or folders: every `*.yaml` below one that is not a lock.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Tells what a change breaks: code (SOURCE), programs that were built before (WIRE), stored state (STATE).
    ///
    /// Compares two versions, or schemas with what they were. Each difference has a rule of its own, ZLnnnn, which
    /// `explain` explains. A change of WIRE or STATE makes exit code 1, whatever the version of the contract says.
    Breaking {
        /// OLD and NEW, each a schema or a folder; with `--against`, schemas or folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Compare with `git:REV`, a commit, branch or tag, or with `lock`, the lock files.
        #[arg(long, value_name = "git:REV|lock")]
        against: Option<breaking::Against>,
        /// Fail for a change of SOURCE, too.
        #[arg(long)]
        source: bool,
        /// How findings are shown: human, on stderr; json, on stdout.
        #[arg(long, value_enum, default_value_t = Format::Human)]
        format: Format,
    },
    /// Brings schemas into the one form, comments kept.
    ///
    /// The order of the file stays, and so does what is aligned.
    Fmt {
        /// Schemas, or folders: every `*.yaml` below one that is not a lock.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Give each field that has no id the one its lock file knows, or else the lowest that is free.
        #[arg(long)]
        assign_ids: bool,
        /// Write nothing; name the files that would change, and fail where there are any.
        #[arg(long)]
        check: bool,
    },
    /// Explains a code of a finding or rule: what it means, why it is so, an example, and what to do.
    Explain {
        /// The code, `ZL0401` or `0401`.
        code: String,
    },
    /// Prints the JSON Schema of the schema language, with which an editor completes and checks.
    Schema,
    /// Creates a project: a schema, a program that serves and calls, and a test on a cluster.
    Init {
        /// The folder: a new one, or one that holds nothing but `.git`.
        dir: PathBuf,
        /// The name of the crate and, with `_` for `-`, of the namespace. Without it, the folder's.
        #[arg(long)]
        name: Option<String>,
        /// Take zlink from here: a checkout of it, or `zlink-runtime` in one. Without it, the checkout that this
        /// command was built in, while it is there; else the version on crates.io.
        #[arg(long, value_name = "PATH")]
        runtime_path: Option<PathBuf>,
        /// How the outcome is shown: human, on stderr; json, on stdout.
        #[arg(long, value_enum, default_value_t = Format::Human)]
        format: Format,
    },
}

/// How findings are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// What is generated.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lang {
    Rust,
    Fbs,
    Python,
    Typescript,
    Docs,
    Mermaid,
    Dot,
}

/// Where output goes.
struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    colour: bool,
}

impl Console<'_> {
    /// A line for people. One that cannot be written is lost: the exit code still tells.
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Shows the findings and tells how the command ends, as far as they are concerned.
    fn show(&mut self, findings: &Diagnostics, format: Format) -> u8 {
        let written = match format {
            Format::Human => self.err.write_all(findings.human(self.colour).as_bytes()),
            Format::Json => writeln!(self.out, "{}", findings.json()),
        };
        if written.is_err() || findings.items.iter().any(|item| item.code == Code::Unreadable) {
            TROUBLE
        } else if findings.has_errors() {
            FINDINGS
        } else {
            FINE
        }
    }

    /// What was done, with the number of findings.
    fn summary(&mut self, done: &str, findings: &Diagnostics) {
        let count = |severity| findings.items.iter().filter(|item| item.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        self.say(format_args!(
            "{done}: {}, {}",
            number(errors, "error"),
            number(warnings, "warning")
        ));
    }
}

fn number(count: usize, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

/// Runs the command on the process's own arguments and streams; returns its exit code.
#[must_use]
pub fn main() -> u8 {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let colour = err.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        colour,
    };
    let run = std::panic::AssertUnwindSafe(|| start(std::env::args_os(), &mut console));
    // The panic has been printed; what is left is the documented exit code.
    std::panic::catch_unwind(run).unwrap_or(TROUBLE)
}

/// Runs the command on `args`, the name of the program first, without colours; returns its exit code.
pub fn run<A: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = A>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    start(
        args,
        &mut Console {
            out,
            err,
            colour: false,
        },
    )
}

fn start<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>, console: &mut Console<'_>) -> u8 {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            let text = if console.colour {
                error.render().ansi().to_string()
            } else {
                error.render().to_string()
            };
            let stream = if error.use_stderr() {
                &mut *console.err
            } else {
                &mut *console.out
            };
            let written = stream.write_all(text.as_bytes());
            return if error.use_stderr() || written.is_err() {
                TROUBLE
            } else {
                FINE
            };
        }
    };
    match args.command {
        Command::Check { paths, locked, format } => check::run(&paths, locked, format, console),
        Command::Generate {
            paths,
            lang,
            out,
            runtime,
            templates,
        } => {
            let request = generate::Request {
                paths,
                lang,
                out,
                runtime,
                templates,
            };
            generate::run(request, console)
        }
        Command::Accept { paths } => accept::run(&paths, console),
        Command::Breaking {
            paths,
            against,
            source,
            format,
        } => {
            let request = breaking::Request {
                paths,
                against,
                source,
                format,
            };
            breaking::run(&request, console)
        }
        Command::Fmt {
            paths,
            assign_ids,
            check,
        } => fmt::run(&paths, assign_ids, check, console),
        Command::Schema => schema::run(console),
        Command::Explain { code } => explain::run(&code, console),
        Command::Init {
            dir,
            name,
            runtime_path,
            format,
        } => {
            let request = init::Request {
                dir,
                name,
                runtime_path,
                format,
            };
            init::run(&request, console)
        }
    }
}
