//! Where the project takes zlink from: folders of a checkout, or crates.io.
//!
//! It must not know what the project is called or where it goes.

use std::path::{Path, PathBuf};

use super::Refused;

/// What crates.io will have.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the crates are.
#[derive(Debug)]
pub(super) enum Origin {
    /// In this checkout, as text: a manifest can say nothing else.
    Checkout(String),
    Registry,
}

impl Origin {
    /// The checkout that was given; else the one that this command was built in, while it is there; else crates.io.
    pub(super) fn find(given: Option<&Path>) -> Result<Self, Refused> {
        if let Some(given) = given {
            let root = checkout(given).ok_or_else(|| {
                Refused::new(
                    format!("there is no zlink in {}", given.display()),
                    "--runtime-path takes a checkout of zlink, or the folder zlink-runtime in it",
                )
            })?;
            return root.into_os_string().into_string().map(Self::Checkout).map_err(|root| {
                Refused::new(
                    format!("{} is not UTF-8, and a Cargo.toml must be", root.display()),
                    "give --runtime-path another name for it: a link will do",
                )
            });
        }
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(checkout);
        // Cargo marks the copies it makes for itself, and removes them when it likes.
        let lasting = built_in.filter(|root| !root.join(".cargo-ok").exists());
        Ok(lasting
            .and_then(|root| root.into_os_string().into_string().ok())
            .map_or(Self::Registry, Self::Checkout))
    }

    /// The folder, where it is one.
    pub(super) fn root(&self) -> Option<&str> {
        match self {
            Self::Checkout(root) => Some(root),
            Self::Registry => None,
        }
    }

    /// One of the crates, as the inside of a table of Cargo.toml.
    pub(super) fn of(&self, name: &str) -> String {
        match self {
            Self::Checkout(root) => format!("path = {}", toml(&format!("{root}/{name}"))),
            Self::Registry => format!("version = {}", toml(VERSION)),
        }
    }

    /// What Cargo.toml says about it.
    pub(super) fn note(&self) -> &'static str {
        match self {
            Self::Checkout(_) => {
                "# zlink is not on crates.io yet: the paths are those of a checkout of it on this machine."
            }
            Self::Registry => {
                "# TODO: zlink is not on crates.io yet. Until it is, replace the three `version = …` of zlink's crates by the\n\
                 # paths of a checkout: `path = \"…/zlink/zlink-runtime\"`, `path = \"…/zlink/zlink-codegen\"`."
            }
        }
    }

    /// What the user has to be told: the project does not build as it is.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Checkout(_) => None,
            Self::Registry => Some(
                "zlink is not on crates.io yet, so the project will not build until its Cargo.toml names a checkout; \
                 `--runtime-path PATH` does that",
            ),
        }
    }
}

/// The checkout that `path`, or `path` without its last part `zlink-runtime`, is.
fn checkout(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let root = if path.ends_with("zlink-runtime") {
        path.parent()?
    } else {
        &path
    };
    let has = |name: &str| root.join(name).join("Cargo.toml").is_file();
    (has("zlink-runtime") && has("zlink-codegen")).then(|| root.to_owned())
}

/// A string of TOML.
fn toml(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_checkout_is_found_by_itself_and_by_either_path() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let runtime = root.join("zlink-runtime");
        let expected = root.canonicalize().expect("a folder").display().to_string();
        for given in [None, Some(&*root), Some(&*runtime)] {
            assert_eq!(Origin::find(given).expect("found").root(), Some(&*expected));
        }
    }

    #[test]
    fn a_folder_without_zlink_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let refused = Origin::find(Some(dir.path())).expect_err("nothing there");
        assert!(refused.help.contains("--runtime-path takes"), "{}", refused.help);
    }

    #[test]
    fn a_path_is_text_of_toml() {
        assert_eq!(toml("/a b/ö"), "\"/a b/ö\"");
        assert_eq!(toml("C:\\a\"\n\u{7f}"), "\"C:\\\\a\\\"\\u000A\\u007F\"");
    }

    #[test]
    fn without_a_checkout_the_manifest_and_the_command_say_that_something_is_left_to_do() {
        let registry = Origin::Registry;
        assert_eq!(registry.of("zlink-runtime"), format!("version = {VERSION:?}"));
        assert!(registry.note().contains("TODO") && registry.warning().is_some());
    }
}
