//! The two programs as the README of the examples starts them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn client(arguments: &[&str]) -> String {
    let client = Command::new(env!("CARGO_BIN_EXE_client")).args(arguments).output();
    let client = client.expect("the client runs");
    assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
    String::from_utf8(client.stdout).expect("text")
}

#[test]
fn a_book_is_lent_and_brought_back() {
    let server = Command::new(env!("CARGO_BIN_EXE_server"))
        .arg("tcp://127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Server(server.expect("the server runs"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    let endpoint = first.strip_prefix("listening on ").expect("where it listens");

    assert_eq!(
        client(&[endpoint, "Emma", "Emma", "Ulysses"]),
        "Emma: for 14 days\nEmma: for 14 days\nUlysses: out\n"
    );
    for expected in [
        "Anne asks for Emma: here you are",
        "Anne asks for Emma: here you are",
        "Anne asks for Ulysses: out",
    ] {
        assert_eq!(lines.next().expect("a line").expect("text"), expected);
    }
}

#[test]
fn without_a_server_the_client_says_what_happened() {
    // A port that was free a moment ago, and where nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let said = client(&[&format!("tcp://{}", free.expect("a port")), "Emma"]);
    assert!(said.contains("nothing was lent, so it is safe to ask again"), "{said}");
}
