//! The README's code is this crate's, or an example's, word for word, and its first program prints what the README says.

#![allow(clippy::panic, reason = "a test may")]

use std::path::Path;
use std::process::Command;

#[test]
fn all_code_of_the_readme_is_in_this_crate() {
    let files = [
        "schemas/billing.yaml",
        "build.rs",
        "src/main.rs",
        "tests/apart.rs",
        "tests/cluster.rs",
        "../languages/client.py",
        "../languages/node/client.ts",
        "../fanout/office.yaml",
        "../fanout/src/bin/desk.rs",
        "../lobby/plaza.yaml",
        "../lobby/src/lib.rs",
        "../lobby/src/main.rs",
    ]
    .map(read);
    let readme = read("../../README.md");
    let mut blocks = 0;
    let mut block: Option<String> = None;
    let mut elsewhere = false;
    for line in readme.lines() {
        match &mut block {
            // The manifest of a reader's crate has other paths than this one's, and commands are no code of it.
            None if line.starts_with("```") => {
                elsewhere = line == "```toml" || line == "```sh";
                block = Some(String::new());
            }
            Some(code) if line == "```" => {
                assert!(
                    elsewhere || files.iter().any(|file| file.contains(&**code)),
                    "not in these files:\n{code}"
                );
                blocks += usize::from(!elsewhere);
                block = None;
            }
            Some(code) => *code += &format!("{line}\n"),
            None => {}
        }
    }
    assert_eq!(blocks, 16);
    // The first program is there as a whole.
    for file in &files[..3] {
        let code = file.lines().filter(|line| !line.starts_with("//!"));
        let code = code.collect::<Vec<_>>().join("\n");
        assert!(readme.contains(code.trim()), "not in the README:\n{code}");
    }
}

#[test]
fn the_first_program_prints_the_receipt() {
    let ran = Command::new(env!("CARGO_BIN_EXE_quickstart"))
        .output()
        .expect("the example runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "R-42\n");
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
