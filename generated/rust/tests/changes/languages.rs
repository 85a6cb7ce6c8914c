//! The same changes from clients in Python and TypeScript: each version of them at servers of the other, over TCP. What
//! they must come to is what came of it in Rust.
//!
//! It must not know which rules there are.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::ChannelServer;

use crate::exchange::{Echo, Way};
use crate::services::{self, Desk, Ended, Endings};
use crate::table::{self, Side};
use crate::{after, before, values};

type Failure = Box<dyn std::error::Error>;

const ROWS: ChannelName = ChannelName::from_static("rows");

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a program to its end; what it printed.
fn run(command: &mut Command) -> String {
    let ran = command.output().expect("it starts");
    let said = [ran.stdout.as_slice(), &ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&said));
    String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
}

/// What a script of the repository prints: the folder that it made.
fn made_by(script: &str) -> PathBuf {
    PathBuf::from(run(&mut Command::new(here("../../scripts").join(script))))
}

/// Generates the packages `before` and `after` in a folder.
fn generate(language: &str, folder: &Path) {
    for (side, name) in [(Side::Before, "before"), (Side::After, "after")] {
        let schema = folder.join(format!("{name}.yaml"));
        std::fs::write(&schema, table::schema(&table::rows(), side)).expect("writable");
        let (schema, out) = (schema.display().to_string(), folder.join(name).display().to_string());
        let command = ["zlink-codegen", "generate", "--lang", language, "--out", &out, &schema];
        let (mut out, mut said) = (Vec::new(), Vec::new());
        let code = zlink_codegen::cli::run(command, &mut out, &mut said);
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&said));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that sends back what comes, of every change, and the calls of it.
fn rows() -> (ChannelServer, Vec<Value>) {
    let ways = table::rows()
        .into_iter()
        .filter_map(|row| Some((row.name, values::ways(row.name)?)));
    let ways: Vec<(&str, Way)> = ways
        .flat_map(|(name, ways)| ways.into_iter().map(move |way| (name, way)))
        .collect();
    let (mut server, mut calls) = (ChannelServer::builder(ROWS, Echo), Vec::new());
    for (at, (name, way)) in ways.iter().enumerate() {
        let packet: &'static str = Box::leak(format!("{name}.{at}").into_boxed_str());
        server = way.serve(server, packet);
        let (module, message) = way.sender.rsplit_once("::").expect("a type in a module");
        let side = module.rsplit("::").next();
        calls.push(json!({
            "packet": packet, "side": side, "message": message, "sent": hex(&way.sent),
            "back": way.back.as_deref().map(hex), "end": way.end.map(|kind| format!("{kind:?}")),
        }));
    }
    (server.build(), calls)
}

/// A call of a service: the change, the service, its method, its message, and the metadata that goes with it.
type Meant = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// What the older version calls.
const MEANT: [Meant; 16] = [
    ("method_added", "method_added", "keep", "MethodAdded", &[]),
    ("method_removed", "method_removed", "keep", "MethodRemoved", &[]),
    ("method_removed", "method_removed", "gone", "MethodRemoved", &[]),
    ("method_renamed", "method_renamed", "ask", "MethodRenamed", &[]),
    (
        "method_renamed_on_the_wire",
        "method_renamed_on_the_wire",
        "ask",
        "MethodRenamedOnTheWire",
        &[],
    ),
    ("methods_swapped", "methods_swapped", "a", "MethodsSwapped", &[]),
    (
        "request_became_send",
        "request_became_send",
        "tell",
        "RequestBecameSend",
        &[],
    ),
    (
        "request_is_another",
        "request_is_another",
        "ask",
        "RequestIsAnother",
        &[],
    ),
    ("reply_is_another", "reply_is_another", "ask", "ReplyIsAnother", &[]),
    (
        "request_of_another_name",
        "request_of_another_name",
        "ask",
        "RequestOfOneName",
        &[],
    ),
    ("timeout_changed", "timeout_changed", "ask", "TimeoutChanged", &[]),
    (
        "key_retyped",
        "with_key_retyped",
        "ask",
        "KeyRetyped",
        &[("key_retyped", "a text")],
    ),
    (
        "key_removed",
        "with_key_removed",
        "ask",
        "KeyRemoved",
        &[("key_removed", "a text")],
    ),
    (
        "key_named_time",
        "with_key_named_time",
        "ask",
        "KeyNamedTime",
        &[("key_named_time", "-7")],
    ),
    ("service_renamed", "service_renamed", "ask", "ServiceRenamed", &[]),
    ("target_changed", "target_changed", "ask", "TargetChanged", &[]),
];

/// What the newer version calls; a service of a node is nothing that these clients could.
const MEANT_NEWER: [Meant; 14] = [
    MEANT[0],
    (
        "new_method_at_an_older_server",
        "method_added",
        "more",
        "MethodAdded",
        &[],
    ),
    MEANT[1],
    ("method_renamed", "method_renamed", "query", "MethodRenamed", &[]),
    (
        "method_renamed_on_the_wire",
        "method_renamed_on_the_wire",
        "query",
        "MethodRenamedOnTheWire",
        &[],
    ),
    MEANT[5],
    (
        "request_is_another",
        "request_is_another",
        "ask",
        "RequestIsAnotherNumber",
        &[],
    ),
    MEANT[8],
    (
        "request_of_another_name",
        "request_of_another_name",
        "ask",
        "RequestOfAnotherName",
        &[],
    ),
    MEANT[10],
    (
        "key_retyped",
        "with_key_retyped",
        "ask",
        "KeyRetyped",
        &[("key_retyped", "7")],
    ),
    ("key_removed", "with_key_removed", "ask", "KeyRemoved", &[]),
    MEANT[13],
    (
        "service_renamed",
        "service_of_another_name",
        "ask",
        "ServiceRenamed",
        &[],
    ),
];

