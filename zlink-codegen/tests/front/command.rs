//! The command: exit codes, streams, folders, output files.

use serde_json::Value;

use crate::room::Room;

const GOOD: &str = "zlink: 1\nnamespace: shop\nversion: 1\nmessages: { A: {} }\n";
const BAD: &str = "zlink: 1\nnamespace: bad\nversion: 1\nmessages: { A: { fields: { x: { id: 0, type: u9 } } } }\n";

#[test]
fn exit_codes_are_those_of_the_documentation() {
    let room = Room::new();
    room.write("good.yaml", GOOD);
    room.write("bad.yaml", BAD);
    let code = |args: &[&str]| room.run(args).code;
    assert_eq!(code(&["check", "@good.yaml"]), 0, "a missing lock is a note");
    assert_eq!(
        code(&["check", "@good.yaml", "--locked"]),
        1,
        "and an error where locks are demanded"
    );
    assert_eq!(code(&["check", "@bad.yaml"]), 1);
    assert_eq!(code(&["check", "@absent.yaml"]), 2);
    assert_eq!(
        code(&["check", "@absent.yaml", "@bad.yaml"]),
        2,
        "trouble outweighs findings"
    );
    assert_eq!(code(&["check"]), 2, "usage");
    assert_eq!(code(&["chekc", "@good.yaml"]), 2, "usage");
    assert_eq!(code(&["check", "@good.yaml", "--format", "xml"]), 2, "usage");
    assert_eq!(code(&["generate", "--lang", "rust", "--out", "@out", "@bad.yaml"]), 1);
    assert_eq!(
        code(&["generate", "--lang", "rust", "--out", "@good.yaml", "@good.yaml"]),
        2,
        "no folder"
    );
    assert_eq!(code(&["accept", "@bad.yaml"]), 1);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
}

