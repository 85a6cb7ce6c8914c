//! The name of a project: a crate, and the namespace of its schema.
//!
//! It must not know what the project holds, but for the crates it depends on.

use std::path::Path;

use super::Refused;
use crate::name::rust_ident;

/// Longer ones would break the lines of the project elsewhere than rustfmt does.
const LONGEST: usize = 40;
/// Crates that the project uses, or that are always there.
const CRATES: &[&str] = &[
    "alloc",
    "core",
    "proc_macro",
    "std",
    "test",
    "tokio",
    "zlink_codegen",
    "zlink_runtime",
];
/// Folders that cargo makes beside the program.
const FOLDERS: &[&str] = &["build", "deps", "examples", "incremental"];
/// Types that a module of that name would hide.
const TYPES: &[&str] = &[
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str", "u128", "u16", "u32", "u64", "u8",
    "usize",
];

/// Functions that the project imports by name: a crate of that name brings its module along with them, which then
/// stands for the crate.
const FUNCTIONS: &[&str] = &["calling", "serving"];

/// A name that cargo, Rust and the schema language all take.
#[derive(Debug)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn new(name: &str) -> Result<Self, Refused> {
        Self::checked(name, "")
    }

    /// The name of the folder, whether or not it exists.
    pub(super) fn of_folder(dir: &Path) -> Result<Self, Refused> {
        let of = |path: std::io::Result<std::path::PathBuf>| path.ok()?.file_name().map(std::ffi::OsStr::to_owned);
        // `.` and `..` have their names by where they lead.
        match of(std::path::absolute(dir)).or_else(|| of(dir.canonicalize())) {
            Some(name) => Self::checked(
                &name.to_string_lossy(),
                "--name NAME gives another one than the folder's; ",
            ),
            None => Err(Refused::new(
                format!("{} has no name that the project could take", dir.display()),
                "give one with --name NAME",
            )),
        }
    }

    fn checked(name: &str, otherwise: &str) -> Result<Self, Refused> {
        let refused = |why: &str, help: String| {
            let help = format!("{otherwise}{help}");
            Err(Refused::new(
                format!("`{}` cannot be the name of the project: {why}", name.escape_debug()),
                help,
            ))
        };
        let form =
            "use small letters a-z and digits, in words joined by `-` or `_`, the first one beginning with a letter";
        let namespace = name.replace('-', "_");
        let of_words = name.starts_with(|c: char| c.is_ascii_lowercase())
            && namespace
                .split('_')
                .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        if name.is_empty() {
            refused("it is empty", form.to_owned())
        } else if !of_words {
            let why = if name.is_ascii() {
                "it is not in the form of a crate's"
            } else {
                "it has letters beyond a-z"
            };
            refused(why, format!("{form}{}", suggestion(name)))
        } else if name.len() > LONGEST {
            refused("it is too long", format!("use at most {LONGEST} characters"))
        } else if rust_ident(&namespace) != namespace {
            refused("it is a keyword of Rust", format!("add a word: `{name}-service`"))
        } else if CRATES.contains(&&*namespace) {
            refused(
                "there is a crate of that name already",
                format!("add a word: `my-{name}`"),
            )
        } else if FOLDERS.contains(&&*namespace) {
            refused(
                "cargo keeps it for a folder of its own",
                format!("add a word: `{name}-service`"),
            )
        } else if TYPES.contains(&&*namespace) {
            refused("it is a type of Rust", format!("add a word: `my-{name}`"))
        } else if FUNCTIONS.contains(&&*namespace) {
            refused(
                "the project has a function of that name",
                format!("add a word: `{name}-service`"),
            )
        } else {
            Ok(Self(name.to_owned()))
        }
    }

    /// The name of the package.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace, which is the name of the library crate too.
    pub(super) fn namespace(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// The nearest name in the right form, where there is one.
fn suggestion(name: &str) -> String {
    let words = crate::name::words(name).join("-");
    let near = words.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    if near.is_empty() || !name.is_ascii() || Name::new(near).is_err() {
        String::new()
    } else {
        format!(": `{near}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_crates_are_namespaces_too() {
        for (name, namespace) in [
            ("hello", "hello"),
            ("my-shop", "my_shop"),
            ("a_1b", "a_1b"),
            ("v2", "v2"),
        ] {
            let name = Name::new(name).expect("a name");
            assert_eq!(name.namespace(), namespace);
        }
        assert!(Name::new(&"x".repeat(40)).is_ok());
    }

    #[test]
    fn other_names_are_refused_with_what_to_write_instead() {
        let long = "x".repeat(41);
        for (name, why, help) in [
            ("", "is empty", "small letters"),
            ("My Shop", "not in the form", "`my-shop`"),
            ("MyShop", "not in the form", "`my-shop`"),
            ("shop.billing", "not in the form", "`shop-billing`"),
            ("2fast", "not in the form", "`fast`"),
            ("a--b", "not in the form", "`a-b`"),
            ("_a", "not in the form", "`a`"),
            ("42", "not in the form", "beginning with a letter"),
            ("größe", "beyond a-z", "small letters"),
            ("a\nb", r"`a\nb`", "`a-b`"),
            (&long, "too long", "40"),
            ("type", "keyword", "`type-service`"),
            ("self", "keyword", "`self-service`"),
            ("zlink-runtime", "crate of that name", "`my-zlink-runtime`"),
            ("test", "crate of that name", "`my-test`"),
            ("build", "folder", "`build-service`"),
            ("u8", "type of Rust", "`my-u8`"),
            ("calling", "a function of that name", "`calling-service`"),
        ] {
            let refused = Name::new(name).expect_err(name);
            assert!(refused.message.contains(why), "{name}: {}", refused.message);
            assert!(refused.help.contains(help), "{name}: {}", refused.help);
        }
    }

    #[test]
    fn a_folder_gives_its_name_or_says_how_to_give_another() {
        let name = |dir: &str| Name::of_folder(Path::new(dir));
        assert_eq!(name("somewhere/else/hello/").expect("a name").as_str(), "hello");
        // Here tests run in the folder of this crate.
        let refused = name(".").expect_err("taken");
        assert!(refused.message.starts_with("`zlink-codegen`"), "{}", refused.message);
        let refused = name("/").expect_err("no name");
        assert!(refused.help.contains("--name NAME"), "{}", refused.help);
        let refused = name("My Shop").expect_err("not in the form");
        assert!(
            refused.help.contains("--name NAME") && refused.help.contains("`my-shop`"),
            "{}",
            refused.help
        );
    }
}
