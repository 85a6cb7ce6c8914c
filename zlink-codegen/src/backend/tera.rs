//! Templates: how a language whose files are text with holes in it gets from a context to that text.
//!
//! A language is one folder of templates, `templates/<language>` beside `src`, built into the program, and one module,
//! `backend::<language>`, that makes their contexts from the IR: whatever needs a decision (names, types, order,
//! literals) is decided there, and a template only lays it out. Every file that is written is a template, those
//! without a hole among them: whoever wants other text gives templates of their own, each in place of the one of its
//! name. It must not know any language, nor where templates of one's own come from.

mod error;

use ::tera::{Context, Tera};
use serde::Serialize;

pub use self::error::Error;
use self::error::{Source, Sources};
use crate::output::Tree;

/// What the name of a template ends in.
pub const SUFFIX: &str = ".tera";

/// The templates that a language brings: the name of each, which ends in `.tera`, and its text.
pub type BuiltIn = &'static [(&'static str, &'static str)];

/// The templates of a folder: `templates!("python": "namespace.py", …)` is `templates/python/namespace.py.tera`, ….
macro_rules! templates {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            concat!($name, ".tera"),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $folder, "/", $name, ".tera")),
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
    sources: Sources,
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
            return Err(Error::useless(&first.shown, &names.join(", ")));
        }
        let mut tera = Tera::new();
        // Files of programs, never HTML.
        tera.autoescape_on(Vec::<&str>::new());
        let built_in = built_in
            .iter()
            .map(|&(name, text)| (name.to_owned(), Source::of(name, text)));
        let own = own.iter().map(|it| (it.name.clone(), Source::of(&it.shown, &it.text)));
        let sources = Sources(built_in.chain(own).collect());
        let all = sources.0.iter().map(|(name, it)| (name.as_str(), it.text.as_str()));
        // All at once: a template may include one that comes later.
        match tera.add_raw_templates(all) {
            Ok(()) => Ok(Self { tera, sources }),
            Err(error) => Err(Error::of(&error, None, &sources)),
        }
    }

    /// The text that `template` gives with the fields of `context`.
    ///
    /// # Errors
    /// Where the template names what is not there, or does with it what cannot be done.
    pub fn render(&self, template: &str, context: &impl Serialize) -> Result<String, Error> {
        let context =
            Context::from_serialize(context).map_err(|error| Error::of(&error, Some(template), &self.sources))?;
        self.filled(template, &context)
    }

    /// The text of a `template` that says it all itself.
    ///
    /// # Errors
    /// As for [`render`](Self::render).
    pub fn text(&self, template: &str) -> Result<String, Error> {
        self.filled(template, &Context::new())
    }

    /// Adds the file of a template that says it all itself to `tree`, under the template's name.
    ///
    /// # Errors
    /// As for [`render`](Self::render).
    pub fn file(&self, path: &str, tree: &mut Tree) -> Result<(), Error> {
        tree.add(path, self.text(&format!("{path}{SUFFIX}"))?)?;
        Ok(())
    }

    /// Adds every [`file`](Self::file) of `folder`: the `built_in` templates that lie in it. What lies deeper is a part
    /// of one of them.
    ///
    /// # Errors
    /// As for [`render`](Self::render).
    pub fn folder(&self, folder: &str, built_in: BuiltIn, tree: &mut Tree) -> Result<(), Error> {
        for (template, _) in built_in {
            let within = template.rsplit_once('/').is_some_and(|(within, _)| within == folder);
            if let Some(path) = template.strip_suffix(SUFFIX).filter(|_| within) {
                self.file(path, tree)?;
            }
        }
        Ok(())
    }

    fn filled(&self, template: &str, context: &Context) -> Result<String, Error> {
        let rendered = self.tera.render(template, context);
        rendered.map_err(|error| Error::of(&error, Some(template), &self.sources))
    }
}

#[cfg(test)]
mod tests;
