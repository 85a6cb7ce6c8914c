//! `init`: what it creates, what it refuses, and that the project builds, passes its test, runs and ends.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::room::Room;

const FILES: [&str; 8] = [
    ".gitignore",
    "Cargo.toml",
    "README.md",
    "build.rs",
    "schemas/my_shop.yaml",
    "src/lib.rs",
    "src/main.rs",
    "tests/cluster.rs",
];

#[test]
fn a_project_is_these_files_and_the_command_says_what_comes_next() {
    let room = Room::new();
    let ran = room.run(&["init", "@deep/my-shop"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert_eq!(room.files("deep/my-shop"), FILES);
    let dir = room.file("deep/my-shop").display().to_string();
    let shown = format!("created the project `my-shop`: 8 files in {dir}\nnext:\n  cd {dir}\n  cargo test ");
    assert!(ran.err.starts_with(&shown), "{}", ran.err);
    let manifest = room.read("deep/my-shop/Cargo.toml");
    let codegen = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("a folder");
    assert!(manifest.contains("name = \"my-shop\""), "{manifest}");
    assert!(manifest.contains(&format!("path = {codegen:?}")), "{manifest}");
    assert_eq!(room.read("deep/my-shop/build.rs").lines().count(), 3);
}

#[test]
fn json_tells_programs_the_same() {
    let room = Room::new();
    let ran = room.run(&["init", "@x", "--name", "my-shop", "--format", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = room.file("x").display().to_string();
    let expected = json!({
        "dir": dir,
        "name": "my-shop",
        "namespace": "my_shop",
        "files": FILES,
        "zlink": { "path": root.canonicalize().expect("a folder") },
        "workspace": null,
        "next": [format!("cd {dir}"), "cargo test", "cargo run"],
    });
    assert_eq!(told, expected);

    let ran = room.run(&["init", "@x", "--format", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    let error = told["error"].as_str().expect("a text");
    assert!(error.contains("holds `.gitignore` and 6 more"), "{error}");
    assert!(told["help"].is_string());
}

#[test]
fn an_empty_folder_and_a_fresh_repository_are_welcome() {
    let room = Room::new();
    room.write("fresh/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(room.run(&["init", "@fresh"]).code, 0);
    assert_eq!(room.read("fresh/.git/HEAD"), "ref: refs/heads/main\n");
    let room = Room::new();
    assert_eq!(room.run(&["init", "@", "--name", "my-shop"]).code, 0);
    assert_eq!(room.files(""), FILES);
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let room = Room::new();
    room.write("full/notes.txt", "mine");
    room.write("file", "mine");
    for (args, why, help) in [
        (&["init", "@full"][..], "holds `notes.txt`", "does not exist yet"),
        (&["init", "@file"], "not a folder", "does not exist yet"),
        (&["init", "@file/below"], "cannot be read", "does not exist yet"),
        (&["init", "@Größe"], "letters beyond a-z", "--name NAME"),
        (&["init", "@MyShop"], "not in the form", "`my-shop`"),
        (&["init", "@new", "--name", "type"], "keyword of Rust", "`type-service`"),
        (&["init", "@new", "--name", ""], "it is empty", "small letters"),
        (
            &["init", "@new", "--runtime-path", "@full"],
            "no zlink in",
            "a checkout of zlink",
        ),
    ] {
        let ran = room.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        let (error, advice) = ran.err.split_once("\nhelp: ").expect("help");
        assert!(error.starts_with("error: ") && error.contains(why), "{args:?}: {error}");
        assert!(advice.contains(help), "{args:?}: {advice}");
        assert_eq!(room.files(""), ["file", "full/notes.txt"], "{args:?}");
    }
    assert_eq!(room.run(&["init"]).code, 2, "usage");
}

#[test]
fn a_workspace_around_the_project_is_mentioned() {
    let room = Room::new();
    room.write("Cargo.toml", "[workspace]\nmembers = []\n");
    let ran = room.run(&["init", "@hello"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.err
            .contains("Cargo.toml is a workspace: add the folder to its `members`"),
        "{}",
        ran.err
    );
}

/// The templates name what the generator makes of a name, and stay in rustfmt's form.
#[test]
fn any_name_gives_a_right_schema_and_well_formed_code() {
    let long = format!("a{}", "-bc".repeat(13));
    for name in [
        "x", "hello", "my-shop", "a_1b", "server", "greeting", "r2-d2", "rt", &long,
    ] {
        let room = Room::new();
        assert_eq!(room.run(&["init", "@p", "--name", name]).code, 0, "{name}");
        let ran = room.run(&["check", "@p/schemas"]);
        assert!(
            ran.err.contains("checked 1 schema: 0 errors, 0 warnings"),
            "{name}: {}",
            ran.err
        );
        assert_eq!(
            room.run(&["generate", "--lang", "rust", "--out", "@out", "@p/schemas"])
                .code,
            0
        );
        let code: String = room
            .files("out")
            .iter()
            .map(|file| room.read(&format!("out/{file}")))
            .collect();
        let lib = room.read("p/src/lib.rs");
        let between = |begin: &str, end: &str| {
            let (_, rest) = lib.split_once(begin).expect(begin);
            rest.split_once(end).expect(end).0.to_owned()
        };
        for declared in [
            format!("pub trait {}:", between("impl ", " for Greeter")),
            format!("pub const {}:", between(".client(", ")")),
            "pub fn server".to_owned(),
            "pub fn client".to_owned(),
        ] {
            assert!(code.contains(&declared), "{name}: {declared} in\n{code}");
        }
        let sources = ["build.rs", "src/lib.rs", "src/main.rs", "tests/cluster.rs"];
        let sources = sources.map(|file| room.file(&format!("p/{file}")));
        succeed(
            Command::new("rustfmt")
                .args(["--edition", "2024", "--check"])
                .args(sources),
        );
    }
}

// One test: the steps share a build.
#[test]
fn the_project_builds_without_a_warning_passes_its_test_runs_and_ends() {
    let room = Room::new();
    let ran = room.run(&[
        "init",
        "@it",
        "--name",
        "init-trial",
        "--runtime-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/.."),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    // The versions, profiles and folder of this repository, or everything would be compiled once more.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    std::fs::copy(lock, room.file("it/Cargo.lock")).expect("the lock of this repository");
    let target = Path::new(env!("CARGO_BIN_EXE_zlink-codegen"))
        .ancestors()
        .nth(2)
        .expect("a target folder");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--offline"]);
    for setting in [
        "debug=\"line-tables-only\"",
        "package.\"*\".opt-level=1",
        "package.\"*\".debug=false",
        "package.zlink-runtime.opt-level=0", // nobody else can use what comes out
    ] {
        command.args(["--config", &format!("profile.dev.{setting}")]);
    }
    command
        .current_dir(room.file("it"))
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS");
    // As `cargo clippy` does, but in the build that the test needs anyway.
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    let (out, err) = succeed(&mut command);
    assert!(
        out.contains("test a_killed_server_is_missed_and_comes_back ... ok"),
        "{out}"
    );
    let warnings: Vec<_> = err.lines().filter(|line| line.starts_with("warning")).collect();
    let [note] = warnings[..] else { panic!("{err}") };
    assert!(note.contains("note[ZL1001]"), "a new schema has no lock yet: {note}");

    let mut program = Program::start(target.join("debug/init-trial"));
    assert_eq!(program.line(), "Hello, world!");
    assert!(program.line().starts_with("serving on tcp://127.0.0.1:"));
    program.interrupt();
    assert!(program.0.wait().expect("it ends").success());
}

/// Runs a command that must succeed; its two streams.
fn succeed(command: &mut Command) -> (String, String) {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, err] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ran.status.success(), "{command:?}\n{out}\n{err}");
    (out, err)
}

/// A program that is gone when the test is.
struct Program(Child, BufReader<std::process::ChildStdout>);

impl Program {
    fn start(path: PathBuf) -> Self {
        let mut child = Command::new(path).stdout(Stdio::piped()).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self(child, out)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Ctrl-C, once the program listens for it.
    fn interrupt(&mut self) {
        let status = format!("/proc/{}/status", self.0.id());
        let deadline = Instant::now() + Duration::from_secs(60);
        let listens = || {
            let status = std::fs::read_to_string(&status).expect("it runs");
            let caught = status
                .lines()
                .find_map(|line| line.strip_prefix("SigCgt:"))
                .expect("a mask");
            u64::from_str_radix(caught.trim(), 16).expect("a mask") & 0b10 != 0
        };
        while !listens() {
            assert!(Instant::now() < deadline, "it does not listen for Ctrl-C");
            std::thread::yield_now();
        }
        succeed(Command::new("kill").args(["-INT", &self.0.id().to_string()]));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Names that the project's own code uses as well: such a project must build, or be refused.
#[test]
fn a_project_is_not_named_like_something_in_it() {
    for name in ["calling", "serving"] {
        let room = Room::new();
        let ran = room.run(&["init", &format!("@{name}")]);
        if ran.code != 0 {
            continue;
        }
        let program = room.read(&format!("{name}/src/main.rs"));
        let own = format!("use {name}::{{Greet, calling, serving}};");
        assert!(
            !program.contains(&own),
            "`{name}` is a module and a function then, and `{name}::client` is not found: {program}"
        );
    }
}
