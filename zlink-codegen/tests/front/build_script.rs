//! A build script that calls `compile`: what cargo builds again, and what a wrong schema looks like.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A workspace of two crates, each with a schema of its own; the first imports a third file.
struct Workspace(PathBuf);

const ONE: &str = "zlink: 1\nnamespace: one\nversion: 1\nimports: [common.yaml]\nmessages: { A: { fields: { b: { id: 0, type: common.B } } } }\n";
const TWO: &str = "zlink: 1\nnamespace: shop.two\nversion: 1\nmessages: { C: {} }\n";
const COMMON: &str = "zlink: 1\nnamespace: common\nversion: 1\nmessages: { B: {} }\n";

impl Workspace {
    /// Always at the same place, so that nothing piles up there, and made anew.
    fn new() -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_script");
        if root.exists() {
            std::fs::remove_dir_all(&root).expect("removable");
        }
        let workspace = Workspace(root);
        // The profiles of this repository, or everything would be compiled once more.
        let profiles =
            "[profile.dev]\ndebug = \"line-tables-only\"\n[profile.dev.package.\"*\"]\nopt-level = 1\ndebug = false\n";
        workspace.write(
            "Cargo.toml",
            &format!("[workspace]\nresolver = \"3\"\nmembers = [\"one\", \"two\"]\n{profiles}"),
        );
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        workspace.write(
            "Cargo.lock",
            &std::fs::read_to_string(lock).expect("the lock of this repository"),
        );
        for (name, namespace) in [("one", "one"), ("two", "shop.two")] {
            let codegen = env!("CARGO_MANIFEST_DIR");
            let package = format!("[package]\nname = \"front-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n");
            let depends = format!("[build-dependencies]\nzlink-codegen = {{ path = {codegen:?} }}\n");
            workspace.write(&format!("{name}/Cargo.toml"), &format!("{package}{depends}"));
            let script = format!("fn main() {{ zlink_codegen::compile(\"../schemas/{name}.yaml\") }}\n");
            workspace.write(&format!("{name}/build.rs"), &script);
            // As text: what the code needs to compile is not at stake here.
            let code =
                format!("pub const CODE: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/{namespace}.rs\"));\n");
            workspace.write(&format!("{name}/src/lib.rs"), &code);
        }
        workspace.write("schemas/one.yaml", ONE);
        workspace.write("schemas/two.yaml", TWO);
        workspace.write("schemas/common.yaml", COMMON);
        workspace
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(path, content).expect("writable");
    }

    /// Builds, and returns the artifacts that were not fresh; or what cargo says of the failure.
    fn build(&self) -> Result<Vec<String>, String> {
        let program = Path::new(env!("CARGO_BIN_EXE_zlink-codegen"));
        let target = program.ancestors().nth(2).expect("a target folder");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--offline", "--message-format=json"])
            .current_dir(&self.0);
        command.env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
        let built = command.output().expect("cargo starts");
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into_owned());
        }
        let text = String::from_utf8_lossy(&built.stdout).into_owned();
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let stale = messages.filter(|message| message["reason"] == "compiler-artifact" && message["fresh"] == false);
        Ok(stale
            .map(|message| message["target"]["name"].as_str().unwrap_or_default().to_owned())
            .collect())
    }

    /// The same for a build that must succeed, without repetition and in order.
    fn stale(&self) -> Vec<String> {
        let mut stale = self.build().unwrap_or_else(|error| panic!("{error}"));
        stale.sort();
        stale
    }
}

// One test: the steps share the time of the first build.
#[test]
fn cargo_builds_again_what_a_changed_schema_is_in_and_nothing_else() {
    let workspace = Workspace::new();
    workspace.build().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(workspace.stale(), [""; 0], "an unchanged build compiles nothing");

    workspace.write("schemas/two.yaml", &TWO.replace("C: {}", "C: {}, D: {}"));
    assert_eq!(workspace.stale(), ["front_two"], "also where no schema has a lock yet");
    assert_eq!(workspace.stale(), [""; 0]);

    let schemas = workspace.0.join("schemas");
    let args = ["zlink-codegen".into(), "accept".into(), schemas.into_os_string()];
    let code = zlink_codegen::cli::run(args, &mut std::io::sink(), &mut std::io::sink());
    assert_eq!(code, 0);
    assert_eq!(
        workspace.stale(),
        ["front_one", "front_two"],
        "there are locks to compare with now"
    );
    assert_eq!(workspace.stale(), [""; 0]);

    workspace.write("schemas/two.yaml", &TWO.replace("C: {}", "C: {}, D: {}, E: {}"));
    assert_eq!(workspace.stale(), ["front_two"]);
    workspace.write("schemas/common.yaml", &COMMON.replace("B: {}", "B: {}, F: {}"));
    assert_eq!(workspace.stale(), ["front_one"], "an import is part of what imports it");
    assert_eq!(workspace.stale(), [""; 0]);

    workspace.write(
        "schemas/common.yaml",
        &COMMON.replace("B: {}", "B: { fields: { x: { id: 0, type: strin } } }"),
    );
    let error = workspace.build().expect_err("a wrong schema fails the build");
    for part in ["ZL0401", "common.yaml:4:46", "^^^^^", "did you mean `string`?"] {
        assert!(error.contains(part), "{part} in\n{error}");
    }
    assert!(!error.contains("panicked"), "{error}");
    workspace.write("schemas/common.yaml", COMMON);
    assert_eq!(workspace.stale(), ["front_one"], "the mistake is gone");
}