#[test]
fn every_command_says_what_its_arguments_are() {
    let room = Room::new();
    for command in ["check", "generate", "accept", "breaking"] {
        let ran = room.run(&[command, "--help"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let mut lines = ran.out.lines().map(str::trim_start).peekable();
        let mut arguments = 0;
        while let Some(line) = lines.next() {
            if line.starts_with(['<', '-']) {
                arguments += 1;
                let next = lines.peek().copied().unwrap_or_default();
                assert!(
                    next.starts_with(char::is_alphabetic),
                    "{line} of {command}:\n{}",
                    ran.out
                );
            }
        }
        assert!(arguments > 1, "{}", ran.out);
    }
}

#[test]
fn an_unreadable_file_does_not_hide_the_others() {
    let room = Room::new();
    room.write("bad.yaml", BAD);
    let ran = room.run(&["check", "@absent.yaml", "@bad.yaml"]);
    assert!(ran.err.contains("ZL0001") && ran.err.contains("ZL0401"), "{}", ran.err);
    assert_eq!(ran.out, "");
}

#[test]
fn a_file_full_of_mistakes_does_not_hide_those_of_another() {
    let room = Room::new();
    let many: String = (0..300).map(|at| format!("  M{at}: {{ feilds: {{}} }}\n")).collect();
    room.write(
        "a.yaml",
        format!("zlink: 1\nnamespace: a\nversion: 1\nmessages:\n{many}"),
    );
    let odd: String = (0..300).map(|at| format!("  odd{at}: {{}}\n")).collect();
    room.write(
        "b.yaml",
        format!("zlink: 1\nnamespace: b\nversion: 1\nmessages:\n{odd}"),
    );
    room.write("c.yaml", BAD);
    let ran = room.run(&["check", "@"]);
    assert_eq!(ran.err.matches("error[ZL0102]").count(), 200);
    assert_eq!(ran.err.matches("error[ZL0012]").count(), 1);
    assert_eq!(ran.err.matches("warning[ZL0012]").count(), 1);
    assert!(ran.err.contains("error[ZL0401]: `u9` is not declared"));
}

#[test]
fn the_schemas_of_this_repository_are_right() {
    let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
    let ran = Room::new().run(&["check", schemas]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_folder_is_every_schema_below_it_and_no_lock() {
    let room = Room::new();
    room.write("a/good.yaml", GOOD);
    room.write("a/b/bad.yaml", BAD);
    room.write("a/b/bad.lock.yaml", "this is no lock");
    room.write("a/notes.yml", "nor is this a schema");
    let ran = room.run(&["check", "@a"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("checked 2 schemas: 1 error, 0 warnings"),
        "{}",
        ran.err
    );
    room.write("empty/readme.md", "");
    let ran = room.run(&["check", "@empty"]);
    assert_eq!(ran.code, 2, "a check of nothing must not look like success");
}

#[test]
fn json_is_one_array_on_stdout() {
    let room = Room::new();
    let path = room.write("bad.yaml", format!("{BAD}structs: {{ A: {{ ä: u8 }} }}\n"));
    let ran = room.run(&["check", "--format", "json", "@bad.yaml", "@absent.yaml"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    let all: Value = serde_json::from_str(&ran.out).expect("JSON");
    let all = all.as_array().expect("an array");
    let of = |code: &str| all.iter().find(|item| item["code"] == code).expect("that finding");
    let unknown = of("ZL0401");
    assert_eq!(unknown["severity"], "error");
    assert_eq!(unknown["file"], path.display().to_string());
    let place = ["line", "column", "end_line", "end_column"].map(|key| unknown[key].as_u64().expect("a number"));
    assert_eq!(place, [4, 46, 4, 48]);
    assert_eq!(unknown["message"], "`u9` is not declared");
    assert_eq!(unknown["help"], "did you mean `u8`?");
    assert_eq!(unknown["labels"], Value::Array(Vec::new()));
    let twice = of("ZL0203");
    assert_eq!(twice["labels"][0]["line"], 5);
    assert_eq!(twice["labels"][0]["message"], "a struct here");
    assert_eq!(of("ZL0001")["line"], 1);

    room.write("good.yaml", GOOD);
    assert_eq!(room.run(&["accept", "@good.yaml"]).code, 0);
    let ran = room.run(&["check", "--format", "json", "@good.yaml"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "[]\n"),
        "nothing found is an array too"
    );
}

#[test]
fn generate_writes_what_differs_and_nothing_else() {
    let room = Room::new();
    room.write("common.yaml", GOOD);
    let import = "imports: [common.yaml]\nmessages: { B: { fields: { a: { id: 0, type: shop.A } } } }\n";
    room.write("one.yaml", format!("zlink: 1\nnamespace: one\nversion: 1\n{import}"));
    room.write("two.yaml", format!("zlink: 1\nnamespace: two.b\nversion: 1\n{import}"));
    let generate = |lang| room.run(&["generate", "--lang", lang, "--out", "@out", "@one.yaml", "@two.yaml"]);
    let ran = generate("rust");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("generated 3 files, 3 new or changed"), "{}", ran.err);
    assert!(room.read("out/two_b.rs").contains("pub struct B"));
    std::fs::remove_file(room.file("out/shop.rs")).expect("it was written");
    let ran = generate("rust");
    assert!(ran.err.contains("generated 3 files, 1 new or changed"), "{}", ran.err);
    let ran = room.run(&["generate", "--lang", "rust", "--out", "@alone", "@common.yaml"]);
    assert!(ran.err.contains("generated 1 file, 1 new or changed"), "{}", ran.err);
    assert_eq!(generate("fbs").code, 0);
    assert!(room.read("out/one.fbs").contains("table B"));
}

#[test]
fn the_program_is_the_library() {
    let room = Room::new();
    let bad = room.write("bad.yaml", BAD);
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_zlink-codegen"))
        .arg("check")
        .arg(bad)
        .output();
    let run = run.expect("the program starts");
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stderr).contains("ZL0401"));
    assert!(run.stdout.is_empty());
}

#[test]
fn templates_of_ones_own_are_taken_and_their_mistakes_shown_with_their_line() {
    let room = Room::new();
    room.write("shop.yaml", GOOD);
    room.write("mine/package.py.tera", "# mine\n");
    let args = |lang| {
        [
            "generate",
            "--lang",
            lang,
            "--out",
            "@out",
            "--templates",
            "@mine",
            "@shop.yaml",
        ]
    };
    let ran = room.run(&args("python"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(room.read("out/__init__.py"), "# mine\n");
    assert!(room.read("out/shop/__init__.py").contains("The namespace `shop`."));

    let wrong = room.write("mine/namespace.py.tera", "one\n{{ no_such_thing }}\n");
    let ran = room.run(&args("python"));
    let place = format!("error: template {}:2:4: ", wrong.display());
    assert_eq!((ran.code, ran.err.starts_with(&place)), (2, true), "{}", ran.err);

    room.write("mine/namespace.py.tera", b"one\ntwo\n \xff\n");
    let ran = room.run(&args("python"));
    let place = format!("error: template {}:3: ", wrong.display());
    assert_eq!((ran.code, ran.err.starts_with(&place)), (2, true), "{}", ran.err);

    let ran = room.run(&args("rust"));
    assert_eq!(ran.code, 2, "rust has no templates");
    // One that no template is called, or of another language, would be for nothing.
    std::fs::remove_file(&wrong).expect("removable");
    let ran = room.run(&args("typescript"));
    let said = "package.py.tera: takes the place of no template of this language; they are namespace.ts.tera, zlink/";
    assert!(ran.code == 2 && ran.err.contains(said), "{}", ran.err);
    std::fs::remove_dir_all(room.file("mine")).expect("removable");
    let ran = room.run(&args("python"));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("mine"), "{}", ran.err);
    room.write("mine/other.txt", "");
    assert_eq!(room.run(&args("python")).code, 2, "no template is there");
    room.write("mine/package.py.tera", "# mine\n");
    assert_eq!(room.run(&args("python")).code, 0, "what is no template may be there");
    room.write("mine/zlink/link.py", "");
    let ran = room.run(&args("python"));
    let said = "link.py is no template; zlink/link.py.tera would be one";
    assert!(ran.code == 2 && ran.err.contains(said), "{}", ran.err);
}

/// What all namespaces need is made from templates as the namespaces are, in each language.
#[test]
fn what_is_beside_the_namespaces_has_templates_too() {
    let room = Room::new();
    let message = "messages: { A: { fields: { x: { id: 0, type: uuid } } } }";
    let service = "services: { till: { methods: { tell: { send: A } } } }";
    let schema = format!("zlink: 1\nnamespace: shop\nversion: 1\n{message}\n{service}\n");
    room.write("shop.yaml", schema);
    let cases = [
        ("typescript", "zlink/link.ts", "zlink/channel.ts"),
        ("typescript", "zlink/wire.ts", "shop.ts"),
        ("python", "zlink/protocol.py", "zlink/link.py"),
        ("python", "py.typed", "zlink/wire.py"),
        ("fbs", "zlink-types.fbs", "shop.fbs"),
        ("docs", "services.mmd", "shop.md"),
    ];
    for (lang, replaced, other) in cases {
        let [built_in, own] = ["built_in", "own"].map(|out| format!("{out}/{lang}/{}", replaced.replace('/', "_")));
        let templates = format!("mine/{replaced}");
        room.write(&format!("{templates}/{replaced}.tera"), "{{ 40 + 2 }} of my own\n");
        let ran = room.run(&[
            "generate",
            "--lang",
            lang,
            "--out",
            &format!("@{built_in}"),
            "@shop.yaml",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let out = format!("@{own}");
        let templates = format!("@{templates}");
        let ran = room.run(&[
            "generate",
            "--lang",
            lang,
            "--out",
            &out,
            "--templates",
            &templates,
            "@shop.yaml",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        if lang == "docs" {
            // The picture is within the pages.
            assert!(room.read(&format!("{own}/{other}")).contains("42 of my own"), "{other}");
            continue;
        }
        assert_eq!(room.read(&format!("{own}/{replaced}")), "42 of my own\n", "{replaced}");
        let same = room.read(&format!("{own}/{other}")) == room.read(&format!("{built_in}/{other}"));
        assert!(same, "{other} is as it was");
    }
}

/// A lock that cannot be read is trouble with a file, as a schema is that cannot be read: not a finding in a schema.
#[test]
fn a_lock_that_cannot_be_read_is_trouble() {
    let room = Room::new();
    room.write("a.yaml", "zlink: 1\nnamespace: a\nversion: 1\nmessages: { M: {} }\n");
    std::fs::create_dir(room.file("a.lock.yaml")).expect("writable");
    for args in [&["check", "@a.yaml"][..], &["check", "--locked", "@a.yaml"]] {
        let ran = room.run(args);
        assert!(ran.err.contains("a.lock.yaml"), "{}", ran.err);
        assert_eq!(ran.code, 2, "{}", ran.err);
    }
}

#[test]
fn a_lock_is_compared_once_however_many_schemas_import_its_namespace() {
    let room = Room::new();
    room.write("c.yaml", "zlink: 1\nnamespace: c\nversion: 1\nmessages: { M: {} }\n");
    room.write("c.lock.yaml", "lock: 2\n");
    for name in ["a", "b"] {
        let message = "messages: { M: { fields: { of: { id: 0, type: c.M } } } }";
        let schema = format!("zlink: 1\nnamespace: {name}\nversion: 1\nimports: [c.yaml]\n{message}\n");
        room.write(&format!("{name}.yaml"), schema);
    }
    let ran = room.run(&["check", "@"]);
    assert!(ran.err.contains("1 error,"), "{}", ran.err);
}

/// The same for an import: one that is not there is a mistake in the schema, one that the file system refuses is not.
#[cfg(unix)]
#[test]
fn an_import_that_the_file_system_refuses_is_trouble() {
    let room = Room::new();
    room.write(
        "a.yaml",
        "zlink: 1\nnamespace: a\nversion: 1\nimports: [b.yaml]\nmessages: { M: {} }\n",
    );
    assert_eq!(room.run(&["check", "@a.yaml"]).code, 1);
    std::fs::create_dir(room.file("b.yaml")).expect("writable");
    assert_eq!(room.run(&["check", "@a.yaml"]).code, 1, "a folder is no schema");
    std::fs::remove_dir(room.file("b.yaml")).expect("ours");
    std::os::unix::fs::symlink("b.yaml", room.file("b.yaml")).expect("writable");
    let ran = room.run(&["check", "@a.yaml"]);
    assert_eq!(ran.code, 2, "a link that leads round: {}", ran.err);
    assert!(ran.err.contains("a.yaml:4:11"), "{}", ran.err);
}

/// A lock is no schema, and is not written by hand: what helps with one that is empty, as after a full disk, is to
/// restore it or to accept again.
#[test]
fn an_empty_lock_is_not_told_to_become_a_schema() {
    let room = Room::new();
    room.write("a.yaml", "zlink: 1\nnamespace: a\nversion: 1\nmessages: { M: {} }\n");
    room.write("a.lock.yaml", "");
    let ran = room.run(&["check", "@a.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        !ran.err.contains("a schema starts with") && ran.err.contains("lock"),
        "{}",
        ran.err
    );
}

/// Two files of one namespace are a mistake in schemas, with its places, for whoever checks a folder as for whoever
/// generates from it.
#[test]
fn two_schemas_of_one_namespace_are_found() {
    let room = Room::new();
    room.write(
        "all/one.yaml",
        "zlink: 1\nnamespace: a\nversion: 1\nmessages: { M: {} }\n",
    );
    room.write(
        "all/two.yaml",
        "zlink: 1\nnamespace: a\nversion: 1\nmessages: { N: {} }\n",
    );
    let out = room.file("out").display().to_string();
    for args in [
        &["check", "@all"][..],
        &["generate", "--lang", "rust", "--out", &out, "@all"],
    ] {
        let ran = room.run(args);
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.err);
        assert!(
            ran.err.contains("one.yaml") && ran.err.contains("two.yaml"),
            "{args:?}: {}",
            ran.err
        );
    }
    let ran = room.run(&["accept", "@all"]);
    assert_eq!(ran.code, 1, "both would have one lock: {}", ran.err);
    assert!(room.read("all/a.lock.yaml").contains("M:"), "that of the first");
    // A copy is no other contract, and the same file by another way is itself.
    std::fs::remove_dir_all(room.file("all")).expect("ours");
    for name in ["all/one.yaml", "all/copy/one.yaml"] {
        room.write(name, "zlink: 1\nnamespace: a\nversion: 1\nmessages: { M: {} }\n");
    }
    let ran = room.run(&[
        "generate",
        "--lang",
        "rust",
        "--out",
        &out,
        "@all",
        "@all/copy/../one.yaml",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// A pipe under the name of a schema, an import or a lock would keep whoever opens it waiting until somebody writes.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_file_to_wait_for() {
    let room = Room::new();
    room.write(
        "a.yaml",
        "zlink: 1\nnamespace: a\nversion: 1\nimports: [b.yaml]\nmessages: { M: {} }\n",
    );
    room.write("c.yaml", "zlink: 1\nnamespace: c\nversion: 1\nmessages: { M: {} }\n");
    for pipe in ["b.yaml", "c.lock.yaml"] {
        let made = std::process::Command::new("mkfifo").arg(room.file(pipe)).status();
        assert!(made.expect("mkfifo starts").success());
    }
    let (tell, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let codes = ["@b.yaml", "@a.yaml", "@c.yaml"].map(|path| room.run(&["check", path]).code);
        let _ = tell.send(codes);
    });
    let codes = ended.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(codes.expect("no pipe is waited for"), [2, 1, 2]);
}

/// A lone carriage return is a line break of YAML: what stands behind it is on a line of its own.
#[test]
fn lines_that_end_with_a_carriage_return_are_counted() {
    let room = Room::new();
    room.write(
        "a.yaml",
        "zlink: 1\rnamespace: a\rversion: 1\rmessages:\r  M: { fields: { x: { id: 0, type: u9 } } }\r  M: {}\r",
    );
    let ran = room.run(&["check", "@a.yaml"]);
    assert!(
        ran.err.contains("a.yaml:5:36\n") && ran.err.contains("5 |   M: { fields"),
        "{}",
        ran.err
    );
    // A finding with two places: each line is drawn by itself.
    assert!(
        ran.err.contains("a.yaml:6:3\n") && ran.err.contains("\n6 |   M: {}\n"),
        "{}",
        ran.err
    );
}
