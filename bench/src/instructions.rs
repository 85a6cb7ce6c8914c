//! Where the instructions of a request go, floor by floor: runs one process under callgrind and reads what it counted.
//!
//! What the compiler placed inline counts for the room whose source it is; what it took from other crates, for the room
//! that it was placed in.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

/// What is counted, how many of it, and what that is called.
const LOADS: [(&str, u64, &str); 9] = [
    ("remote", 30_000, "a request and its reply"),
    ("oneway", 32_000, "a one-way send"),
    ("mesh-request", 30_000, "a request over a mesh"),
    ("far-request", 30_000, "a request to a Spot elsewhere"),
    ("mesh-send", 32_000, "a send over a mesh"),
    ("far-send", 32_000, "a send to a Spot elsewhere"),
    ("spot-request", 30_000, "a request to a local Spot"),
    ("spot-send", 32_000, "a send to a local Spot"),
    ("spot-cold", 10_000, "a Spot's first request"),
];
/// Tasks at once.
const TASKS: u64 = 64;

/// Instructions by part.
type Counts = HashMap<String, u64>;

/// Counts all loads and prints one table.
pub fn report() -> Result<(), Failure> {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !valgrind.is_ok_and(|status| status.success()) {
        return Err("valgrind is missing: install it and run this again; nothing else is needed".into());
    }
    let mut columns = Vec::new();
    for (part, count, _) in LOADS {
        eprintln!("counting {count} × {part}");
        columns.push((count, count_load(part, count)?));
    }
    println!("{}", table(&columns));
    Ok(())
}

fn count_load(part: &str, count: u64) -> Result<Counts, Failure> {
    let out = std::env::temp_dir().join(format!("zlink-callgrind-{}-{part}", std::process::id()));
    let counted = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args(["in-process", part, &count.to_string(), &TASKS.to_string()])
        .output()?;
    if !counted.status.success() {
        return Err(format!("callgrind failed: {}", String::from_utf8_lossy(&counted.stderr)).into());
    }
    let text = fs::read_to_string(&out)?;
    fs::remove_file(&out)?;
    Ok(parts(&text))
}

/// Sums the costs of a profile by part. Of a profile only this is needed: which file and function the lines that follow
/// belong to, and that the line after `calls=` is what the callee cost.
fn parts(profile: &str) -> Counts {
    let (mut names, mut counts) = (HashMap::new(), Counts::new());
    let (mut file, mut function, mut callee) = (String::new(), String::new(), false);
    for line in profile.lines() {
        match line.split_once('=') {
            Some(("fl" | "fi" | "fe", name)) => file = full_name(&mut names, "file", name),
            Some(("fn", name)) => function = full_name(&mut names, "function", name),
            Some(("cfi" | "cfl", name)) => drop(full_name(&mut names, "file", name)),
            Some(("cfn", name)) => drop(full_name(&mut names, "function", name)),
            Some(("calls", _)) => callee = true,
            Some(_) => {}
            None => {
                let mut words = line.split_ascii_whitespace();
                let (Some(place), Some(cost), None) = (words.next(), words.next(), words.next()) else { continue };
                let is_place = place.starts_with(['+', '-', '*']) || place.bytes().all(|byte| byte.is_ascii_digit());
                let Some(cost) = cost.parse::<u64>().ok().filter(|_| is_place) else { continue };
                if !std::mem::take(&mut callee) {
                    *counts.entry(part_of(&file, &function)).or_default() += cost;
                }
            }
        }
    }
    counts
}

/// A name is written out once, `(7) name`, and is a number from then on.
fn full_name(names: &mut HashMap<(&'static str, String), String>, kind: &'static str, written: &str) -> String {
    let (number, name) = written.split_once(' ').unwrap_or((written, ""));
    let key = (kind, number.to_owned());
    if !name.is_empty() {
        names.insert(key.clone(), name.to_owned());
    }
    names.get(&key).cloned().unwrap_or_default()
}

fn part_of(file: &str, function: &str) -> String {
    let room = |path: &str, separator: &str| {
        let mut rooms = path.split(separator);
        match rooms.next().map(|room| room.trim_end_matches(".rs")) {
            Some("message") => "`message/codec` and FlatBuffers builder".to_owned(),
            Some("transport") => "`transport/link`".to_owned(),
            Some(room) => {
                let end = room.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                format!("`{}`", &room[..end.unwrap_or(room.len())])
            }
            None => "other".to_owned(),
        }
    };
    if let Some((_, path)) = file.split_once("zlink-runtime/src/") {
        return room(path, "/");
    }
    if file.contains("/flatbuffers-") || function.contains("flatbuffers::") {
        return room("message", "/");
    }
    if let Some((_, path)) = function.split_once("zlink_runtime::") {
        return room(path, "::");
    }
    let part = match Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default() {
        "malloc.c" | "arena.c" | "alloc.rs" => "allocator",
        name if name.starts_with("mem") => "copies and compares (libc)",
        _ if file.contains("/tokio-") || function.contains("tokio::") => "tokio",
        _ if file.contains("/bytes-") => "`bytes`",
        _ => "what the benchmark does, and other",
    };
    part.to_owned()
}

fn table(columns: &[(u64, Counts)]) -> String {
    let mut parts: Vec<&String> = columns.iter().flat_map(|(_, counts)| counts.keys()).collect();
    parts.sort();
    parts.dedup();
    let each = |part: &str, (count, counts): &(u64, Counts)| counts.get(part).copied().unwrap_or_default() / count;
    parts.sort_by_key(|part| std::cmp::Reverse(columns.first().map_or(0, |column| each(part, column))));
    let heads = LOADS.map(|(_, _, head)| head).join(" | ");
    let mut text = format!("| instructions, both sides | {heads} |\n|---|{}\n", "---:|".repeat(LOADS.len()));
    let mut row = |part: &str, figures: Vec<u64>| {
        let figures: Vec<_> = figures.iter().map(u64::to_string).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {part} | {} |", figures.join(" | "));
    };
    for part in parts {
        let figures: Vec<_> = columns.iter().map(|column| each(part, column)).collect();
        if figures.iter().any(|figure| *figure > 0) {
            row(part, figures);
        }
    }
    row("all", columns.iter().map(|(count, counts)| counts.values().sum::<u64>() / count).collect());
    text
}