/// Channels of one version, each on an endpoint of its own, and a node.
macro_rules! host {
    ($side:ident: $($server:ident),*) => {
        Host::builder()
            $(.client_server(|channel| channel.serve($side::$server(Desk)).listen("tcp://127.0.0.1:0")))*
            .mesh("shop", |mesh| mesh.listen("tcp://127.0.0.1:0"))
            .start()
            .await?
    };
}

/// Where one version has what the other calls.
fn endpoint(host: &Host, side: &str, service: &str) -> Result<String, Failure> {
    let (kind, name) = match (side, service) {
        ("before", "service_renamed") => (ListenerKind::ClientServer, "service_of_another_name"),
        ("after", "service_of_another_name") => (ListenerKind::ClientServer, "service_renamed"),
        ("before", "target_changed") => (ListenerKind::RouteMesh, "shop"),
        _ => (ListenerKind::ClientServer, service),
    };
    Ok(host.listener(kind, name)?.endpoint.to_string())
}

/// The calls of one version at the other, and what they must come to.
fn calls(side: &str, meant: &[Meant], host: &Host, endings: &Endings) -> Result<Vec<Value>, Failure> {
    let mut calls = Vec::new();
    for (at, (name, service, method, message, metadata)) in meant.iter().enumerate() {
        let before = meant
            .iter()
            .take(at)
            .filter(|it| it.0 == *name && it.2 != *method)
            .count();
        let Ended { answer, .. } = &endings[name][before];
        // Required there, and not in what is sent by default elsewhere.
        let fields = match *message {
            "RequestIsAnother" | "ReplyIsAnother" => json!({ "word": "x" }),
            "RequestIsAnotherNumber" => json!({ "more": "x" }),
            _ => json!({}),
        };
        calls.push(json!({
            "side": side, "service": service, "method": method, "message": message, "fields": fields,
            "metadata": metadata.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
            "endpoint": endpoint(host, side, service)?,
            "word": answer.as_ref().ok(), "end": answer.as_ref().err().map(|kind| format!("{kind:?}")),
        }));
    }
    Ok(calls)
}

/// REQ: MSG-106, MSG-606, MSG-906
#[tokio::test(flavor = "multi_thread")]
async fn clients_in_other_languages_end_their_calls_as_rust_does() -> Result<(), Failure> {
    let (server, rows) = rows();
    let echo = Host::builder().client_server(|channel| channel.serve(server).listen("tcp://127.0.0.1:0"));
    let echo = echo.start().await?;
    let endpoint = echo
        .listener(ListenerKind::ClientServer, ROWS.as_str())?
        .endpoint
        .to_string();
    let newer = host!(after: method_added_server, method_removed_server, method_renamed_server,
        method_renamed_on_the_wire_server, methods_swapped_server, request_became_send_server, request_is_another_server,
        reply_is_another_server, request_of_another_name_server, timeout_changed_server, with_key_retyped_server,
        with_key_removed_server, with_key_named_time_server, service_of_another_name_server);
    let older = host!(before: method_added_server, method_removed_server, method_renamed_server,
        method_renamed_on_the_wire_server, methods_swapped_server, request_became_send_server, request_is_another_server,
        reply_is_another_server, request_of_another_name_server, timeout_changed_server, with_key_retyped_server,
        with_key_removed_server, with_key_named_time_server, service_renamed_server, target_changed_server);
    let (at_newer, at_older) = services::both_in_virtual_time()?;
    let mut services = calls("before", &MEANT, &newer, &at_newer)?;
    services.extend(calls("after", &MEANT_NEWER, &older, &at_older)?);
    let said = format!("{} and {} calls", rows.len(), services.len());
    assert!(rows.len() > 80, "{said}");
    let all = json!({ "rows": rows, "services": services });
    tokio::task::spawn_blocking(move || {
        python(&endpoint, &all, &said);
        typescript(&endpoint, &all, &said);
    })
    .await?;
    for host in [echo, newer, older] {
        host.shutdown().await?;
    }
    Ok(())
}

fn list(folder: &Path, all: &Value) -> PathBuf {
    let path = folder.join("calls.json");
    std::fs::write(&path, all.to_string()).expect("writable");
    path
}

fn python(endpoint: &str, all: &Value, said: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    generate("python", folder.path());
    let mut client = Command::new(made_by("python-env").join("bin/python"));
    client
        .arg(here("tests/changes/client.py"))
        .arg(endpoint)
        .arg(list(folder.path(), all));
    client
        .env("PYTHONPATH", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    assert_eq!(run(&mut client), said);
}

fn typescript(endpoint: &str, all: &Value, said: &str) {
    // Below the folder that has the packages which the client needs.
    let made = made_by("typescript-env");
    let folder = tempfile::tempdir_in(&made).expect("a temporary folder");
    generate("typescript", folder.path());
    let options = json!({
        "compilerOptions": {
            "target": "es2022", "module": "nodenext", "types": ["node"], "strict": true, "outDir": "out", "rootDir": ".",
        },
        "include": ["before", "after"],
    });
    std::fs::write(folder.path().join("tsconfig.json"), options.to_string()).expect("writable");
    std::fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).expect("writable");
    std::fs::copy(here("tests/changes/client.mjs"), folder.path().join("client.mjs")).expect("a copy");
    let node = made.join("node");
    run(Command::new(&node)
        .arg(made.join("node_modules/typescript/bin/tsc"))
        .current_dir(folder.path()));
    let list = list(folder.path(), all);
    let mut client = Command::new(&node);
    assert_eq!(
        run(client.arg(folder.path().join("client.mjs")).arg(endpoint).arg(list)),
        said
    );
}
