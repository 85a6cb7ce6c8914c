//! What zlink's rows have to reach, and what each table asks.

/// A bound on a row of ours.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// In proportion to another row of the table.
    AtMostOf(f64, &'static str),
    /// In proportion to the best peer of the table; for times, `AtLeast` 1 means below every peer.
    BestPeer(f64),
    /// At least so many times a peer.
    AtLeastOf(f64, &'static str),
}

/// The column that is judged, and its bound.
pub type Budget = (&'static str, Bound);

/// The budgets of a row of ours.
pub fn of(table: &str, row: &str) -> Vec<Budget> {
    match row {
        "zlink Spot" if !table.starts_with("local ") => of_remote_spots(table),
        // A thousand are within what the allocator asks the system for at once.
        "zlink, 1,000 Spots" => Vec::new(),
        _ if is_ours(row) => of_table(table),
        _ => Vec::new(),
    }
}

/// Calls to a Spot by its ID, beside those to a channel of the same mesh.
fn of_remote_spots(table: &str) -> Vec<Budget> {
    use Bound::{AtLeastOf, AtMostOf};
    if table.starts_with("send ") {
        return of_table(table);
    }
    if table.ends_with(" x1") {
        return vec![("p50 µs", AtMostOf(1.0 / 0.9, "zlink RouteMesh"))];
    }
    vec![("k/s", AtLeastOf(0.9, "zlink RouteMesh"))]
}

fn of_table(table: &str) -> Vec<Budget> {
    use Bound::{AtLeast, AtLeastOf, AtMost, AtMostOf, BestPeer};
    match table {
        "request 64 B 1cpu x1" | "request 64 B 2cpu x1" => {
            vec![("p50 µs", AtMostOf(1.2, "raw TCP")), ("p50 µs", BestPeer(1.0))]
        }
        "request 64 B 1cpu x64" => vec![
            ("k/s", AtLeast(800.0)),
            ("k/s", AtLeastOf(2.0, "tarpc")),
            ("k/s", AtLeastOf(9.0, "tonic + prost")),
            ("CPU s/M", AtMost(1.2)),
        ],
        "request 64 B 2cpu x64" => vec![("k/s", BestPeer(3.0))],
        "request 64 B 2cpu x1024" => vec![("k/s", BestPeer(4.0))],
        "request 1 KiB 1cpu x64" => vec![("k/s", AtLeastOf(3.0, "tarpc")), ("k/s", AtLeastOf(10.0, "tonic + prost"))],
        "send 64 B 1cpu" | "send 64 B 2cpu" | "send 64 B split" => vec![("M/s", AtLeast(3.0))],
        "local tell 1 → 1, one thread"
        | "local tell 1 → 1, two threads"
        | "local tell 1 → 1, at most 1,024 wait, one thread"
        | "local tell 1 → 1, at most 1,024 wait, two threads"
        | "local tell 4 → 1, two threads" => {
            vec![("M/s", AtLeastOf(2.0, "kameo")), ("M/s", AtLeastOf(1.5, "ractor"))]
        }
        "local tell 1 → 1,000, one thread" | "local tell 1 → 1,000, two threads" => {
            vec![("M/s", AtLeastOf(1.5, "ractor"))]
        }
        "local request x1, one thread" | "local request x1, two threads" => vec![("p50 ns", AtMostOf(1.0, "kameo"))],
        "local request x64, one thread" | "local request x64, two threads" => vec![("M/s", AtLeastOf(1.5, "ractor"))],
        "spots, idle and called" => vec![("bytes each", AtMost(600.0))],
        "cold activation, memory, one thread" | "cold activation, memory, two threads" => {
            vec![("k/s", AtLeast(100.0))]
        }
        "cold activation, SQLite, two threads" | "cold activation, Redis, two threads" => {
            vec![("k/s", AtLeast(5.0))]
        }
        "codec encode" => vec![("ns", AtMostOf(1.05, "flatbuffers official"))],
        "codec decode" => vec![("ns", AtMostOf(0.75, "prost"))],
        "micro permits, alone" => vec![("ns", AtMost(60.0))],
        "micro permits, 4 threads" => vec![("ns", AtMost(200.0))],
        "micro select-one" => vec![("ns", AtMost(25.0))],
        "micro cached route" => vec![("ns", AtMost(60.0))],
        "owners, idle" => vec![("bytes each", AtMost(600.0))],
        "owners, 1 → 1" => vec![("M/s", AtLeast(10.0))],
        _ => Vec::new(),
    }
}

/// Whether less of a column is better.
pub fn less_is_better(column: &str) -> bool {
    !column.ends_with("/s")
}

/// Whether a row is ours.
pub fn is_ours(row: &str) -> bool {
    row.starts_with("zlink")
}

/// The row that all others of a table are compared with, rather than a peer.
pub const FLOORS: [&str; 5] =
    ["raw TCP", "flatbuffers official", "tokio mpsc + task", "the store alone", "zlink, 1,000 Spots"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_ours_is_judged_by_a_column_of_its_table() {
        let judged = |table: &str, row: &str| of(table, row).first().map(|(column, _)| *column);
        for (table, row, column) in [
            ("request 64 B 1cpu x1", "zlink Spot", "p50 µs"),
            ("request 64 B 1cpu x64", "zlink Spot", "k/s"),
            ("request 64 B 1cpu x64", "zlink RouteMesh", "k/s"),
            ("send 64 B split", "zlink Spot", "M/s"),
            ("local tell 1 → 1, one thread", "zlink Spot", "M/s"),
            ("local request x1, two threads", "zlink Spot", "p50 ns"),
            ("cold activation, memory, one thread", "zlink", "k/s"),
            ("spots, idle and called", "zlink, 100,000 Spots", "bytes each"),
        ] {
            assert_eq!(judged(table, row), Some(column), "{table}, {row}");
        }
        assert_eq!(judged("local request x1, two threads", "kameo"), None);
    }
}
