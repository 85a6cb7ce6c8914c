//! What people are shown where a program ends with an error of ours: `?` in a `main` prints `Debug`.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};

use std::time::Duration;

use zlink_generated::contract::orders_client;
use zlink_runtime::error::{CallError, HandlerError};
use zlink_runtime::prelude::*;

use super::kit::*;

/// What the standard library prints of a `main` that ends so.
fn of_main(error: impl Into<Box<dyn StdError>>) -> String {
    format!("Error: {:?}", error.into())
}

#[tokio::test]
async fn a_host_that_cannot_start_lists_its_mistakes() {
    let twice = |mesh: zlink_runtime::MeshBuilder| mesh.listen("tcp://nowhere");
    let builder = Host::builder().mesh("shop", twice).mesh("", twice);
    let error = builder.start().await.unwrap_err();
    let told = of_main(error.clone());
    assert_eq!(told, format!("Error: {error}"));
    assert!(told.contains("mistakes:\n  - mesh \"shop\": "), "{told}");
}

#[tokio::test]
async fn a_call_that_fails_says_in_words_whether_it_was_executed() {
    let c = client("c", &[]).await;
    let nobody = ChannelName::from_static("nobody");
    let error = orders_client(&c).on(nobody).ask(note("", 1)).await.unwrap_err();
    assert_eq!(of_main(error.clone()), format!("Error: {error} (not executed)"));
    let error = orders_client(&c).ask(note("", 1)).timeout(Duration::ZERO).await;
    let error = error.unwrap_err();
    assert!(matches!(error, CallError::Argument(_)));
    assert_eq!(of_main(error.clone()), format!("Error: {error}"));
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", taken.local_addr().unwrap());
    let on = |endpoint: &str| Host::builder().mesh("shop", |mesh| mesh.listen(endpoint));
    let error = on(&endpoint).start().await.unwrap_err().to_string();
    assert!(
        error.contains(&endpoint) && error.contains("end it, or listen elsewhere"),
        "{error}"
    );
    // TEST-NET-1, which no machine has.
    let error = on("tcp://192.0.2.1:7001").start().await.unwrap_err().to_string();
    assert!(error.contains("no address of this machine"), "{error}");
}

/// Each cause is there once, whoever prints the chain.
#[test]
fn an_error_names_its_causes() {
    #[derive(Debug)]
    struct Outer(HandlerCause);
    #[derive(Debug)]
    struct HandlerCause;
    impl fmt::Display for HandlerCause {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the disk is full")
        }
    }
    impl StdError for HandlerCause {}
    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nothing was saved")
        }
    }
    impl StdError for Outer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }
    let failed = HandlerError::from(Outer(HandlerCause));
    assert_eq!(
        format!("{failed:?}"),
        "nothing was saved\n  caused by: the disk is full"
    );
    let refused = ChannelName::new("").unwrap_err();
    assert_eq!(format!("{refused:?}"), refused.to_string());
    // What holds another error shows that once, and not as its cause again.
    let argument = zlink_runtime::location::StoreError::argument("key", "is none");
    assert_eq!(format!("{argument:?}"), "key: is none");
}

/// There is one way for all of them: none of the public errors derives `Debug`.
#[test]
fn no_public_error_shows_its_fields() {
    let mut derived = Vec::new();
    let mut seen = 0;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders: Vec<PathBuf> = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for item in text.split("#[derive(").skip(1) {
                let (derives, rest) = item.split_once(")]").unwrap_or_default();
                let declared = rest
                    .lines()
                    .find(|line| line.contains("enum ") || line.contains("struct "));
                if !derives.contains("thiserror::Error") || !declared.is_some_and(|line| line.starts_with("pub ")) {
                    continue;
                }
                seen += 1;
                if derives.contains("Debug") {
                    derived.push(format!("{}: {}", path.display(), declared.unwrap_or_default()));
                }
            }
        }
    }
    assert!(seen > 15, "only {seen} errors were found");
    assert!(
        derived.is_empty(),
        "write `crate::error::shown!(…)` behind:\n{}",
        derived.join("\n")
    );
}
