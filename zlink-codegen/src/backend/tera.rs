//! Templates: how a language whose files are text with holes in it gets from a context to that text.
//!
//! A language is a folder of templates, built into the program, and one module that makes their contexts from the IR:
//! whatever needs a decision (names, types, order, literals) is decided there, and a template only lays it out.
//! Whoever wants other text gives templates of their own, each in place of the one of its name. It must not know any
//! language, nor where templates of one's own come from.

use std::collections::BTreeMap;
use std::fmt;

use ::tera::{Context, ErrorKind, Tera};
use serde::Serialize;

use crate::output::Refused;

/// The templates that a language brings: the name of each, which ends in `.tera`, and its text.
pub type BuiltIn = &'static [(&'static str, &'static str)];

/// The templates of a folder: `templates!("python": "namespace.py", …)`, where `python/namespace.py.tera` is beside the
/// file that says so.
macro_rules! templates {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            concat!($name, ".tera"),
            include_str!(concat!($folder, "/", $name, ".tera")),
        )),+]
    };
}
pub(super) use templates;

/// A template of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its path below the folder, with `/`: where a built-in one has that name, this takes its place; others may include it.
    pub name: String,
    /// What errors call it.
    pub shown: String,
    /// Its text.
    pub text: String,
}

/// The templates of one language, ready to be filled in.
pub struct Templates {
    tera: Tera,
    /// What errors call a template of one's own.
    shown: BTreeMap<String, String>,
}

impl Templates {
    /// Takes the `built_in` ones, and those of one's `own` in their place or beside them.
    ///
    /// # Errors
    /// The first template that is none. Also where templates of one's own take the place of no built-in one, so that all
    /// of them would be for nothing.
    pub fn new(built_in: BuiltIn, own: &[Own]) -> Result<Self, Error> {
        let replaces = |own: &Own| built_in.iter().any(|(name, _)| *name == own.name);
        if let Some(first) = own.first()
            && !own.iter().any(replaces)
        {
            let names: Vec<_> = built_in.iter().map(|(name, _)| *name).collect();
            return Err(Error {
                place: Some((first.shown.clone(), None)),
                message: format!(
                    "takes the place of no template of this language; they are {}",
                    names.join(", ")
                ),
            });
        }
        let mut tera = Tera::new();
        // Files of programs, never HTML.
        tera.autoescape_on(Vec::<&str>::new());
        let shown: BTreeMap<String, String> = own.iter().map(|it| (it.name.clone(), it.shown.clone())).collect();
        let kept = built_in.iter().filter(|(name, _)| !shown.contains_key(*name)).copied();
        let all = kept.chain(own.iter().map(|it| (it.name.as_str(), it.text.as_str())));
        // All at once: a template may include one that comes later.
        match tera.add_raw_templates(all) {
            Ok(()) => Ok(Self { tera, shown }),
            Err(error) => Err(Error::of(&error, None, &shown)),
        }
    }

    /// The text that `template` gives with the fields of `context`.
    ///
    /// # Errors
    /// Where the template names what is not there, or does with it what cannot be done.
    pub fn render(&self, template: &str, context: &impl Serialize) -> Result<String, Error> {
        let rendered = Context::from_serialize(context).and_then(|context| self.tera.render(template, &context));
        rendered.map_err(|error| Error::of(&error, Some(template), &self.shown))
    }
}

/// Why templates give no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The template, its line and column from 1, as far as they are known.
    place: Option<(String, Option<(usize, usize)>)>,
    message: String,
}

impl Error {
    fn of(error: &::tera::Error, template: Option<&str>, shown: &BTreeMap<String, String>) -> Self {
        let named = |name: &str| shown.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let (place, message) = match error.kind() {
            ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
                let span = report.span();
                let place = (named(report.filename()), Some((span.start_line, span.start_col + 1)));
                (Some(place), report.message().to_owned())
            }
            ErrorKind::CircularExtend { tpl, .. } | ErrorKind::CircularInclude { tpl, .. } => {
                (Some((named(tpl), None)), error.to_string())
            }
            ErrorKind::MissingParent { current, .. } => (Some((named(current), None)), error.to_string()),
            _ => match reported(&error.to_string()) {
                Some((name, line, column, message)) => (Some((named(&name), Some((line, column)))), message),
                None => (template.map(|name| (named(name), None)), error.to_string()),
            },
        };
        Self { place, message }
    }
}

/// The place that is told only in the text of an error, as a report of several lines: `error: <message>`, and below
/// it `--> <template>:<line>:<column>`.
fn reported(text: &str) -> Option<(String, usize, usize, String)> {
    let mut lines = text.lines();
    let message = lines.next()?.trim_start_matches("error: ").to_owned();
    let place = lines.find_map(|line| line.trim_start().strip_prefix("--> "))?;
    let (rest, column) = place.rsplit_once(':')?;
    let (name, line) = rest.rsplit_once(':')?;
    Some((name.to_owned(), line.parse().ok()?, column.parse().ok()?, message))
}

/// A mistake of the generator: two of its files have one name.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self {
            place: None,
            message: refused.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((template, Some((line, column)))) => write!(f, "template {template}:{line}:{column}: ")?,
            Some((template, None)) => write!(f, "template {template}: ")?,
            None => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
